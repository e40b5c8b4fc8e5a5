"""Lines instead of fault points: a process halts at a line of its program, and nobody had to write anything there.

`HALT_AT_LINE=outbox.workflow:123#2` ends the process with 23 when it is about to execute line 123 of that module for the second
time, after one line on standard error that says where and in which function. `LINES_TO=FILE` appends each line that is about to
be executed to FILE, as `outbox.workflow:123`. Both are read by whoever starts a program (`scenarios.engine.spawner`), after the
program is imported and before its `main`; the program knows nothing of it.

Only functions of the modules under study count: those of `outbox`, `receivers`, and of the systems with a mistake. What runs
while a module or a class is defined does not: a program that was loaded before it was started would not come to it. Every
thread, task and generator of the process counts, by one count for each line. Python 3.12 and later watch by `sys.monitoring`,
the others by `sys.settrace`; which lines there are, and how often, is told by the interpreter and may change with its version.
"""

import contextlib
import itertools
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from functools import cache
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NoReturn

from outbox import faults
from outbox.errors import BadInput

HALT_VARIABLE = "HALT_AT_LINE"
LINES_VARIABLE = "LINES_TO"
WRAPPER = "scenarios.engine.lined"
NAME = "halt23"  # whom the interpreter knows the watch as
# Of systems with a mistake the mistake is under study, wherever it stands.
STUDIED = ("outbox", "receivers", "scenarios.oracle")
CANNOT_LIST_EXIT_CODE = 70
# As the modules have it that are imported from there: not resolved.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))  # noqa: PTH120 - text, compared with text

_POINT = re.compile(r"(?P<module>[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)*):(?P<line>[1-9]\d{0,8})")
_SETTING = re.compile(rf"{_POINT.pattern}#(?P<occurrence>[1-9]\d{{0,8}})")


@dataclass(frozen=True, slots=True)
class Line:
    """What `HALT_AT_LINE` asks for: halt before this line is executed for the `occurrence`-th time (from 1)."""

    module: str
    number: int
    occurrence: int = 1

    @property
    def point(self) -> str:
        """What stands in the place of a fault point: `outbox.workflow:123`."""
        return f"{self.module}:{self.number}"

    def __str__(self) -> str:
        return f"{self.point}#{self.occurrence}"


def is_line(point: str) -> bool:
    """Whether this names a line, and no declared fault point."""
    return _POINT.fullmatch(point) is not None


def is_studied(module: str) -> bool:
    """Whether the lines of a module count."""
    return any(module == each or module.startswith(f"{each}.") for each in STUDIED)


def read(setting: str) -> Line:
    """Read `MODULE:LINE#N`. Raises BadInput for another form."""
    match = _SETTING.fullmatch(setting)
    if match is None:
        raise BadInput(f"{HALT_VARIABLE}={setting!r}: expected MODULE:LINE#N, with LINE and N from 1")
    return Line(match["module"], int(match["line"]), int(match["occurrence"]))


def parse(setting: str) -> Line:
    """The same. Raises BadInput also for another module than those under study, and for a line that no function executes."""
    line = read(setting)
    if line.number not in executable(line.module):
        raise BadInput(f"{HALT_VARIABLE}={setting!r}: no function of {line.module} has code in line {line.number}")
    return line


def source(module: str) -> Path:
    """The file of a module under study. Raises BadInput where there is none."""
    place = Path(ROOT, *module.split("."))
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if is_studied(module) and path.is_file():
            return path
    raise BadInput(f"{module!r} is no module under study; those are in {', '.join(STUDIED)}")


@cache
def executable(module: str) -> frozenset[int]:
    """The lines of a module that its functions can execute. Raises BadInput where it is not under study."""
    path = source(module)
    return frozenset(_lines(compile(path.read_bytes(), path, "exec", dont_inherit=True)))


def _lines(code: CodeType) -> Iterator[int]:
    if _is_function(code):
        yield from (line for _start, _end, line in code.co_lines() if line)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _lines(inner)


def _is_function(code: CodeType) -> bool:
    return bool(code.co_flags & CO_OPTIMIZED)


class Watch:
    """What a process does at the lines of its functions: list them, halt at one, or both. Call `line` with each."""

    def __init__(self, halt: Line | None, listing: int | None) -> None:
        self._halt, self._listing = halt, listing
        self._left = itertools.count(1)  # threads count at once; next() of this is one step for the interpreter
        self._modules: dict[str, str | None] = {}

    def module(self, path: str) -> str | None:
        """The module in this file, if any of its lines are to be watched. Asked at every call, so it has to be quick."""
        try:
            return self._modules[path]
        except KeyError:
            return self._modules.setdefault(path, self._chosen(path))

    def _chosen(self, path: str) -> str | None:
        if not path.startswith(ROOT):
            return None
        module = path[len(ROOT) + 1 :].removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        wanted = self._listing is not None or (self._halt is not None and self._halt.module == module)
        return module if wanted and is_studied(module) else None

    def wants(self, code: CodeType) -> bool:
        """Whether lines of this code, which is of a module that is watched, are to be told of."""
        if self._listing is not None or self._halt is None:
            return _is_function(code)
        return _is_function(code) and any(line == self._halt.number for *_at, line in code.co_lines())

    def line(self, module: str, number: int, code: CodeType) -> bool:
        """A line of a watched code is about to be executed. False: this line need not be told of again."""
        if self._listing is not None:
            _append(self._listing, f"{module}:{number}\n")
        halt = self._halt
        if halt is None or number != halt.number or module != halt.module:
            return self._listing is not None
        if next(self._left) == halt.occurrence:
            _end(f"halt({faults.HALT_EXIT_CODE}) at {halt} in {code.co_qualname}", faults.HALT_EXIT_CODE)
        return True


def _append(descriptor: int, text: str) -> None:
    try:
        os.write(descriptor, text.encode())
    except OSError as error:  # a list with a hole in it would be believed
        _end(f"{LINES_VARIABLE} cannot be written: {error.strerror}", CANNOT_LIST_EXIT_CODE)


def _end(line: str, code: int) -> NoReturn:
    with contextlib.suppress(OSError):  # nobody may be reading any more
        os.write(2, f"{line}\n".encode())
    os._exit(code)


def _blinded() -> NoReturn:
    """The program has ended the watch by itself: its list has a hole, and a line that it was to halt at may have gone by."""
    _end("the program took the watch over its lines away (sys.settrace or sys.monitoring)", CANNOT_LIST_EXIT_CODE)


def is_asked_for(environment: Mapping[str, str]) -> bool:
    """Whether a process with this environment is to be watched."""
    return HALT_VARIABLE in environment or LINES_VARIABLE in environment


@contextlib.contextmanager
def watched(environment: MutableMapping[str, str]) -> Iterator[None]:
    """Do what the environment asks for, as long as this lasts, and take it out of there: it is for this process, and for none
    that it starts. Raises BadInput where it cannot be done."""
    if not is_asked_for(environment):
        yield
        return
    setting, path = environment.pop(HALT_VARIABLE, None), environment.pop(LINES_VARIABLE, None)
    # Whether there is such a line is seen to before a program is started: it takes a compiler, and time.
    halt = None if setting is None else read(setting)
    try:
        listing = None if path is None else os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise BadInput(f"{LINES_VARIABLE}={path!r}: cannot be written: {error.strerror}") from None
    end = begin(Watch(halt, listing))
    try:
        yield
    finally:
        end()
        if listing is not None:
            os.close(listing)


def begin(watch: Watch) -> Callable[[], None]:
    """Watch this process, all its threads, from now on; calling what comes back ends it."""
    if sys.version_info >= (3, 12):
        return _monitored(watch)
    return _traced(watch)


def _traced(watch: Watch) -> Callable[[], None]:
    """By `sys.settrace`: each call is looked at, and the lines of those that are watched."""

    known = watch.module

    def line(frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            code = frame.f_code
            watch.line(str(known(code.co_filename)), frame.f_lineno, code)
        return line

    def call(frame: FrameType, _event: str, _argument: Any) -> Any:
        code = frame.f_code
        return line if known(code.co_filename) is not None and watch.wants(code) else None

    threading.settrace(call)
    sys.settrace(call)

    def end() -> None:
        if sys.gettrace() is not call:
            _blinded()
        sys.settrace(None)
        threading.settrace(None)  # as with sys.settrace, None ends it

    return end


if sys.version_info >= (3, 12):

    def _monitored(watch: Watch) -> Callable[[], None]:
        """By `sys.monitoring`: a code tells of its lines once it was started, if it is watched; no other costs anything."""
        monitoring, events = sys.monitoring, sys.monitoring.events
        tool = next(number for number in range(6) if monitoring.get_tool(number) is None)
        monitoring.use_tool_id(tool, NAME)

        chosen: list[CodeType] = []

        def started(code: CodeType, _offset: int) -> Any:
            if watch.module(code.co_filename) is not None and watch.wants(code):
                chosen.append(code)
                monitoring.set_local_events(tool, code, events.LINE)
            return monitoring.DISABLE

        def line(code: CodeType, number: int) -> Any:
            return None if watch.line(str(watch.module(code.co_filename)), number, code) else monitoring.DISABLE

        monitoring.register_callback(tool, events.PY_START, started)
        monitoring.register_callback(tool, events.LINE, line)
        monitoring.set_events(tool, events.PY_START)

        def end() -> None:
            if monitoring.get_tool(tool) != NAME or not monitoring.get_events(tool) & events.PY_START:
                _blinded()
            monitoring.set_events(tool, 0)
            for code in chosen:
                monitoring.set_local_events(tool, code, 0)
            monitoring.restart_events()
            monitoring.free_tool_id(tool)

        return end

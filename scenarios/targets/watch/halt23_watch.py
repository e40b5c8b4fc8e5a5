"""Watches the lines of somebody else's program from inside its process: lists them, and halts at one.

Asked by a JSON object: `packages` are the Python packages whose lines count, `scripts` the files that count besides, with their
names; `halt` is a place, a line and an occurrence (from 1): there the process ends with 23, after one line on standard error
and in the file `witness`. `lines` is a file to which each line that is about to be executed is appended, but none more than
`most` times, as `huey.storage:412 huey/storage.py SqliteStorage.enqueue`, with tabs between; `modules` one to which each
imported module is appended, with the file that it came from, and, behind a `!`, whatever takes the program out of our sight.

Only lines of functions count: what runs while a module or a class is defined does not. Every thread counts, and every process
that was forked off, by a count of its own; where one of those halts, the whole group of processes is killed. From Python 3.12
on it watches by `sys.monitoring`, before by `sys.settrace`.
Standard library only; Python 3.8 and later.
"""

from __future__ import annotations

import atexit
import itertools
import json
import os
import signal
import sys
import threading
from inspect import CO_OPTIMIZED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import CodeType, FrameType
    from typing import Any, NoReturn

    Place = tuple[str, str]

HALT_EXIT_CODE = 23
CANNOT_LIST_EXIT_CODE = 70


def begin(asked: str) -> None:
    """Begin to watch this process as the JSON object `asked` says."""
    wanted = json.loads(asked)
    if wanted.get("modules"):
        _list_modules(wanted["modules"])
    if wanted.get("halt") or wanted.get("lines"):
        watch = _Watch(wanted)
        if sys.version_info >= (3, 12):
            _monitor(watch)
        else:
            _trace(watch)


def _name(code: CodeType) -> str:
    return getattr(code, "co_qualname", code.co_name)


class _Watch:
    def __init__(self, wanted: Mapping[str, Any]) -> None:
        self._packages: Sequence[str] = wanted.get("packages", ())
        self._scripts: Mapping[str, str] = wanted.get("scripts", {})
        self._halt: tuple[str, int, int] | None = wanted.get("halt")
        self._witness: str | None = wanted.get("witness")
        self._most: int = wanted.get("most", 1000)
        self._listing = _append_to(wanted["lines"]) if wanted.get("lines") else None
        self._pid = os.getpid()
        self._left = itertools.count(1)  # threads count at once; next() of this is one step for the interpreter
        self._counts: dict[tuple[CodeType, int], int] = {}
        self._places: dict[str, Place | None] = {}

    def place(self, path: str) -> Place | None:
        """What the file is called, and its path; None where its lines do not count. Asked at every call, so it is kept."""
        try:
            return self._places[path]
        except KeyError:
            place = self._find(path)
            wanted = self._listing is not None or (self._halt is not None and place is not None and place[0] == self._halt[0])
            return self._places.setdefault(path, place if wanted else None)

    def _find(self, path: str) -> Place | None:
        if path.startswith("<"):
            return None
        path = os.path.abspath(path)
        script = self._scripts.get(path) or self._scripts.get(os.path.realpath(path))
        if script is not None:
            return script, script
        if not path.endswith(".py"):
            return None
        # The longest entry that it lies in is where it was imported from.
        for entry in sorted((os.path.abspath(each) for each in sys.path), key=len, reverse=True):
            if path.startswith(entry.rstrip(os.sep) + os.sep):
                inner = path[len(entry.rstrip(os.sep)) + 1 :]
                parts = inner[: -len(".py")].split(os.sep)
                module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                if any(module == each or module.startswith(each + ".") for each in self._packages):
                    return module, inner.replace(os.sep, "/")
        return None

    def wants(self, code: CodeType) -> bool:
        """Whether lines of this code, whose file counts, are to be told of."""
        if not code.co_flags & CO_OPTIMIZED:
            return False
        return self._listing is not None or (self._halt is not None and self._halt[1] in _numbers(code))

    def line(self, place: Place | None, number: int, code: CodeType) -> bool:
        """A line is about to be executed. False: it need not be told of again."""
        again = False
        if place is None:
            return again
        if self._listing is not None:
            count = self._counts[code, number] = self._counts.get((code, number), 0) + 1
            again = count <= self._most
            if again:
                self._append(self._listing, place, number, code)
        halt = self._halt
        if halt is None or number != halt[1] or place[0] != halt[0]:
            return again
        if next(self._left) == halt[2]:
            self._end(halt, place, code)
        return True

    def _append(self, listing: int, place: Place, number: int, code: CodeType) -> None:
        try:
            os.write(listing, f"{place[0]}:{number}\t{place[1]}\t{_name(code)}\n".encode())
        except OSError as error:  # a list with a hole in it would be believed
            os.write(2, f"halt23: the list of lines cannot be written: {error.strerror}\n".encode())
            os._exit(CANNOT_LIST_EXIT_CODE)

    def _end(self, halt: tuple[str, int, int], place: Place, code: CodeType) -> NoReturn:
        if self._witness is not None:
            os.write(_append_to(self._witness), f"{place[1]}\t{_name(code)}\n".encode())
        try:
            os.write(2, f"halt(23) at {halt[0]}:{halt[1]}#{halt[2]} in {_name(code)}\n".encode())
        finally:  # nobody may be reading any more
            if os.getpid() != self._pid:
                os.killpg(0, signal.SIGKILL)
            os._exit(HALT_EXIT_CODE)


def _append_to(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _numbers(code: CodeType) -> list[int | None]:
    if hasattr(code, "co_lines"):  # from 3.10 on
        return [line for _start, _end, line in code.co_lines()]
    import dis  # noqa: PLC0415 - only where it is needed

    return [line for _offset, line in dis.findlinestarts(code)]


def _trace(watch: _Watch) -> None:
    known = watch.place

    def line(frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            code = frame.f_code
            watch.line(known(code.co_filename), frame.f_lineno, code)
        return line

    def call(frame: FrameType, _event: str, _argument: Any) -> Any:
        code = frame.f_code
        return line if known(code.co_filename) is not None and watch.wants(code) else None

    threading.settrace(call)
    sys.settrace(call)


if sys.version_info >= (3, 12):

    def _monitor(watch: _Watch) -> None:
        monitoring, events = sys.monitoring, sys.monitoring.events
        tool = next(number for number in range(6) if monitoring.get_tool(number) is None)
        monitoring.use_tool_id(tool, "halt23")

        def started(code: CodeType, _offset: int) -> Any:
            if watch.place(code.co_filename) is not None and watch.wants(code):
                monitoring.set_local_events(tool, code, events.LINE)
            return monitoring.DISABLE

        def line(code: CodeType, number: int) -> Any:
            return None if watch.line(watch.place(code.co_filename), number, code) else monitoring.DISABLE

        monitoring.register_callback(tool, events.PY_START, started)
        monitoring.register_callback(tool, events.LINE, line)
        monitoring.set_events(tool, events.PY_START)


def _list_modules(path: str) -> None:
    """Append each module once it is imported, in the order in which the imports began; and what leaves our sight."""
    descriptor = _append_to(path)
    sys.addaudithook(_teller_of_losses(descriptor))
    begun: list[str] = []

    def tell() -> None:
        told, begun[:] = begun[:], []
        for name in told:
            spec = getattr(sys.modules.get(name), "__spec__", None)
            if spec is not None:
                os.write(descriptor, f"{name}\t{getattr(spec, 'origin', None) or ''}\n".encode())

    class Finder:
        """Finds nothing; it is only asked."""

        @staticmethod
        def find_spec(name: str, _path: object = None, _target: object = None) -> None:
            """Note that this module is being imported; those that were begun before may be there by now."""
            if begun:
                tell()
            begun.append(name)

    def end() -> None:
        tell()
        # What `python -m` runs is imported under no name of its own.
        spec = getattr(sys.modules.get("__main__"), "__spec__", None)
        if spec is not None:
            os.write(descriptor, f"__main__\t{spec.origin or ''}\n".encode())

    sys.meta_path.insert(0, Finder)
    atexit.register(end)


STARTS = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system")
"""Events of the interpreter in which it starts another program; the first argument says which."""


def _teller_of_losses(descriptor: int) -> Any:
    told: set[str] = set()

    def tell(event: str, arguments: Sequence[Any]) -> None:
        if event in STARTS:
            words = os.fsdecode(arguments[0] or "").split()
            line = f"!starts\t{os.path.basename(words[0]) if words else ''}\n"
        elif event == "sys.settrace" and sys.version_info < (3, 12):
            line = "!traces\t\n"
        else:
            return
        if line not in told:
            told.add(line)
            os.write(descriptor, line.encode("utf-8", "replace"))

    return tell

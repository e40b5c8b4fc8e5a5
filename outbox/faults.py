"""Fault points: named places in the code where a process can be made to die.

Code under study declares its points once, at import, and calls `reach(NAME)` where they are. Nothing happens there unless
the environment variable `HALT_AT` names the point when the process starts: `HALT_AT=receipt.append.before` halts the first
time that the point is reached, `HALT_AT=receipt.append.before#3` the third time. Halting is `os._exit(23)`: no buffer is
flushed, no `finally` runs, no `atexit` hook is called, as if the process had been killed between two lines. `PAUSE_AT`, in the
same form, stops the process there (SIGSTOP) until somebody continues it (SIGCONT). `POINTS_TO=FILE` appends the name of each
point that is reached to FILE: what can be armed in a run is what a run without faults reaches.

The module does not know who declares points or why, does not restart anything, and says nothing about power loss: what had been
handed to the kernel when the process died is still there afterwards.
"""

import contextlib
import os
import re
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from outbox.errors import BadInput

HALT_VARIABLE = "HALT_AT"
PAUSE_VARIABLE = "PAUSE_AT"
POINTS_VARIABLE = "POINTS_TO"
HALT_EXIT_CODE = 23

_NAME = re.compile(r"[a-z_]+(\.[a-z_]+)+")
_SETTING = re.compile(r"(?P<point>[^#]+)(#(?P<occurrence>[1-9][0-9]{0,8}))?")

_declared: dict[str, str] = {}
# Empty unless something is armed or observed: then reach() pays one look-up in an empty dictionary and nothing else.
_watched: dict[str, Callable[[str], None]] = {}


@dataclass(frozen=True, slots=True)
class WritePoints:
    """The points around one kind of durable write, by stage; None where the write has no such stage."""

    before: str | None
    torn: str | None
    written: str | None
    synced: str | None


NO_POINTS = WritePoints(None, None, None, None)  # writes of instruments, which are not under study


@dataclass(frozen=True, slots=True)
class Fault:
    """What `HALT_AT` or `PAUSE_AT` asks for: act when `point` is reached for the `occurrence`-th time (from 1)."""

    point: str
    occurrence: int = 1

    def __str__(self) -> str:
        return f"{self.point}#{self.occurrence}"


def declare(name: str, meaning: str) -> str:
    """Register the fault point `name` (dotted lower-case words) and return it. Declaring a name twice is a bug."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"fault point name {name!r} is not dotted lower-case words")
    if name in _declared:
        raise ValueError(f"fault point {name!r} is declared twice")
    _declared[name] = meaning
    return name


def declare_write(name: str, what: str, *, torn: bool = True, synced: bool = True) -> WritePoints:
    """Declare the points around the durable write `name` of `what`; see DESIGN section 3 for the four stages."""
    return WritePoints(
        before=declare(f"{name}.before", f"{what} is not written yet"),
        torn=declare(f"{name}.torn", f"half of the bytes of {what} are in the file") if torn else None,
        written=declare(f"{name}.written", f"{what} is written, not yet synced"),
        synced=declare(f"{name}.synced", f"{what} is written and synced") if synced else None,
    )


def declared() -> Mapping[str, str]:
    """All points declared by the modules imported so far: name to meaning, in order of declaration."""
    return dict(_declared)


def reach(point: str | None) -> None:
    """Say that execution is at `point`. Ends the process if the point is armed and its occurrence has come.

    None, the point of a write that is not under study, is never armed.
    """
    if point in _watched:
        _watched[point](point)


def is_watched(point: str | None) -> bool:
    """Whether reaching `point` has any effect: a write splits itself in two halves only then."""
    return point in _watched


def parse(setting: str, variable: str = HALT_VARIABLE) -> Fault:
    """Read `POINT` or `POINT#N`. Raises BadInput for any other form and for a point that nobody declared."""
    match = _SETTING.fullmatch(setting)
    if not match:
        raise BadInput(f"{variable}={setting!r}: expected POINT or POINT#N with N from 1")
    point = match["point"]
    if point not in _declared:
        raise BadInput(
            f"{variable}={setting!r}: this program has no fault point {point!r}; "
            f"it has: {', '.join(sorted(_declared)) or 'none'}"
        )
    return Fault(point, int(match["occurrence"] or 1))


def arm_from_environment() -> None:
    """Do what `POINTS_TO`, `HALT_AT` and `PAUSE_AT` ask for, once, at the start of a process.

    Raises BadInput as `parse` does, where both name one point, and where FILE cannot be written.
    """
    if POINTS_VARIABLE in os.environ:
        observe(_appender(os.environ[POINTS_VARIABLE]))
    armed: set[str] = set()
    for variable, action in ((HALT_VARIABLE, halt), (PAUSE_VARIABLE, pause)):
        setting = os.environ.get(variable)
        if setting is not None:
            fault = parse(setting, variable)
            if fault.point in armed:
                raise BadInput(f"{variable}={setting!r}: {HALT_VARIABLE} names the same point; arm one of them")
            armed.add(fault.point)
            arm(fault, action)


def _appender(path: str) -> Callable[[str], None]:
    """Writes each point that it is called with into the file, at once: the next one may be the process's end."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise BadInput(f"{POINTS_VARIABLE}={path!r}: {error.strerror}") from error

    def append(point: str) -> None:
        os.write(descriptor, f"{point}\n".encode())

    return append


def arm(fault: Fault, action: Callable[[Fault], None]) -> None:
    """Watch for `fault` and then run `action`, once, besides whoever observes that point."""
    remaining = fault.occurrence
    observer = _watched.get(fault.point)

    def count(point: str) -> None:
        nonlocal remaining
        if observer is not None:
            observer(point)
        remaining -= 1
        if remaining == 0:
            action(fault)

    _watched[fault.point] = count


def observe(callback: Callable[[str], None]) -> None:
    """Call `callback(point)` each time that any declared point is reached: how a fault-free run lists its points."""
    for point in _declared:
        _watched[point] = callback


def disarm() -> None:
    """Watch nothing any more."""
    _watched.clear()


def halt(fault: Fault) -> NoReturn:
    """End the process at once with exit code 23, after one line on standard error that says where."""
    _witness(f"halt({HALT_EXIT_CODE}) at {fault}")
    os._exit(HALT_EXIT_CODE)


def pause(fault: Fault) -> None:
    """Stop the process until it gets SIGCONT, after one line on standard error that says where."""
    _witness(f"paused at {fault}")
    os.kill(os.getpid(), signal.SIGSTOP)


def _witness(line: str) -> None:
    with contextlib.suppress(OSError):  # nobody may be reading any more; the fault comes all the same
        os.write(2, f"{line}\n".encode())

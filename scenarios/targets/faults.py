"""The faults of a worker's cases, and the text that names a case.

`work:huey.storage:412#2` is a halt of `work` before line 412 of that module is executed for the second time (`worker.py:30#1`
for a script of the target's own), `work:sys:fsync#3` a kill before its third fsync, `work:point:NAME#1` a halt at a fault point
of its own, `receiver:dies` a receiver that halts between effect and answer. Faults in a row, each in the recovery from the one
before, are joined by `+`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from outbox.errors import BadInput

SETUP, ENQUEUE, WORK, RECOVER, RECEIVER = "setup", "enqueue", "work", "recover", "receiver"
ROLES = (SETUP, ENQUEUE, WORK, RECOVER, RECEIVER)
LINE, SYSCALL, POINT = "line", "syscall", "point"
HALT_EXIT_CODE = 23
_NAME = re.compile(
    r"(?P<role>setup|enqueue|work|recover):(?:(?P<kind>sys|point):(?P<what>[^#+\s]+)|(?P<line>[^#+]+:[1-9]\d*))#(?P<number>[1-9]\d*)"
)
_OF_RECEIVER = re.compile(r"receiver:(?P<what>dies|refuses|hangs-up)")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `where` is `huey.storage:412`, a system call, a point, or what the receiver does. Of a line `file` and
    `function` are told, where they are known; they name nothing."""

    role: str
    kind: str
    where: str
    occurrence: int = 1
    file: str | None = field(default=None, compare=False)
    function: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        if self.kind == RECEIVER:
            return f"{RECEIVER}:{self.where}"
        kind = {LINE: "", SYSCALL: "sys:", POINT: "point:"}[self.kind]
        return f"{self.role}:{kind}{self.where}#{self.occurrence}"

    @property
    def line(self) -> tuple[str, int]:
        """The place and the line's number, of a fault at a line."""
        place, _, number = self.where.rpartition(":")
        return place, int(number)


@dataclass(frozen=True, slots=True)
class Case:
    """Faults in a row: the second strikes in the recovery from the first."""

    faults: tuple[Fault, ...]

    def __str__(self) -> str:
        return "+".join(map(str, self.faults))


def parse(name: str) -> Case:
    """The case of this name. Raises BadInput."""
    first, *more = faults = tuple(_fault(name, part) for part in name.split("+"))
    if len(more) > 1 or any(each.role not in (WORK, RECOVER) or each.role == first.role == RECOVER for each in more):
        raise BadInput(
            f"{name!r} names no case: behind + stands one death of the recovery from the first: of {WORK}, or of {RECOVER} "
            "where that did not die before"
        )
    return Case(faults)


def _fault(name: str, part: str) -> Fault:
    if match := _OF_RECEIVER.fullmatch(part):
        return Fault(RECEIVER, RECEIVER, match["what"])
    match = _NAME.fullmatch(part)
    if match is None:
        raise BadInput(
            f"{name!r} names no case: expected ROLE:MODULE:LINE#N, ROLE:sys:CALL#N, ROLE:point:NAME#N with a role of "
            f"{', '.join(ROLES[:-1])}, or receiver:dies, receiver:refuses, receiver:hangs-up; joined by +"
        )
    kind = {"sys": SYSCALL, "point": POINT, None: LINE}[match["kind"]]
    return Fault(match["role"], kind, match["what"] or match["line"], int(match["number"]))


def script_name(path: str) -> str:
    """What a script is called in the names of cases: its path, but for what has a meaning there."""
    return re.sub(r"[%#+\x00-\x1f]", lambda found: f"%{ord(found[0]):02X}", path)


def occurrences(count: int, *, last: bool = True) -> Sequence[int]:
    """Which of a line's many occurrences are struck: the first two and the last, unless how many there are is chance."""
    return sorted({1, min(2, count), count if last else 1})

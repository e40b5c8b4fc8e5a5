"""The fault of a system call, and the text that names it: `dispatcher:sys:fsync#3`, `dispatcher:sys:fsync=EIO#3`."""

import re
from dataclasses import dataclass

from outbox.errors import BadInput
from scenarios.explore.calls import ON_FILES, ON_SOCKETS
from scenarios.explore.strace import ERRORS

SYS = "sys:"
_NAME = re.compile(r"(?P<process>[a-z_]+):sys:(?P<call>[a-z0-9_]+)(?:=(?P<error>[A-Z0-9]+))?#(?P<number>[1-9]\d{0,8})")


@dataclass(frozen=True, slots=True)
class SysFault:
    """The `occurrence`-th system call `call` of `process` is struck: the process is killed before it has any effect, or, with
    `error`, goes on with that error, or with a short write."""

    process: str
    call: str
    occurrence: int = 1
    error: str = ""

    @property
    def point(self) -> str:
        """Where it strikes, as a result tells of it."""
        return f"{SYS}{self.call}"

    @property
    def setting(self) -> str:
        """What `SYSCALL_AT` is set to, and its name but for the process."""
        return f"{self.point}{f'={self.error}' if self.error else ''}#{self.occurrence}"

    def __str__(self) -> str:
        return f"{self.process}:{self.setting}"


def read(text: str) -> SysFault | None:
    """The fault of this name; None for another form."""
    match = _NAME.fullmatch(text)
    return None if match is None else SysFault(match["process"], match["call"], int(match["number"]), match["error"] or "")


def check(fault: SysFault) -> None:
    """Raises BadInput for a call that is not struck, and for an error that it is not made to fail with."""
    if fault.call not in (*ON_FILES, *ON_SOCKETS):
        raise BadInput(f"{fault.call} is no call that is struck; those are {', '.join((*ON_FILES, *ON_SOCKETS))}")
    errors = ERRORS.get(fault.call, ())
    if fault.error and fault.error not in errors:
        raise BadInput(f"{fault.call} is not made to fail with {fault.error}, but with {', '.join(errors) or 'no error'}")

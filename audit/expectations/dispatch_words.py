"""The words of the section `dispatch`: its processes, its fault points, and what its exports hold.

A scan is told by where it dies or pauses; whoever is resumed ends by itself. A machine that refuses is exit code 16, an act of
an operator that is refused 2, one that finds nothing to change 1.
"""

from __future__ import annotations

from audit.expectations.words import HALTED, ROWS, Expected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.expectations.words import Rows

CHANGED_MEANWHILE, REFUSED, MACHINE_REFUSED = 1, 2, 16
PROGRAM, COMMAND_LINE = "scenarios.dispatch", "outbox.dispatch"
CLAIMED, BEFORE_SEND, AFTER_SEND = "dispatch.claim.committed#1", "dispatch.send.before#1", "dispatch.send.response#1"
ENQUEUED = "dispatch.enqueue.committed#1"


def rows(**counted: int) -> Rows:
    """What an export holds; nothing of what is not named."""
    first, second, third, fourth, fifth, sixth, attempts, events, stale = [counted.pop(name, 0) for name in ROWS]
    if counted:
        raise ValueError(f"an export has no {', '.join(counted)}")
    return first, second, third, fourth, fifth, sixth, attempts, events, stale


def _ran(
    name: str, incarnation: int, module: str, code: int, *, halted: str | None = None, pause: str | None = None
) -> Expected:
    return Expected(name, incarnation, module, code=HALTED if halted else code, fault=halted, pause=pause)


def enqueued(
    incarnation: int = 1, *, name: str = "producer", halted: str | None = None, pause: str | None = None, code: int = 0
) -> Expected:
    """A producer that enqueues, or asks for a heartbeat."""
    return _ran(name, incarnation, PROGRAM, code, halted=halted, pause=pause)


def scan(
    incarnation: int = 1, *, name: str = "scheduler", halted: str | None = None, pause: str | None = None, code: int = 0
) -> Expected:
    """One scan of a scheduler."""
    return _ran(name, incarnation, PROGRAM, code, halted=halted, pause=pause)


def zombie(pause: str) -> Expected:
    """A scan that is stopped until its lease is over, and goes on."""
    return scan(name="zombie", pause=pause)


def consumer(incarnation: int = 1, *, code: int = 0, pause: str | None = None) -> Expected:
    """A consumer that acknowledges on the outbox's own command line."""
    return _ran("consumer", incarnation, COMMAND_LINE, code, pause=pause)


def operator(incarnation: int = 1, *, code: int = 0, halted: str | None = None) -> Expected:
    """An operator's act on the outbox's own command line."""
    return _ran("operator", incarnation, COMMAND_LINE, code, halted=halted)

"""The words in which expectations are written: counts, expected processes and expected scenarios.

Plain frozen-by-convention values and the shorthands that keep the tables short. Nothing here reads an archive.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Counts = tuple[int, int, int, int]
    Rows = tuple[int, int, int, int, int, int, int, int, int]

COUNTED = ("effects", "receipts", "history", "arrivals")
"""What is counted, in the order in which counts stand in these tables."""
STATUSES = ("pending", "delivering", "delivered", "acked", "dead_letter", "expired")
"""The six states of a dispatch."""
ROWS = (*STATUSES, "attempts", "events", "stale")
"""What is counted of an export of the tables of a dispatch outbox, in this order."""
HALTED, CUT_OFF, LOCKED_OUT, DAMAGED = 23, 12, 13, 14
"""Exit codes: the injected halt, an unknown outcome, another holder of the lock, a damaged journal."""


class Expected:
    """One process that a scenario starts, and how it has to end."""

    __slots__ = ("code", "ended_by", "fault", "incarnation", "module", "pause", "process", "signal")

    def __init__(
        self,
        process: str,
        incarnation: int,
        module: str,
        *,
        ended_by: str = "itself",
        code: int | None = 0,
        signal: str | None = None,
        fault: str | None = None,
        pause: str | None = None,
    ) -> None:
        self.process = process
        self.incarnation = incarnation
        self.module = module
        self.fault = fault
        self.pause = pause
        self.code = code
        self.signal = signal
        self.ended_by = ended_by


class Expectation:
    """What must come out of one scenario of a section."""

    __slots__ = ("checks", "counterexample", "counts", "exports", "name", "processes")

    def __init__(
        self,
        name: str,
        counts: Counts,
        processes: Iterable[Expected],
        *,
        counterexample: bool = False,
        checks: Mapping[str, Counts] | None = None,
        exports: Mapping[str, Rows] | None = None,
    ) -> None:
        self.name = name
        self.counts = counts
        self.processes = tuple(processes)
        self.counterexample = counterexample
        self.checks = dict(checks or {})
        self.exports = dict(exports or {})


def receiver(incarnation: int = 1, *, killed: bool = False, pause: str | None = None) -> Expected:
    """A receiver that a step stops, or kills."""
    if killed:
        return Expected("receiver", incarnation, "receivers", ended_by="kill", code=None, signal="SIGKILL")
    return Expected("receiver", incarnation, "receivers", ended_by="stop", pause=pause)


def receiver_dies(incarnation: int, fault: str) -> Expected:
    """A receiver that halts at a fault point."""
    return Expected("receiver", incarnation, "receivers", code=HALTED, fault=fault)


def producer(incarnation: int = 1) -> Expected:
    """A producer that writes its intention and ends."""
    return Expected("producer", incarnation, "outbox.producer")


def producer_dies(incarnation: int, fault: str) -> Expected:
    """A producer that halts at a fault point."""
    return Expected("producer", incarnation, "outbox.producer", code=HALTED, fault=fault)


def dispatcher(incarnation: int = 1, *, code: int = 0) -> Expected:
    """A dispatcher that ends its pass by itself."""
    return Expected("dispatcher", incarnation, "outbox.dispatcher", code=code)


def halted(incarnation: int, fault: str) -> Expected:
    """A dispatcher that halts at a fault point."""
    return Expected("dispatcher", incarnation, "outbox.dispatcher", code=HALTED, fault=fault)


def client(name: str = "client", *, code: int = 0) -> Expected:
    """A bare client; 0 where it got its response."""
    return Expected(name, 1, "scenarios.client", code=code)


def relay() -> Expected:
    """A relay that a step stops."""
    return Expected("relay", 1, "scenarios.relay", ended_by="stop")

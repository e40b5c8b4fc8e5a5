"""The words in which expectations are written: counts, expected processes and expected scenarios.

Plain frozen-by-convention values and the shorthands that keep the tables short. Nothing here reads an archive.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Counts = tuple[int, int, int, int]

COUNTED = ("effects", "receipts", "history", "arrivals")
"""What is counted, in the order in which counts stand in these tables."""


class Expected:
    """One process that a scenario starts, and how it has to end."""

    __slots__ = ("code", "ended_by", "fault", "incarnation", "module", "process", "signal")

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
    ) -> None:
        self.process = process
        self.incarnation = incarnation
        self.module = module
        self.fault = fault
        self.code = code
        self.signal = signal
        self.ended_by = ended_by


class Expectation:
    """What must come out of one scenario."""

    __slots__ = ("checks", "counterexample", "counts", "name", "processes")

    def __init__(
        self,
        name: str,
        counts: Counts,
        processes: Iterable[Expected],
        *,
        counterexample: bool = False,
        checks: Mapping[str, Counts] | None = None,
    ) -> None:
        self.name = name
        self.counts = counts
        self.processes = tuple(processes)
        self.counterexample = counterexample
        self.checks = dict(checks or {})


def receiver(incarnation: int = 1, *, killed: bool = False) -> Expected:
    """A receiver that a step stops, or kills."""
    if killed:
        return Expected("receiver", incarnation, "receivers", ended_by="kill", code=None, signal="SIGKILL")
    return Expected("receiver", incarnation, "receivers", ended_by="stop")


def producer(incarnation: int = 1) -> Expected:
    """A producer that writes its intention and ends."""
    return Expected("producer", incarnation, "outbox.producer")


def dispatcher(incarnation: int = 1, *, code: int = 0) -> Expected:
    """A dispatcher that ends its pass by itself."""
    return Expected("dispatcher", incarnation, "outbox.dispatcher", code=code)


def halted(incarnation: int, fault: str) -> Expected:
    """A dispatcher that halts at a fault point."""
    return Expected("dispatcher", incarnation, "outbox.dispatcher", code=23, fault=fault)


def client(incarnation: int = 1) -> Expected:
    """A bare client that gets its response."""
    return Expected("client", incarnation, "scenarios.client")

"""What every kind of receiver is: a way of serving arrivals over one journal of effects.

A kind says what duplicates mean; it does not know HTTP, the log of arrivals, starting or stopping (`receivers.server`). The
options are those of the command line; each kind reads the ones that it understands.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from receivers.arrivals import Answer, Arrival
from receivers.ledger import Effect, Ledger


@dataclass(frozen=True, slots=True)
class Options:
    """How a receiver of some kind behaves.

    `conflict_status`: the answer to a known key with another body. `in_flight`: a duplicate that comes while its key is being
    worked on waits (`wait`) or is told to come again (`reject`). `capacity`: how many keys a bounded registry holds.
    `retention_seconds` and `clock`: how long a forgetful one keeps a key, by the number in that file. `gate` and `work_until`:
    see `receivers.server`.
    """

    conflict_status: int = 409
    in_flight: str = "wait"
    capacity: int = 1
    retention_seconds: float = 60.0
    clock: Path | None = None
    gate: int = 0
    work_until: int = 0


@dataclass(frozen=True, slots=True)
class Context:
    """What a kind is given: its options, its ledger, and `work`, which lasts as long as performing an effect takes."""

    directory: Path
    options: Options
    ledger: Ledger
    work: Callable[[], Awaitable[None]]


class Kind:
    """Base of all kinds. Used by one event loop; whatever happens between two awaits happens alone."""

    def __init__(self, context: Context) -> None:
        self.options, self.ledger, self.work = context.options, context.ledger, context.work

    @classmethod
    def check(cls, options: Options) -> None:
        """Raise BadInput for options that this kind cannot work with. Called before anything is created."""

    async def serve(self, arrival: Arrival) -> Answer:
        """Answer one request whose body has been read. Raises MachineRefused where the effect could not be made durable."""
        raise NotImplementedError

    def find_operation(self, key: str) -> Effect | None:
        """The effect of operation `key`, for the status query. Raises LookupError where this kind cannot tell."""
        raise LookupError("this receiver has no status query")

    def close(self) -> None:
        """Give up what the kind itself opened."""


class Crowd:
    """Counts arrivals and lets work take until the `wanted`-th has come; 0 means that work takes no time."""

    def __init__(self, wanted: int) -> None:
        self._missing = wanted
        self._come = asyncio.Event()
        self.arrived(0)

    def arrived(self, number: int = 1) -> None:
        """Count arrivals."""
        self._missing -= number
        if self._missing <= 0:
            self._come.set()

    async def wait(self) -> None:
        """Return when enough have come."""
        await self._come.wait()


class Gate:
    """Holds the first `wanted` requests until all of them are there, then lets them in, in the order of their senders' names.

    So a number of requests are in flight at the same time, and the order in which they are served does not depend on chance.
    """

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._held: list[tuple[str, asyncio.Future[None]]] = []
        self._queue: deque[asyncio.Future[None]] = deque()

    async def enter(self, sender: str) -> None:
        """Return when it is this sender's turn. Everybody may enter once the gate has been opened."""
        if self._wanted == 0:
            return
        turn = asyncio.get_running_loop().create_future()
        self._held.append((sender, turn))
        if len(self._held) == self._wanted:
            self._wanted = 0
            self._queue.extend(waiting for _sender, waiting in sorted(self._held, key=lambda held: held[0]))
            self._admit_next()
        await turn
        # Each lets the next one in: whoever came last must not pass those who only now learn that it is their turn.
        self._admit_next()

    def _admit_next(self) -> None:
        if self._queue:
            self._queue.popleft().set_result(None)

"""A keyed receiver that forgets: keys are kept for a time, as by most services that promise idempotency.

Right as long as the sender gives up earlier than the receiver forgets; a retry after that is applied again. The clock is a file
that holds a number of seconds, so that a study can let hours pass.
"""

import math
from pathlib import Path

from outbox.errors import BadInput, MachineRefused
from receivers.arrivals import Answer, Arrival
from receivers.kind import Options
from receivers.ledger import Effect
from receivers.registry import RegistryKind

MAX_CLOCK_BYTES = 64


class Forgetful(RegistryKind):
    """See the module."""

    @classmethod
    def check(cls, options: Options) -> None:
        """Raise BadInput without a readable clock."""
        try:
            _read_clock(options.clock)
        except (OSError, ValueError) as error:
            raise BadInput(f"a forgetful receiver needs --clock FILE with a number of seconds in it: {error}") from error

    def find(self, key: str) -> Effect | None:
        """What is still remembered."""
        known = self.ledger.latest(key)
        if known is None or known.at_seconds is None:
            return None
        return known if self._now() - known.at_seconds < self.options.retention_seconds else None

    async def apply(self, key: str, arrival: Arrival) -> Answer:
        """Apply, and remember when."""
        return self.ledger.apply(self.ledger.fresh_id(), arrival, key, at_seconds=self._now()).answer("applied")

    def _now(self) -> float:
        try:
            return _read_clock(self.options.clock)
        except (OSError, ValueError) as error:
            raise MachineRefused(f"{self.options.clock}: the clock cannot be read: {error}") from error


def _read_clock(path: Path | None) -> float:
    if path is None:
        raise ValueError("no file was named")
    with path.open("rb") as file:
        seconds = float(file.read(MAX_CLOCK_BYTES))
    if not math.isfinite(seconds):
        raise ValueError(f"{seconds} is no time")
    return seconds

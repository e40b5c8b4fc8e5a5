"""Counterexample: the keys live in memory only.

Stands for the in-process cache or the un-persisted key store in front of a durable effect: deduplication works in every test
and ends with the process. A retry after a restart is applied again.
"""

from receivers.arrivals import Answer, Arrival
from receivers.kind import Context
from receivers.ledger import Effect
from receivers.registry import RegistryKind


class VolatileRegistry(RegistryKind):
    """See the module."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._known: dict[str, Effect] = {}

    def find(self, key: str) -> Effect | None:
        """What this process has seen."""
        return self._known.get(key)

    async def apply(self, key: str, arrival: Arrival) -> Answer:
        """Apply, and remember until the end of the process."""
        effect = self._known[key] = self.ledger.apply(self.ledger.fresh_id(), arrival, key)
        return effect.answer("applied")

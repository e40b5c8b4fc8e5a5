"""Counterexample: the look-up and the effect are two steps, and nothing holds them together.

Stands for `if not exists(key): do(); insert(key)` without a lock or a unique constraint. Two requests under one key that both
look before either acts are both applied.
"""

from receivers.arrivals import Answer, Arrival
from receivers.ledger import Effect
from receivers.registry import RegistryKind


class CheckThenAct(RegistryKind):
    """See the module."""

    def find(self, key: str) -> Effect | None:
        """Look."""
        return self.ledger.latest(key)

    async def apply(self, key: str, arrival: Arrival) -> Answer:
        """Work, and act on what was seen before the work."""
        await self.work()
        return self.ledger.apply(self.ledger.fresh_id(), arrival, key).answer("applied")

"""Counterexample: the look-up and the effect are two steps, and nothing holds them together.

Stands for `if not exists(key): do(); insert(key)` without a lock or a unique constraint. Two requests under one key that both
look before either acts are both applied.
"""

from receivers.arrivals import Answer, Arrival
from receivers.keyed import refuse_key, repeated
from receivers.kind import Kind


class CheckThenAct(Kind):
    """See the module."""

    async def serve(self, arrival: Arrival) -> Answer:
        """Look, work, apply."""
        if arrival.key is None:
            return refuse_key(arrival)
        known = self.ledger.latest(arrival.key)
        if known is not None:
            return repeated(known, arrival, self.options.conflict_status)
        await self.work()
        return self.ledger.apply(self.ledger.fresh_id(), arrival, arrival.key).answer("applied")

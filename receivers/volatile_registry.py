"""Counterexample: the keys live in memory only.

Stands for the in-process cache or the un-persisted key store in front of a durable effect: deduplication works in every test
and ends with the process. A retry after a restart is applied again.
"""

from receivers.arrivals import Answer, Arrival
from receivers.keyed import refuse_key, repeated
from receivers.kind import Context, Kind
from receivers.ledger import Effect


class VolatileRegistry(Kind):
    """See the module."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._known: dict[str, Effect] = {}

    async def serve(self, arrival: Arrival) -> Answer:
        """Replay what this process has seen, apply everything else."""
        if arrival.key is None:
            return refuse_key(arrival)
        known = self._known.get(arrival.key)
        if known is not None:
            return repeated(known, arrival, self.options.conflict_status)
        effect = self.ledger.apply(self.ledger.fresh_id(), arrival, arrival.key)
        self._known[arrival.key] = effect
        return effect.answer("applied")

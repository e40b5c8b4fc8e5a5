"""Counterexample: the effect is performed first, its key is recorded afterwards.

Stands for "do the work, then insert into processed_messages" in two transactions. A death between the two leaves an effect
that nobody remembers; the retry is applied again.
"""

from receivers.arrivals import Answer, Arrival
from receivers.keyed import refuse_key, repeated
from receivers.keys import KeyRegistry
from receivers.kind import Context, Kind


class EffectThenKey(Kind):
    """See the module."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._keys = KeyRegistry(context.directory)

    async def serve(self, arrival: Arrival) -> Answer:
        """Apply, then remember."""
        if arrival.key is None:
            return refuse_key(arrival)
        known = self._keys.find(arrival.key)
        if known is not None:
            return repeated(known, arrival, self.options.conflict_status)
        effect = self.ledger.apply(self.ledger.fresh_id(), arrival, arrival.key)
        self._keys.record(arrival.key, effect)
        return effect.answer("applied")

    def close(self) -> None:
        """Give the registry up."""
        self._keys.close()

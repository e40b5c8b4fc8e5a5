"""Counterexample: the key is recorded first, the effect is performed afterwards.

Stands for "insert the key, and if that worked do the work" in two transactions. A death between the two leaves a key without an
effect; every retry is answered as a replay of something that never happened, and the sender writes a receipt for it: silent
loss.
"""

from receivers.arrivals import Answer, Arrival
from receivers.keyed import refuse_key, repeated
from receivers.keys import KeyRegistry
from receivers.kind import Context, Kind


class KeyThenEffect(Kind):
    """See the module."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._keys = KeyRegistry(context.directory)

    async def serve(self, arrival: Arrival) -> Answer:
        """Remember, then apply."""
        if arrival.key is None:
            return refuse_key(arrival)
        known = self._keys.find(arrival.key)
        if known is not None:
            return repeated(known, arrival, self.options.conflict_status)
        effect_id = self.ledger.fresh_id()
        self._keys.record(arrival.key, self.ledger.plan(effect_id, arrival))
        return self.ledger.apply(effect_id, arrival, arrival.key).answer("applied")

    def close(self) -> None:
        """Give the registry up."""
        self._keys.close()

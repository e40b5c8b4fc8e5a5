"""Counterexample: the key is recorded first, the effect is performed afterwards.

Stands for "insert the key, and if that worked do the work" in two transactions. A death between the two leaves a key without an
effect; every retry is answered as a replay of something that never happened, and the sender writes a receipt for it: silent
loss.
"""

from receivers.arrivals import Answer, Arrival
from receivers.keys import SeparateKeys


class KeyThenEffect(SeparateKeys):
    """See the module."""

    async def apply(self, key: str, arrival: Arrival) -> Answer:
        """Remember, then apply."""
        effect_id = self.ledger.fresh_id()
        self.keys.record(key, self.ledger.plan(effect_id, arrival))
        return self.ledger.apply(effect_id, arrival, key).answer("applied")

"""Counterexample: the effect is performed first, its key is recorded afterwards.

Stands for "do the work, then insert into processed_messages" in two transactions. A death between the two leaves an effect
that nobody remembers; the retry is applied again.
"""

from receivers.arrivals import Answer, Arrival
from receivers.keys import SeparateKeys


class EffectThenKey(SeparateKeys):
    """See the module."""

    async def apply(self, key: str, arrival: Arrival) -> Answer:
        """Apply, then remember."""
        effect = self.ledger.apply(self.ledger.fresh_id(), arrival, key)
        self.keys.record(key, effect)
        return effect.answer("applied")

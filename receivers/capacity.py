"""A keyed receiver with room for a bounded number of keys.

A full registry refuses new keys with 429 and still replays the old ones. The alternative, to throw old keys out, would be
forgetting without a clock.
"""

from receivers.arrivals import Answer, refusal
from receivers.keyed import Keyed


class CapacityBounded(Keyed):
    """See the module."""

    def refuse_new(self) -> Answer | None:
        """429 once the ledger is full."""
        if len(self.ledger) < self.options.capacity:
            return None
        return refusal(429, "registry_full", f"all {self.options.capacity} places for keys are taken; nothing was done")

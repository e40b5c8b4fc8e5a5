"""The unkeyed receiver: every arrival is an operation of its own.

Whatever `Idempotency-Key` comes is ignored, as by most services in the world: each request gets a fresh identity and is
applied. Its identities count arrivals instead of being random, so that the evidence is the same in every run.
"""

from receivers.arrivals import Answer, Arrival
from receivers.kind import Kind


class Unkeyed(Kind):
    """See the module."""

    async def serve(self, arrival: Arrival) -> Answer:
        """Apply."""
        await self.work()
        return self.ledger.apply(self.ledger.fresh_id(), arrival, key=None).answer("applied")

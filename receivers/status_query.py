"""A receiver that cannot deduplicate but can say what it did: `GET /operations/KEY`.

Stands for a service that takes a client reference and offers a look-up by it, and applies whatever comes. A sender that asks
before it sends again can live with that; one that sends again blindly cannot.
"""

from receivers.arrivals import Answer, Arrival
from receivers.kind import Kind
from receivers.ledger import Effect


class StatusQuery(Kind):
    """See the module."""

    async def serve(self, arrival: Arrival) -> Answer:
        """Apply, and keep the reference."""
        return self.ledger.apply(self.ledger.fresh_id(), arrival, arrival.key).answer("applied")

    def find_operation(self, key: str) -> Effect | None:
        """The latest effect under this reference."""
        return self.ledger.latest(key)

"""A keyed receiver that forgets: keys are kept for a time, as by most services that promise idempotency.

Right as long as the sender gives up earlier than the receiver forgets; a retry after that is applied again. The clock is a file
that holds a number of seconds, so that a study can let hours pass.
"""

from outbox.errors import BadInput
from receivers.arrivals import Answer, Arrival
from receivers.keyed import refuse_key, repeated
from receivers.kind import Context, Kind


class Forgetful(Kind):
    """See the module. Raises BadInput without a readable clock."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        try:
            self._now()
        except (OSError, ValueError) as error:
            raise BadInput(f"a forgetful receiver needs --clock FILE with a number of seconds in it: {error}") from error

    async def serve(self, arrival: Arrival) -> Answer:
        """Replay what is remembered, apply everything else."""
        if arrival.key is None:
            return refuse_key(arrival)
        now = self._now()
        known = self.ledger.latest(arrival.key)
        if known is not None and known.at_seconds is not None and now - known.at_seconds < self.options.retention_seconds:
            return repeated(known, arrival, self.options.conflict_status)
        return self.ledger.apply(self.ledger.fresh_id(), arrival, arrival.key, at_seconds=now).answer("applied")

    def _now(self) -> float:
        if self.options.clock is None:
            raise ValueError("no file was named")
        return float(self.options.clock.read_text(encoding="ascii"))

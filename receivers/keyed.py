"""The keyed receiver: the agreement kept. One effect for a key, however often the request comes.

The first request under a key is applied; the same key with the same body gets the stored result again, marked as a replay; the
same key with another body is a conflict (409 as in the study, or 422 as in the IETF draft). Keys are kept for ever. Look-up,
effect and result are one journal record, so that no crash separates them. A duplicate that comes while its key is being worked
on waits for the first one's effect, or is told to come again (409).
"""

import asyncio

from receivers.arrivals import Answer, Arrival, refusal
from receivers.kind import Context, Kind
from receivers.registry import refuse_key, repeated


class Keyed(Kind):
    """See the module."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._in_flight: dict[str, asyncio.Event] = {}

    async def serve(self, arrival: Arrival) -> Answer:
        """Apply, replay or refuse."""
        key = arrival.key
        if key is None:
            return refuse_key(arrival)
        while (done := self._in_flight.get(key)) is not None:
            if self.options.in_flight == "reject":
                return refusal(409, "key_in_flight", "a request under this key is being worked on; come again")
            await done.wait()
        effect = self.ledger.find(key)
        if effect is not None:
            return repeated(effect, arrival, self.options.conflict_status)
        return self.refuse_new() or await self._apply(key, arrival)

    def refuse_new(self) -> Answer | None:
        """The answer to a new key where no more can be taken."""
        return None

    async def _apply(self, key: str, arrival: Arrival) -> Answer:
        done = self._in_flight[key] = asyncio.Event()
        try:
            await self.work()
            return self.ledger.apply(key, arrival, key).answer("applied")
        finally:
            del self._in_flight[key]
            done.set()

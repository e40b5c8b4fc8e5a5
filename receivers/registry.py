"""What all receivers with keys share: refusing a request without an acceptable key, and answering a key that is known.

`RegistryKind` is the plain order of things (is there a key, is it known, apply) for kinds that differ in where they remember
keys and in how they apply a new one.
"""

from receivers.arrivals import MAX_KEY_CHARACTERS, Answer, Arrival, refusal
from receivers.kind import Kind
from receivers.ledger import Effect

_KEY_MESSAGES = {
    "key_missing": "the request has no Idempotency-Key header",
    "key_repeated": "the request has more than one Idempotency-Key header",
    "key_empty": "the Idempotency-Key header is empty",
    "key_not_ascii": "the Idempotency-Key header holds something else than visible ASCII characters",
    "key_overlong": f"the Idempotency-Key header is longer than {MAX_KEY_CHARACTERS} characters",
}


def refuse_key(arrival: Arrival) -> Answer:
    """The 400 for a request without exactly one acceptable key."""
    problem = arrival.key_problem or "key_missing"
    return refusal(400, problem, _KEY_MESSAGES[problem])


def repeated(effect: Effect, arrival: Arrival, conflict_status: int) -> Answer:
    """The answer to a request under a known key: the stored result, or a conflict where the body is another."""
    if effect.fingerprint != arrival.fingerprint:
        message = "this key was used with another body; nothing was done"
        return refusal(conflict_status, "body_differs", message, outcome="conflict")
    return effect.answer("replayed")


class RegistryKind(Kind):
    """Base of the kinds that look a key up and then apply it, without holding the two together."""

    async def serve(self, arrival: Arrival) -> Answer:
        """Refuse, repeat or apply."""
        if arrival.key is None:
            return refuse_key(arrival)
        known = self.find(arrival.key)
        if known is not None:
            return repeated(known, arrival, self.options.conflict_status)
        return await self.apply(arrival.key, arrival)

    def find(self, key: str) -> Effect | None:
        """The effect that `key` is remembered for, or None."""
        raise NotImplementedError

    async def apply(self, key: str, arrival: Arrival) -> Answer:
        """Perform the effect of a new key and remember it."""
        raise NotImplementedError

"""The keyed receiver: the agreement kept. One effect for a key, however often the request comes.

The first request under a key is applied; the same key with the same body gets the stored result again, marked as a replay; the
same key with another body is a conflict, 409. Keys are kept for ever. Look-up, effect and result are one journal record, and
nothing is awaited between look-up and record, so concurrent duplicates wait their turn and find the first one's effect.
"""

from receivers.arrivals import MAX_KEY_CHARACTERS, Answer, Arrival, refusal
from receivers.ledger import Ledger

_KEY_MESSAGES = {
    "key_missing": "the request has no Idempotency-Key header",
    "key_repeated": "the request has more than one Idempotency-Key header",
    "key_empty": "the Idempotency-Key header is empty",
    "key_not_ascii": "the Idempotency-Key header holds something else than visible ASCII characters",
    "key_overlong": f"the Idempotency-Key header is longer than {MAX_KEY_CHARACTERS} characters",
}


def serve(ledger: Ledger, arrival: Arrival) -> Answer:
    """Answer one request whose body has been read. Raises MachineRefused where the effect could not be made durable."""
    if arrival.key is None:
        problem = arrival.key_problem or "key_missing"
        return refusal(400, problem, _KEY_MESSAGES[problem])
    effect = ledger.find(arrival.key)
    if effect is None:
        return ledger.apply(arrival.key, arrival, arrival.key).answer("applied")
    if effect.fingerprint != arrival.fingerprint:
        return refusal(409, "body_differs", "this key was used with another body; nothing was done", outcome="conflict")
    return effect.answer("replayed")

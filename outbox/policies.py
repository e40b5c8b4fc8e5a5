"""What a dispatcher does about an attempt whose outcome it does not know: the policy. One is right, one is right without keys,
three are mistakes that people make, kept here to be watched failing.

A policy is data; the workflow reads its fields and never asks for its name.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass


def _same_key(key: str, _attempt: int) -> str:
    return key


def _key_of_attempt(key: str, attempt: int) -> str:
    return f"{key}.{attempt}"


def _same_body(body: bytes, _attempt: int) -> bytes:
    return body


def _rebuilt_body(body: bytes, attempt: int) -> bytes:
    """The same JSON object serialised anew, its members in another order each time; other bodies are left as they are."""
    try:
        members = list(json.loads(body).items())
    except (ValueError, AttributeError, RecursionError):
        return body
    turn = (attempt - 1) % max(len(members), 1)
    return json.dumps(dict(members[turn:] + members[:turn]), separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Policy:
    """One way of sending.

    `key` and `body` give what attempt N (from 1) carries. `marks_before_send`: the receipt is written before anything is sent.
    `reconciles`: an intention in doubt is asked about and not sent again until the receiver says that it was not applied.
    """

    key: Callable[[str, int], str] = _same_key
    body: Callable[[bytes, int], bytes] = _same_body
    marks_before_send: bool = False
    reconciles: bool = False


POLICIES: Mapping[str, Policy] = {
    # Send again with the original key and the unchanged bytes: delivered at least once, applied once at a keyed receiver.
    "resend": Policy(),
    # For receivers that cannot deduplicate but can say what they did.
    "reconcile": Policy(reconciles=True),
    # Mistake: "sent" is recorded first, so that nothing is sent twice. What dies in between is lost, and nobody knows.
    "mark-before-send": Policy(marks_before_send=True),
    # Mistake: the key is made where the request is made. Every retry is a new operation.
    "key-per-attempt": Policy(key=_key_of_attempt),
    # Mistake: the body is serialised again at each attempt. Equal JSON, other bytes: a false conflict.
    "rebuild-body-per-attempt": Policy(body=_rebuilt_body),
}

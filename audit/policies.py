"""What a dispatcher's `--policy` makes of an intention: the key and the bytes of its attempt N, and what it may do.

Attempt N carries the intention's bytes, but for `rebuild-body-per-attempt`, which writes a JSON object anew with its members
rotated by N - 1. Nothing here reads an archive.
"""

from __future__ import annotations

from audit.strict_json import Malformed, encode, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULT = "resend"


class Policy:
    """One way of sending."""

    __slots__ = ("key_per_attempt", "marks", "name", "rebuilds", "reconciles")

    def __init__(
        self, name: str, *, key_per_attempt: bool = False, marks: bool = False, rebuilds: bool = False, reconciles: bool = False
    ) -> None:
        self.name = name
        self.key_per_attempt = key_per_attempt
        self.marks = marks
        self.rebuilds = rebuilds
        self.reconciles = reconciles

    def key(self, key: str, number: int) -> str:
        """The key of attempt N."""
        return f"{key}.{number}" if self.key_per_attempt else key

    def body(self, body: bytes, number: int) -> bytes:
        """What attempt `number` carries."""
        return _rotated(body, number - 1) if self.rebuilds else body


def _rotated(body: bytes, turns: int) -> bytes:
    """A JSON object with its members rotated and written anew; anything else is left as it is."""
    try:
        members = list(parse(body).items())
    except Malformed:
        return body
    turn = turns % max(len(members), 1)
    return f"{{{','.join(_member(*member) for member in members[turn:] + members[:turn])}}}".encode()


def _member(name: str, value: Any) -> str:
    return f"{encode(name)}:{encode(value)}"


POLICIES = {
    policy.name: policy
    for policy in (
        Policy(DEFAULT),
        Policy("reconcile", reconciles=True),
        Policy("mark-before-send", marks=True),
        Policy("key-per-attempt", key_per_attempt=True),
        Policy("rebuild-body-per-attempt", rebuilds=True),
    )
}

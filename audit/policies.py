"""What a dispatcher's `--policy` makes of an intention: the key and the bytes of its attempt N, and what it may do.

`bodies` gives every byte string that attempt N may carry: one, but for `rebuild-body-per-attempt`, which may put the members
of a JSON object into any order. Which of them was sent is told by the fingerprint. Nothing here reads an archive.
"""

from __future__ import annotations

from audit.strict_json import Malformed, encode, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULT = "resend"
MOST_MEMBERS = 6


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

    def bodies(self, body: bytes) -> list[bytes]:
        """What an attempt may carry."""
        return _orders(body) if self.rebuilds else [body]


def _orders(body: bytes) -> list[bytes]:
    """A JSON object with its members in every order; a body that is none, or has many members, is left as it is."""
    try:
        members = list(parse(body).items())
    except Malformed:
        return [body]
    if not 1 < len(members) <= MOST_MEMBERS:
        return [body]
    return [f"{{{','.join(order)}}}".encode() for order in _permutations([_member(*member) for member in members])]


def _member(name: str, value: Any) -> str:
    return f"{encode(name)}:{encode(value)}"


def _permutations(items: list[str]) -> list[list[str]]:
    if len(items) < 2:
        return [items]
    return [[item, *rest] for at, item in enumerate(items) for rest in _permutations(items[:at] + items[at + 1 :])]


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

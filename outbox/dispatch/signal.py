"""The envelope that travels: a versioned `DispatchSignal`, serialised once, at the enqueue, and sent as those bytes ever after.

The members are those of ADR-0059 (D1). `schema_version` changes only when a member is removed or renamed; members that may be
null can be added. `attempt` is 0 in every stored payload, also on the tenth attempt: rewriting it would change the wire
contract and the bytes under one key. The current attempt travels beside the payload (`HALT23_ATTEMPT`, the header
`Halt23-Attempt`).

A body is nested at most MAX_NESTING deep: what one program writes, another has to read, and JSON readers give up at depths of
their own, Python's among them.
"""

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from outbox.dispatch.checks import shown
from outbox.dispatch.errors import BadValue

SIGNAL_SCHEMA_VERSION: int = 1
MAX_NESTING = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A message with an identity of its own. `created_at` is in seconds since the epoch, `data` any JSON value."""

    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    created_at: float = field(default_factory=time.time)
    data: Any = None
    emitter_role: str | None = None
    schema_version: int = SIGNAL_SCHEMA_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchSignal(Signal):
    """The envelope of a dispatch. `body` is the caller's JSON object; `ack_token` is what a consumer has to present."""

    dispatch_id: str = ""
    kind: str = ""
    deliver_to: str = ""
    attempt: int = 0
    ack_token: str | None = None
    body: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self, mode: str = "json") -> dict[str, Any]:
        """All members in the order of the record, `metadata` with the class's name among them. `mode`, as the record writes
        it, is always "json"."""
        if mode != "json":
            raise BadValue(f"mode is {shown(mode)}; a signal has no other form than 'json'")
        return {
            "id": self.id,
            "created_at": self.created_at,
            "metadata": {"lion_class": f"{type(self).__module__}.{type(self).__qualname__}"},
            "data": self.data,
            "emitter_role": self.emitter_role,
            "schema_version": self.schema_version,
            "dispatch_id": self.dispatch_id,
            "kind": self.kind,
            "deliver_to": self.deliver_to,
            "attempt": self.attempt,
            "ack_token": self.ack_token,
            "body": dict(self.body),
        }

    def to_json(self) -> str:
        """The text that is stored and sent. Raises BadValue for a body that is not JSON, or is nested too deep."""
        if any(_is_deeper(value, MAX_NESTING) for value in (self.body, self.data)):
            raise BadValue(
                f"the body of this {self.kind!r} is not JSON that every reader takes: it has more than {MAX_NESTING} objects "
                "and lists inside each other, or a circle"
            )
        try:
            text = json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            text.encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise BadValue(f"the body of this {self.kind!r} is not JSON: {error}") from error
        return text


def decoded(text: str) -> Any:
    """The value of a stored payload; the text itself where it is no JSON, or none that could be printed again.

    Such a row was written by hand, or before the bound: one of them must not make a listing of all the others impossible.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if _is_deeper(value, MAX_NESTING + 1) else value


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether `value` has more objects and lists inside each other than that. Not by recursion, which has a bound itself."""
    inside = [(value, 1)]
    while inside:
        each, level = inside.pop()
        if isinstance(each, Mapping | list | tuple):
            if level > levels:
                return True
            inside.extend((below, level + 1) for below in (each.values() if isinstance(each, Mapping) else each))
    return False

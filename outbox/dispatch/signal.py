"""The envelope that travels: a versioned `DispatchSignal`, serialised once, at the enqueue, and sent as those bytes ever after.

The members are those of ADR-0059 (D1). `schema_version` changes only when a member is removed or renamed; members that may be
null can be added. `attempt` is 0 in every stored payload, also on the tenth attempt: rewriting it would change the wire
contract and the bytes under one key. The current attempt travels beside the payload (`HALT23_ATTEMPT`, the header
`Halt23-Attempt`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from outbox.dispatch.errors import BadValue

SIGNAL_SCHEMA_VERSION: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A message with an identity of its own. `created_at` is in seconds since the epoch, `data` any JSON value."""

    id: str
    created_at: float
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

    def to_dict(self) -> dict[str, Any]:
        """All members in the order of the record, `metadata` with the class's name among them."""
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
        """The text that is stored and sent. Raises BadValue for a body that is not JSON."""
        try:
            text = json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            text.encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise BadValue(f"the body of this {self.kind!r} is not JSON: {error}") from error
        return text

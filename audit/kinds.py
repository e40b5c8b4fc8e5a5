"""What each kind of receiver does with a request: the audit's own reading of `python -m receivers KIND`.

A `Memory` is what one incarnation of a receiver knows: the effects that were taken so far, its registry of keys, its clock.
`decide` says what a request must be answered. A kind is data: where it looks a key up, under which identity it applies, and
what else it heeds; no check asks for a kind's name.
"""

from __future__ import annotations

from audit.case import FORGETFUL, option
from audit.shapes import number_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.case import Ran
    from audit.journals import Record


class Kind:
    """How one kind of receiver treats keys.

    `looks_up`: where known keys are found: nowhere, in the effects of all time (`effects`), of this incarnation (`memory`),
    or in the journal of keys (`keys`). `early`: whether it looks when the request arrives rather than when it acts.
    `by_key`: whether an effect has the key as its id. `keeps`: whether the effect holds the key. `works`: whether performing an
    effect takes the time that `--work-until` asks for.
    """

    __slots__ = ("bounded", "by_key", "early", "forgets", "keeps", "key_first", "looks_up", "name", "tells", "waits", "works")

    def __init__(
        self, name: str, looks_up: str | None, *, early: bool = False, by_key: bool = False, keeps: bool = True,
        key_first: bool | None = None, bounded: bool = False, forgets: bool = False, tells: bool = False, waits: bool = False,
        works: bool = False,
    ) -> None:  # fmt: skip
        self.name = name
        self.looks_up = looks_up
        self.early = early
        self.by_key = by_key
        self.keeps = keeps
        self.key_first = key_first
        self.bounded = bounded
        self.forgets = forgets
        self.tells = tells
        self.waits = waits
        self.works = works


KINDS = {
    kind.name: kind
    for kind in (
        Kind("keyed", "effects", by_key=True, waits=True, works=True),
        Kind("capacity", "effects", by_key=True, waits=True, bounded=True, works=True),
        Kind("unkeyed", None, keeps=False, works=True),
        Kind("status-query", None, tells=True),
        Kind(FORGETFUL, "effects", forgets=True),
        Kind("volatile-registry", "memory"),
        Kind("effect-then-key", "keys", key_first=False),
        Kind("key-then-effect", "keys", key_first=True),
        Kind("check-then-act", "effects", early=True, works=True),
    )
}


def kind_of(process: Ran) -> Kind | None:
    """The kind of a receiver; None where the audit does not know it."""
    return KINDS.get(process.kind())


def numeric(process: Ran, name: str, default: float) -> float:
    """A numeric option of a receiver."""
    value = number_in(option(process, name))
    return default if value is None else value


class Known:
    """What is remembered under a key: the effect's id, the fingerprint, the status and result to replay, and since when."""

    __slots__ = ("at", "effect", "fingerprint", "result", "status")

    def __init__(self, effect: str, data: dict[str, Any]) -> None:
        self.effect = effect
        self.fingerprint: str = data["fingerprint"]
        self.status: int = data["status"]
        self.result = data["result"]
        self.at: float = data.get("at_seconds", 0.0)


class Decision:
    """What a request must be answered: an outcome, the reason of a refusal, and what is replayed."""

    __slots__ = ("known", "outcome", "reason", "status")

    def __init__(self, outcome: str, status: int, reason: str | None = None, known: Known | None = None) -> None:
        self.outcome = outcome
        self.reason = reason
        self.status = status
        self.known = known


class Memory:
    """What one incarnation of a receiver knows of keys."""

    __slots__ = ("_effects", "_known", "_records", "_seen", "kind", "process")

    def __init__(self, process: Ran, kind: Kind, effects: list[Record], keys: list[Record]) -> None:
        self.process = process
        self.kind = kind
        self._effects = effects
        self._records = keys if kind.looks_up == "keys" else effects if kind.looks_up else []
        self._seen = len(effects) if kind.looks_up == "memory" else 0
        self._known: dict[str, Known] = {}

    def find(self, key: str) -> Known | None:
        """What this receiver finds under a key when it looks."""
        for record in self._records[self._seen :]:
            if self.kind.looks_up == "keys":
                self._known[record.id] = Known(record.data["effect"], record.data)
            else:
                self._known[record.data["key"]] = Known(record.id, record.data)
        self._seen = max(self._seen, len(self._records))
        return self._known.get(key)

    def decide(self, arrival: Record, known: Known | None, clock: float | None) -> Decision:
        """What a request with a readable body and an acceptable key gets."""
        if known is not None and self.kind.forgets:
            age = (clock or 0.0) - known.at
            known = known if age < numeric(self.process, "--retention-seconds", 60.0) else None
        if known is not None:
            if known.fingerprint != arrival.data["fingerprint"]:
                return Decision("conflict", int(numeric(self.process, "--conflict-status", 409)), "body_differs")
            return Decision("replayed", known.status, known=known)
        if self.kind.bounded and len(self._effects) >= numeric(self.process, "--capacity", 1):
            return Decision("refused", 429, "registry_full")
        return Decision("applied", 200)

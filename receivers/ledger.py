"""Effects, kept on a journal: the durable change that the study counts.

The effect of this teaching service is a counter that goes up by one. An effect's record holds the identity it was applied
under, the fingerprint of the request and the result that was answered, so one durable write is look-up entry, effect and result
at once: no crash can separate them. A receiver that owns this file and asks `find` before `apply` has a ledger of keys.
"""

from dataclasses import dataclass
from pathlib import Path

from outbox import journal
from outbox.journal import Record
from receivers.arrivals import Answer, Arrival

EFFECTS = journal.declare("effects", "effect")


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect: under which id, for which request body, what was answered, and when, where the receiver has a clock."""

    id: str
    fingerprint: str
    status: int
    result: bytes
    at_seconds: float | None = None

    def answer(self, outcome: str) -> Answer:
        """The answer that tells of this effect, `applied` or `replayed`."""
        return Answer(outcome, self.status, self.result, effect=self.id)


class Ledger:
    """The journal `effects` of one receiver. Single-threaded: nothing can come between a `find` and the `apply` after it."""

    def __init__(self, directory: Path) -> None:
        self._journal = EFFECTS.open(directory)
        self._directory = directory
        self._latest: dict[str, str] | None = None

    def __len__(self) -> int:
        return len(self._journal)

    def find(self, effect_id: str) -> Effect | None:
        """The effect applied under `effect_id`, or None."""
        record = self._journal.find("effect", effect_id)
        return None if record is None else _effect(record)

    def latest(self, key: str) -> Effect | None:
        """The newest effect that was applied for `key`, whatever its id, or None. Keeps all keys in memory."""
        if self._latest is None:
            self._latest = {record.data["key"]: record.id for record in EFFECTS.read(self._directory)}
        effect_id = self._latest.get(key)
        return None if effect_id is None else self.find(effect_id)

    def fresh_id(self) -> str:
        """An id that no effect has: they are counted."""
        return f"effect-{len(self._journal) + 1}"

    def plan(self, effect_id: str, arrival: Arrival, at_seconds: float | None = None) -> Effect:
        """What `apply` would do now, without doing it."""
        number = len(self._journal) + 1
        result = journal.canonical({"answer": f"The counter is now {number}.", "counter": number}).encode()
        return Effect(effect_id, arrival.fingerprint or "", 200, result, at_seconds)

    def apply(self, effect_id: str, arrival: Arrival, key: str | None, at_seconds: float | None = None) -> Effect:
        """Perform the effect for `arrival`; durable when this returns. Raises MachineRefused, and then nothing was done."""
        effect = self.plan(effect_id, arrival, at_seconds)
        data: dict[str, object] = {
            "arrival": arrival.id,
            "key": key,
            "fingerprint": effect.fingerprint,
            "number": len(self._journal) + 1,
            "status": effect.status,
            "result": journal.payload(effect.result),
        }
        if at_seconds is not None:
            data["at_seconds"] = at_seconds
        self._journal.append("effect", effect_id, data)
        if key is not None and self._latest is not None:
            self._latest[key] = effect_id
        return effect

    def close(self) -> None:
        """Give the ledger up."""
        self._journal.close()


def _effect(record: Record) -> Effect:
    data = record.data
    result = journal.payload_bytes(data["result"])
    return Effect(record.id, data["fingerprint"], data["status"], result, data.get("at_seconds"))

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
    """One effect: under which id, for which request body, and what was answered."""

    id: str
    fingerprint: str
    status: int
    result: bytes

    def answer(self, outcome: str) -> Answer:
        """The answer that tells of this effect, `applied` or `replayed`."""
        return Answer(outcome, self.status, self.result, effect=self.id)


class Ledger:
    """The journal `effects` of one receiver. Single-threaded: nothing can come between a `find` and the `apply` after it."""

    def __init__(self, directory: Path) -> None:
        self._journal = EFFECTS.open(directory)

    def __len__(self) -> int:
        return len(self._journal)

    def find(self, effect_id: str) -> Effect | None:
        """The effect applied under `effect_id`, or None."""
        record = self._journal.find("effect", effect_id)
        return None if record is None else _effect(record)

    def apply(self, effect_id: str, arrival: Arrival, key: str | None) -> Effect:
        """Perform the effect for `arrival`; durable when this returns. Raises MachineRefused, and then nothing was done."""
        number = len(self._journal) + 1
        result = journal.canonical({"answer": f"The counter is now {number}.", "counter": number}).encode()
        data = {
            "arrival": arrival.id,
            "key": key,
            "fingerprint": arrival.fingerprint,
            "number": number,
            "status": 200,
            "result": journal.payload(result),
        }
        return _effect(self._journal.append("effect", effect_id, data))

    def close(self) -> None:
        """Give the ledger up."""
        self._journal.close()


def _effect(record: Record) -> Effect:
    data = record.data
    return Effect(record.id, data["fingerprint"], data["status"], journal.payload_bytes(data["result"]))

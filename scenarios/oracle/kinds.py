"""Kinds of receivers with one mistake each, beside those that `receivers` ships as counterexamples, and two correct twins.

`warming` and `patient` refuse for a while after they were cut off, as a service does that looks its files through: a 503 before
any effect.
"""

from dataclasses import replace
from pathlib import Path

from outbox import journal
from outbox.errors import BadInput
from receivers.arrivals import ARRIVALS, Answer, Arrival, refusal
from receivers.keyed import Keyed
from receivers.kind import Context
from receivers.registry import RegistryKind, refuse_key, repeated

# How long a receiver that was cut off asks for patience, and after what time it takes a key in progress for abandoned.
WARM_SECONDS = 200
ABANDONED_SECONDS = 60

PROGRESS = journal.declare("progress", "begun", "completed")
FAILURES = journal.declare("failures", "failure")


def was_cut_off(directory: Path) -> bool:
    """Whether a receiver died in this directory with a request in its hands."""
    types = [record.type for record in ARRIVALS.read(directory)]
    return types.count("arrival") > types.count("answer")


def clock(path: Path | None) -> float:
    """The time that the file holds."""
    if path is None:
        raise BadInput("this receiver needs --clock FILE")
    return float(path.read_text("ascii"))


class Warming(Keyed):
    """Right: after a crash the first request gets a 503, and nothing of that is remembered."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cold = was_cut_off(context.directory)

    async def serve(self, arrival: Arrival) -> Answer:
        """Refuse once, then as a keyed receiver."""
        if self._cold:
            self._cold = False
            return refusal(503, "warming_up", "the receiver has just been started; nothing was done")
        return await super().serve(arrival)


class StoredError(Warming):
    """Mistake (F10): whatever was answered is stored under the key, also a 503 that stood before any effect. It is replayed for
    ever.

    Right: only the result of an effect is a key's result; see `Warming`.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._failures = FAILURES.open(context.directory)

    async def serve(self, arrival: Arrival) -> Answer:
        """Replay an error, or serve and store one."""
        key = arrival.key or ""
        stored = self._failures.find("failure", key) if key else None
        if stored is not None:
            return refusal(stored.data["status"], "warming_up", "the stored result of this key")
        answer = await super().serve(arrival)
        if key and answer.status >= 500:
            self._failures.append("failure", key, {"status": answer.status})
        return answer

    def close(self) -> None:
        """Give the store up."""
        self._failures.close()


class Patient(Keyed):
    """Right: after a crash it asks for patience, with `Retry-After`, until it is ready by its clock."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._ready_at = clock(context.options.clock) + (WARM_SECONDS if was_cut_off(context.directory) else 0)

    async def serve(self, arrival: Arrival) -> Answer:
        """Ask for patience, then as a keyed receiver."""
        left = self._ready_at - clock(self.options.clock)
        if left > 0:
            told = refusal(503, "warming_up", "the receiver is not ready; nothing was done")
            return replace(told, retry_after=int(left))
        return await super().serve(arrival)


class StuckInProgress(RegistryKind):
    """Mistake (F07): a key is marked in progress, and a death leaves it so. Every retry is told to come again, for ever.

    Right: the effect and its result are one record, and what is in progress is known in memory only (`receivers.keyed`).
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._progress = PROGRESS.open(context.directory)

    async def serve(self, arrival: Arrival) -> Answer:
        """Mark, apply, complete; or tell what the mark says."""
        if arrival.key is None:
            return refuse_key(arrival)
        if self._progress.find("completed", arrival.key) is not None:
            effect = self.ledger.latest(arrival.key)
            assert effect is not None, "completed after its effect"
            return repeated(effect, arrival, self.options.conflict_status)
        if not self.begin(arrival.key):
            return refusal(409, "key_in_flight", "a request under this key is being worked on; come again")
        answer = await self.apply(arrival.key, arrival)
        self._progress.append("completed", arrival.key, {})
        return answer

    def begin(self, key: str) -> bool:
        """Mark `key`; False where somebody works on it."""
        if self._progress.find("begun", key) is not None:
            return False
        self._progress.append("begun", key, {})
        return True

    async def apply(self, key: str, arrival: Arrival) -> Answer:
        """The effect, in a file of its own."""
        return self.ledger.apply(self.ledger.fresh_id(), arrival, key).answer("applied")

    def close(self) -> None:
        """Give the marks up."""
        self._progress.close()


class ExpiringProgress(StuckInProgress):
    """Mistake (F08): the mark expires, and whoever comes then applies again, though the effect may be there.

    Right: as above; a mark that expires needs effect and record in one commit.
    """

    def begin(self, key: str) -> bool:
        """Mark `key`, also over a mark that is old."""
        now, number = clock(self.options.clock), 1
        while (mark := self._progress.find("begun", f"{key}#{number}")) is not None:
            if now - mark.data["at_seconds"] < ABANDONED_SECONDS:
                return False
            number += 1
        self._progress.append("begun", f"{key}#{number}", {"at_seconds": now})
        return True


class ErrorText(Keyed):
    """Mistake (F20): a duplicate is recognised by the text of one database's error. Another one says it otherwise: a 500, and
    the sender never gets further.

    Right: the key is looked up, or the constraint is asked for by its code.
    """

    async def serve(self, arrival: Arrival) -> Answer:
        """Apply, and read the error."""
        if arrival.key is None:
            return refuse_key(arrival)
        try:
            return self.ledger.apply(arrival.key, arrival, arrival.key).answer("applied")
        except BadInput as error:
            effect = self.ledger.find(arrival.key)
            if effect is not None and "UNIQUE constraint failed" in str(error):
                return repeated(effect, arrival, self.options.conflict_status)
            return refusal(500, "internal_error", "the receiver failed", outcome="failed")

"""What a receiver is asked and what it answers, and the log of both.

Every request is logged when it has been read, and what will be answered is logged just before the answer leaves. The log
observes and decides nothing: it survives the death of the process but is not synced, and recovery never reads it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from outbox import journal

MAX_KEY_CHARACTERS = 255
MAX_BODY_BYTES = 1024 * 1024

ARRIVALS = journal.declare("arrivals", "arrival", "answer", "query", synced=False)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request that reached the receiver.

    `key` is None where there was not exactly one acceptable key; `key_problem` then says why. `fingerprint` and
    `body_bytes` are None where the body was not read to its end.
    """

    id: str
    method: str
    route: str
    key: str | None
    key_problem: str | None
    attempt: str | None
    sender: str | None
    fingerprint: str | None
    body_bytes: int | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back: `outcome` and `reason` as in evidence/README.md, `effect` the id of the effect it speaks of,
    `retry_after` the seconds of patience that a refusal asks for."""

    outcome: str
    status: int
    body: bytes
    reason: str | None = None
    effect: str | None = None
    allow: str | None = None
    retry_after: int | None = None


def refusal(status: int, reason: str, message: str, *, outcome: str = "refused", allow: str | None = None) -> Answer:
    """An answer that changed nothing: a JSON body that names the reason in a word and in a sentence."""
    body = journal.canonical({"error": reason, "message": message}).encode()
    return Answer(outcome, status, body, reason=reason, allow=allow)


def read_key(values: Sequence[str]) -> tuple[str | None, str | None]:
    """The key among the values of the request's key headers, or None and the word for what is wrong with it."""
    if not values:
        return None, "key_missing"
    if len(values) > 1:
        return None, "key_repeated"
    key = values[0]
    if not key:
        return None, "key_empty"
    if not all("!" <= character <= "~" for character in key):
        return None, "key_not_ascii"
    if len(key) > MAX_KEY_CHARACTERS:
        return None, "key_overlong"
    return key, None


class ArrivalLog:
    """The journal `arrivals` of one receiver. Raises as `outbox.journal` does."""

    def __init__(self, directory: Path) -> None:
        self._journal = ARRIVALS.open(directory)

    def next_id(self) -> str:
        """The id of the arrival that is logged next."""
        return f"arrival-{self._journal.count('arrival') + 1}"

    def arrived(self, arrival: Arrival) -> None:
        """Log a request that has been read."""
        self._journal.append(
            "arrival",
            arrival.id,
            {
                "method": arrival.method,
                "route": arrival.route,
                "key": arrival.key,
                "attempt": arrival.attempt,
                "sender": arrival.sender,
                "fingerprint": arrival.fingerprint,
                "body_bytes": arrival.body_bytes,
            },
        )

    def answered(self, arrival: Arrival, answer: Answer) -> None:
        """Log what is about to be answered."""
        self._journal.append(
            "answer",
            arrival.id,
            {
                "outcome": answer.outcome,
                "reason": answer.reason,
                "status": answer.status,
                "effect": answer.effect,
                "result_sha256": journal.fingerprint(answer.body),
            },
        )

    def asked(self, key: str, answer: str) -> None:
        """Log a status query and what is about to be answered."""
        number = self._journal.count("query") + 1
        self._journal.append("query", f"query-{number}", {"key": key[:MAX_KEY_CHARACTERS], "answer": answer})

    def close(self) -> None:
        """Give the log up."""
        self._journal.close()

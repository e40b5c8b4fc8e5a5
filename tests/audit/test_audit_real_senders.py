"""Careful forgeries of the real sections history, identity and unknown: what a sender may do."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest

from tests.audit.conftest import Audit
from tests.audit.forge import payload, sha
from tests.audit.real import Part, Whole
from tests.audit.real_forgeries import NOBODY, RealForgeries, again

FORGERIES = RealForgeries()
enter = FORGERIES.enter
member = FORGERIES.member
of_process = FORGERIES.of_process
told = FORGERIES.told

# Where a request went.


@enter("identity/receiver_lost_journal", "when receiver (incarnation 2) did not run")
def each_request_at_the_other_receiver(part: Part) -> None:
    for path in ("lost_receiver/arrivals", "receiver/arrivals"):
        arrival = part.data(path, 1)
        arrival["attempt"] = {"1": "2", "2": "1"}[arrival["attempt"]]


# History and the lock.


@enter("history/two_dispatchers", "was turned away printed nothing")
def the_second_dispatcher_speaks(part: Part) -> None:
    part.process("dispatcher_2")["stdout"] = part.process("dispatcher_1")["stdout"]


@enter("history/two_dispatchers", "held the lock: expected 13")
def the_second_dispatcher_gets_in(part: Part) -> None:
    part.process("dispatcher_2")["exit_code"] = 0


@enter("history/two_dispatchers", "was begun by no dispatcher")
def the_second_dispatcher_sends(part: Part) -> None:
    attempts = part.journal("outbox/attempts")
    attempts.append(again(attempts[0], "two_dispatchers-1#2", number=2))


@enter("history/head_of_line", "its cause")
def the_second_intention_overtakes(part: Part) -> None:
    copies = "checkpoints/while_the_first_is_slow/outbox/attempts"
    part.journal(copies).append(deepcopy(part.journal("outbox/attempts")[1]))


@enter("history/head_of_line", "its cause")
def an_arrival_before_its_attempt(part: Part) -> None:
    part.journal("checkpoints/while_the_first_is_slow/outbox/attempts").clear()


@enter("history/recovery_is_idempotent", "records, but the steps before the check wrote")
def a_later_recovery_did_something(part: Part) -> None:
    part.journal("checkpoints/after_first_recovery/outbox/history").clear()


@enter("unknown/unknown_not_applied", "which was sent later")
def a_query_after_the_attempt_that_its_answer_allowed(part: Part) -> None:
    arrivals = part.journal("receiver/arrivals")
    arrivals.append(arrivals.pop(0))


@enter("history/torn_history", "history.append.torn#1, but its records do not bring it there")
def nothing_was_left_to_tear(part: Part) -> None:
    attempts = part.journal("outbox/attempts")
    outcome = {"outcome": "may_have_happened", "reason": "server_error", "status": 500, "not_before": None, "number": 1}
    attempts.append({"type": "outcome", "id": attempts[0]["id"], "data": {"intention": "torn_history-1", **outcome}})


of_process("history/two_dispatchers", "dispatcher_1", 1, "stderr", "", "has the witness lines [] of a pause")
of_process("history/two_dispatchers", "dispatcher_1", 1, "pause", None, "asks for")
of_process("history/two_dispatchers", "dispatcher_1", 1, "environment", {}, "asks for")
of_process("history/head_of_line", "producer", 1, "stderr", "paused at send.before#1\n", "of a pause, expected []")
of_process("history/two_dispatchers", "dispatcher_1", 1, "ended_seconds", 1e-6, "by the order of the steps it comes after")
told("history/crash_after_receipt", "dispatcher", 2, "history_added", 0, "history_added is 0, but the journals have 1")
told("history/crash_after_history", "dispatcher", 2, "history_added", 1, "history_added is 1, but the journals have 0")
told("history/recovery_is_idempotent", "dispatcher", 4, "delivered", 1, "delivered is 1, but the journals have 0")

# Identity: what each policy may send.


@enter("identity/body_changed_on_retry", "which is not of the bytes that policy rebuild-body-per-attempt sends")
def the_body_was_not_rebuilt(part: Part) -> None:
    part.data("outbox/attempts", 2)["fingerprint"] = part.data("outbox/attempts", 1)["fingerprint"]


@enter("identity/receiver_lost_journal", "the journal is missing")
def the_lost_folder_is_really_lost(part: Part) -> None:
    for path in [path for path in part.journals if "/lost_receiver/" in path]:
        del part.journals[path]


@enter("identity/retention_long_enough", "is not what the last write step wrote")
def another_time(part: Part) -> None:
    part.extra["scenarios/identity/retention_long_enough/clock"] = b"60"


@enter("identity/retention_long_enough", "answers 'replayed'")
def forgotten_too_early(part: Part) -> None:
    effects = part.journal("receiver/effects")
    body = b'{"answer":"The counter is now 2.","counter":2}'
    effects.append(again(effects[0], "effect-2", arrival="arrival-2", number=2, at_seconds=59.0, result=payload(body)))
    part.data("receiver/arrivals", 4).update(outcome="applied", effect="effect-2", result_sha256=sha(body))
    part.data("outbox/receipts", 1).update(replayed=False, result=payload(body))
    part.data("outbox/history", 1)["answer"] = payload(body)


member("identity/key_per_attempt", "outbox/attempts", 2, "key", "key_per_attempt-1", "policy key-per-attempt sends")
member("identity/body_changed_on_retry", "outbox/attempts", 2, "fingerprint", NOBODY, "which is not of the bytes that policy")
member("identity/mark_before_send", "outbox/receipts", 1, "status", 200, "expected null for a receipt via mark")
member("identity/mark_before_send", "outbox/receipts", 1, "via", "response", "receipt")
member("identity/mark_before_send", "outbox/receipts", 1, "result", payload(b"{}"), "expected null for a receipt via mark")
member("identity/retention_too_short", "receiver/effects", 2, "at_seconds", 59.0, "of this arrival has 7200.0")
member("identity/retention_too_short", "receiver/effects", 2, "at_seconds", None, "expected a time in seconds")
member("identity/retention_too_short", "receiver/effects", 2, "at_seconds", 7200, "expected a time in seconds")
member("identity/retention_too_short", "receiver/effects", 1, "at_seconds", -0.0, "expected a time in seconds")
member(
    "ledger/crash_before_commit",
    "client_1/requests",
    2,
    "reason",
    "connection_reset",
    "no death of a receiver that explains it",
)
member("ledger/crash_torn", "client_1/requests", 2, "status", 200, "no receiver answered")
member("points/outcome_append_synced", "outbox/attempts", 2, "reason", "unreachable", "is refused")

# Unknown outcomes: inquiries and queries.


@enter("unknown/unknown_not_applied", "would have written")
def sent_again_without_asking(part: Part) -> None:
    del part.journal("outbox/attempts")[1]


@enter("unknown/unknown_applied", "but no receiver answered a status query for it")
def an_answer_that_nobody_gave(part: Part) -> None:
    del part.journal("receiver/arrivals")[2]


@enter("unknown/unknown_applied", "that no inquiry made")
def a_query_that_nobody_made(part: Part) -> None:
    arrivals = part.journal("receiver/arrivals")
    arrivals.append(again(arrivals[2], "query-2"))


@enter("unknown/unknown_not_applied", "but by then it was not_applied")
def applied_before_it_was(part: Part) -> None:
    part.data("receiver/arrivals", 1)["answer"] = "applied"


@enter("unknown/unknown_unanswerable", "but no receiver answered a status query for it")
def a_decision_that_nobody_made(part: Part) -> None:
    part.data("outbox/attempts", 2)["answer"] = "applied"


member("unknown/unknown_applied", "outbox/attempts", 2, "answer", "unanswerable", "answers status queries and lived")
member("unknown/unknown_applied", "outbox/attempts", 2, "answer", "not_applied", "says applied")
member("unknown/unknown_applied", "outbox/attempts", 2, "number", 2, "asks about attempt 2")
member("unknown/unknown_applied", "outbox/receipts", 1, "via", "response", "receipt")
member("unknown/unknown_applied", "outbox/receipts", 1, "result", payload(b"{}"), "effects.jsonl:1 has")
member("unknown/unknown_applied", "outbox/receipts", 1, "replayed", True, "saw no response")
member("unknown/unknown_applied", "receiver/arrivals", 3, "key", "other", "that no inquiry made")
told("unknown/unknown_unanswerable", "dispatcher", 2, "unknown", 0, "unknown is 0, but the journals have 1")


@pytest.mark.parametrize("name", FORGERIES.by_name)
def test_a_careful_forgery_is_refused(name: str, whole: Whole, judge_real: Audit, tmp_path: Path) -> None:
    FORGERIES.refuse(name, whole, judge_real, tmp_path)

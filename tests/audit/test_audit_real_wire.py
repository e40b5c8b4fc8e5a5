"""Careful forgeries of the real sections wire and points: what a relay and a death leave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.audit.conftest import Audit
from tests.audit.forge import sha
from tests.audit.real import Part, Whole
from tests.audit.real_forgeries import NOBODY, RealForgeries, again

FORGERIES = RealForgeries()
enter = FORGERIES.enter
member = FORGERIES.member
of_process = FORGERIES.of_process
told = FORGERIES.told

# Wire: exchanges, both ends of them, and Retry-After.


@enter("wire/response_delayed", "requests left for the relay")
def an_exchange_left_out(part: Part) -> None:
    part.journal("relay/exchanges").pop()


@enter("wire/request_duplicated", "expected 2, but the attempt 'request_duplicated-1#1' has 1 arrivals")
def the_duplicate_got_lost(part: Part) -> None:
    del part.journal("receiver/arrivals")[2:]
    part.data("outbox/receipts", 1)["replayed"] = False


@enter("wire/request_cut_in_headers", "expected 0, but the attempt")
def a_request_without_its_headers_arrived(part: Part) -> None:
    arrivals = part.journal("receiver/arrivals")
    incomplete = {"outcome": "refused", "reason": "body_incomplete", "status": 400, "effect": None}
    first = again(arrivals[0], "arrival-1", attempt="1", fingerprint=None, body_bytes=None)
    refusal = again(arrivals[1], "arrival-1", **incomplete)
    later = [again(record, "arrival-2") for record in arrivals]
    arrivals[:] = [first, refusal, *later]
    part.data("receiver/effects", 1)["arrival"] = "arrival-2"


@enter("delivery/keyed_delivery", "data.fingerprint: is None, but the attempt 'keyed_delivery-1#1' sent")
def a_body_is_cut_where_nobody_stands_in_the_way(part: Part) -> None:
    refusal = sha(b'{"error":"body_incomplete","message":"the connection ended in the middle of the body"}')
    refused = {"outcome": "refused", "reason": "body_incomplete", "status": 400, "effect": None, "result_sha256": refusal}
    first, second = part.data("receiver/arrivals", 2), part.data("receiver/arrivals", 4)
    second.update(first)
    first.update(refused)
    part.data("receiver/arrivals", 1).update(fingerprint=None, body_bytes=None)
    part.data("receiver/effects", 1)["arrival"] = "arrival-2"
    part.data("outbox/receipts", 1)["replayed"] = False


@enter("wire/request_cut_in_body", "was cut in its body")
def a_cut_body_was_read(part: Part) -> None:
    whole = part.data("receiver/arrivals", 3)
    part.data("receiver/arrivals", 1).update(fingerprint=whole["fingerprint"], body_bytes=whole["body_bytes"])


@enter("wire/retry_after_seconds", "waiting is 0, but the journals have 1")
def nobody_waited(part: Part) -> None:
    record = part.process("dispatcher", 2)
    record["stdout"] = json.dumps({**json.loads(record["stdout"]), "waiting": 0, "unavailable": 1}) + "\n"


@enter("wire/retry_after_date", "was begun by no dispatcher")
def an_attempt_before_its_time(part: Part) -> None:
    attempts = part.journal("outbox/attempts")
    early = [again(record, "retry_after_date-1#2", number=2) for record in attempts[:2]]
    attempts[2:2] = early
    attempts[4] = again(attempts[4], "retry_after_date-1#3", number=3)
    part.data("outbox/receipts", 1)["attempt"] = 3
    part.data("receiver/arrivals", 1)["attempt"] = "3"


@enter("wire/response_delayed", "but gave up waiting 1 times, which takes 0.199")
def a_timeout_in_no_time(part: Part) -> None:
    dispatcher = part.process("dispatcher", 1)
    dispatcher["ended_seconds"] = dispatcher["started_seconds"] + 0.01


member("wire/request_reset", "relay/exchanges", 1, "fault", "none", "but the relay was told reset-request:headers")
member("wire/request_reset", "relay/exchanges", 1, "request_forwarded_bytes", 237, "lets through")
member("wire/request_reset", "relay/exchanges", 2, "request_forwarded_bytes", 1, "none lets through")
member("wire/request_reset", "relay/exchanges", 2, "request_bytes", 300, "but the whole message has 277")
member("wire/request_reset", "relay/exchanges", 1, "response_bytes", 9, "but no whole request came to the receiver")
member("wire/response_cut_at_byte", "relay/exchanges", 1, "response_forwarded_bytes", 13, "cut-response:12 lets through 12")
member("wire/response_cut_in_body", "relay/exchanges", 2, "response_bytes", 218, "lets through 218")
member("wire/response_delayed", "relay/exchanges", 1, "response_forwarded_bytes", 1, "hold-response lets through 0")
member("wire/success_oversized", "relay/exchanges", 1, "response_forwarded_bytes", 99, "but the whole message has 1048684")
member("wire/redirect_not_followed", "relay/exchanges", 1, "request_forwarded_bytes", 285, "lets through 0")
member("wire/response_delayed", "outbox/attempts", 2, "reason", "connection_closed", "which hold-response at")
member("wire/response_cut_in_body", "outbox/attempts", 2, "reason", "connection_closed", "cut-response:body-middle")
member("wire/success_unreadable", "outbox/attempts", 2, "reason", "oversized_response", "which unreadable-success at")
member("wire/redirect_not_followed", "outbox/attempts", 2, "status", 302, "which redirect at")
member("wire/retry_after_seconds", "outbox/attempts", 2, "not_before", 1000.0, "asked for 1120.0")
member("wire/retry_after_date", "outbox/attempts", 2, "not_before", None, "asked for 1120.0")
member("wire/response_delayed", "outbox/attempts", 2, "not_before", 5.0, "hold-response asked for None")
of_process("wire/request_reset", "relay", 1, "stdout", "hello\n", "expected nothing")

# Points: what a death at each place leaves.


@enter("points/arrival_append_before", "arrival.append.before#1, but its records do not bring it there")
def the_dead_receiver_had_logged_it(part: Part) -> None:
    arrivals = part.journal("receiver/arrivals")
    first = again(arrivals[0], "arrival-1", attempt="1")
    arrivals[:] = [first, *[again(record, "arrival-2") for record in arrivals]]
    part.data("receiver/effects", 1)["arrival"] = "arrival-2"


@enter("points/answer_append_before", "answer.append.before#1, but its records do not bring it there")
def the_dead_receiver_had_answered(part: Part) -> None:
    arrivals = part.journal("receiver/arrivals")
    arrivals.insert(1, again(arrivals[-1], "arrival-1", outcome="applied"))


@enter("points/answer_append_written", "would have written the answer 'arrival-1' next")
def the_last_answer_is_missing(part: Part) -> None:
    del part.journal("receiver/arrivals")[1]


@enter("points/receipt_append_synced", "was begun by no dispatcher")
def a_durable_receipt_and_a_resend(part: Part) -> None:
    attempts = part.journal("outbox/attempts")
    attempts.append(again(attempts[0], "receipt_append_synced-1#2", number=2))


@enter("points/outcome_append_torn", "would have written")
def a_torn_outcome_is_whole(part: Part) -> None:
    attempts = part.journal("outbox/attempts")
    refused = {"outcome": "did_not_happen", "reason": "connection_refused", "status": None, "not_before": None}
    name = attempts[0]["id"]
    known = {"intention": attempts[0]["data"]["intention"], "number": 1}
    attempts.insert(1, {"type": "outcome", "id": name, "data": {**known, **refused}})


@enter("points/attempt_append_before", "has neither outcome nor receipt, but dispatcher (incarnation 2) did not die")
def an_attempt_of_the_dead(part: Part) -> None:
    attempts = part.journal("outbox/attempts")
    attempts.append(again(attempts[0], "attempt_append_before-1#2", number=2))
    part.data("outbox/receipts", 1)["attempt"] = 2
    part.data("receiver/arrivals", 1)["attempt"] = "2"


@enter("points/inquiry_append_torn", "but no receiver answered a status query for it")
def an_inquiry_that_nobody_saw(part: Part) -> None:
    del part.journal("receiver/arrivals")[3]


@enter("points/query_append_before", "was written by no dispatcher: none of them comes to it")
def the_question_was_answered_after_all(part: Part) -> None:
    part.data("outbox/attempts", 2)["answer"] = "applied"


@enter("points/keys_repair_before", "would have written")
def one_effect_after_all(part: Part) -> None:
    part.journal("receiver/effects").pop()


@enter("points/effect_append_torn", "ends with a torn tail")
def a_torn_tail_that_was_cut(part: Part) -> None:
    name = "scenarios/points/effect_append_torn/receiver/arrivals.jsonl"
    part.extra[name] = part.files()[name] + b'{"sha256":"'


member("points/attempt_append_written", "outbox/attempts", 1, "key", "other", "policy resend sends")
member("points/effect_append_synced", "receiver/effects", 1, "fingerprint", NOBODY, "a fresh effect of this arrival has")
told("points/intention_append_written", "dispatcher", 1, "intentions", 2, "intentions is 2, but the journals have 1")
of_process(
    "points/intention_append_written", "producer", 2, "stdout",
    '{"intention": "intention_append_written-1", "created": true}\n', "'created': False",
)  # fmt: skip
of_process(
    "points/send_before", "dispatcher", 1, "fault", {"point": "send.response", "occurrence": 1}, "the audit's own table"
)  # fmt: skip
of_process("points/effects_create_before", "receiver", 1, "ready", "READY 127.0.0.1:4", "no step started it as a server")


@pytest.mark.parametrize("name", FORGERIES.by_name)
def test_a_careful_forgery_is_refused(name: str, whole: Whole, judge_real: Audit, tmp_path: Path) -> None:
    FORGERIES.refuse(name, whole, judge_real, tmp_path)

"""Careful forgeries of the real section ledger: what each kind of receiver may do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit.conftest import Audit
from tests.audit.forge import payload, sha
from tests.audit.real import Part, Whole
from tests.audit.real_forgeries import NOBODY, RealForgeries, again, digest_of

FORGERIES = RealForgeries()
enter = FORGERIES.enter
member = FORGERIES.member
of_process = FORGERIES.of_process

# Ledger: what each kind of receiver may do.


@enter("ledger/replay", "the effect 'replay-1' was written by no receiver")
def a_keyed_receiver_has_a_second_effect(part: Part) -> None:
    effects = part.journal("receiver/effects")
    result = payload(b'{"answer":"The counter is now 2.","counter":2}')
    effects.append(again(effects[0], "replay-1", arrival="arrival-2", number=2, result=result))


@enter("ledger/volatile_registry", "receiver (incarnation 2) would have written the effect 'effect-2' next")
def a_volatile_registry_remembers(part: Part) -> None:
    first = part.journal("receiver/effects")[0]
    part.journal("receiver/effects").pop()
    part.data("receiver/arrivals", 4).update(outcome="replayed", effect="effect-1", result_sha256=digest_of(first))


@enter("ledger/effect_then_key", "is an answer to the request of the client 'client_1', but its receiver died before that")
def the_dead_receiver_wrote_its_key(part: Part) -> None:
    arrivals, keys = part.journal("receiver/arrivals"), part.journal("receiver/keys")
    part.journal("receiver/effects").pop()
    first = part.journal("receiver/effects")[0]
    keys[0]["data"].update(effect="effect-1", result=first["data"]["result"])
    arrivals[-1]["data"].update(outcome="replayed", effect="effect-1", result_sha256=digest_of(first))
    arrivals.insert(1, again(arrivals[-1], "arrival-1", outcome="applied"))


@enter("ledger/key_then_effect", "a receiver of the kind key-then-effect answers 'replayed'")
def a_lost_effect_is_found_again(part: Part) -> None:
    key = part.data("receiver/keys", 1)
    found = {name: key[name] for name in ("fingerprint", "status", "result")}
    found |= {"arrival": "arrival-2", "number": 1, "key": "key_then_effect-1"}
    part.journal("receiver/effects").append({"type": "effect", "id": "effect-1", "data": found})
    part.data("receiver/arrivals", 3)["outcome"] = "applied"


@enter("ledger/check_then_act", "a receiver of the kind check-then-act answers 'replayed'")
def both_looked_one_after_the_other(part: Part) -> None:
    arrivals, effects = part.journal("receiver/arrivals"), part.journal("receiver/effects")
    first, second, of_second, of_first = arrivals
    arrivals[:] = [first, of_first, second, of_second]
    for records, name in ((effects, "arrival"), ([of_first, of_second], "effect"), ([of_first, of_second], "result_sha256")):
        one, two = records[0]["data"], records[1]["data"]
        one[name], two[name] = two[name], one[name]
    ends = part.data("client_01/requests", 2), part.data("client_02/requests", 2)
    ends[0]["result"], ends[1]["result"] = ends[1]["result"], ends[0]["result"]


@enter("ledger/check_then_act", "stands before the answer to 'arrival-2', whose turn it was")
def the_other_client_was_first(part: Part) -> None:
    arrivals, effects = part.journal("receiver/arrivals"), part.journal("receiver/effects")
    arrivals[2]["id"], arrivals[3]["id"] = arrivals[3]["id"], arrivals[2]["id"]
    one, two = effects[0]["data"], effects[1]["data"]
    one["arrival"], two["arrival"] = two["arrival"], one["arrival"]
    ends = part.data("client_01/requests", 2), part.data("client_02/requests", 2)
    ends[0]["result"], ends[1]["result"] = ends[1]["result"], ends[0]["result"]


@enter("ledger/concurrent", "stands before the answer to 'arrival-4', whose turn it was")
def a_waiting_client_passed_another(part: Part) -> None:
    arrivals = part.journal("receiver/arrivals")
    arrivals[15], arrivals[16] = arrivals[16], arrivals[15]


@enter("ledger/concurrent", "but its answer comes after the request of client_12 (incarnation 1), which started at")
def clients_that_were_never_there_together(part: Part) -> None:
    clients = [process for process in part.processes if process["process"].startswith("client")]
    first, last = min(each["started_seconds"] for each in clients), max(each["ended_seconds"] for each in clients)
    length = (last - first) / len(clients)
    for number, each in enumerate(clients):
        each.update(started_seconds=first + number * length, ended_seconds=first + (number + 1) * length)


@enter("ledger/in_flight_rejected", "answers 'key_in_flight'")
def the_rejected_one_is_replayed(part: Part) -> None:
    effect = part.journal("receiver/effects")[0]
    replay = {"outcome": "replayed", "reason": None, "status": 200, "effect": effect["id"]}
    part.data("receiver/arrivals", 3).update(replay, result_sha256=digest_of(effect))
    end = part.journal("client_02/requests")[1]
    end.update(type="response", data={"status": 200, "replayed": True, "result": effect["data"]["result"]})
    part.process("client_02")["exit_code"] = 0


@enter("ledger/in_flight_rejected", "answers 'replayed'")
def the_rejected_one_came_too_late(part: Part) -> None:
    arrivals = part.journal("receiver/arrivals")
    arrivals[1:4] = [arrivals[3], arrivals[1], arrivals[2]]


@enter("ledger/concurrent", "was served while another request under its key was in flight")
def a_replay_before_the_effect_was_answered(part: Part) -> None:
    arrivals = part.journal("receiver/arrivals")
    arrivals[12], arrivals[13] = arrivals[13], arrivals[12]


@enter("ledger/concurrent", "but the gate lets in by name")
def the_gate_let_in_by_chance(part: Part) -> None:
    first, second = part.data("receiver/arrivals", 1), part.data("receiver/arrivals", 2)
    first["sender"], second["sender"] = second["sender"], first["sender"]


@enter("ledger/concurrent", "was applied before all requests that it was to wait for had come")
def an_early_effect(part: Part) -> None:
    arrivals = part.journal("receiver/arrivals")
    arrivals.insert(11, arrivals.pop(12))


@enter("ledger/registry_full", "a receiver of the kind capacity answers 'refused'")
def a_full_registry_takes_one_more(part: Part) -> None:
    effects = part.journal("receiver/effects")
    body = b'{"answer":"The counter is now 2.","counter":2}'
    key = "registry_full-2"
    effects.append(again(effects[0], key, key=key, arrival="arrival-2", number=2, result=payload(body)))
    applied = {"outcome": "applied", "reason": None, "status": 200, "effect": key, "result_sha256": sha(body)}
    part.data("receiver/arrivals", 4).update(applied)
    end = {"status": 200, "replayed": False, "result": payload(body)}
    part.journal("client_2/requests")[1].update(type="response", data=end)


FULL = ("storage_full", "the disk is full; nothing was done", 507)
BROKEN = ("storage_failed", "the receiver cannot write; nothing was done", 503)


def _fails(part: Part, arrivals_line: int, client: str, failure: tuple[str, str, int]) -> None:
    """An answer becomes a failure of the receiver's storage, and all that a client has of it follows."""
    reason, sentence, status = failure
    text = f'{{"error":"{reason}","message":"{sentence}"}}'.encode()
    told = {"outcome": "failed", "reason": reason, "status": status, "effect": None, "result_sha256": sha(text)}
    part.data("receiver/arrivals", arrivals_line).update(told)
    end = {"outcome": "did_not_happen", "reason": "unavailable", "status": status}
    part.journal(f"{client}/requests")[1].update(type="outcome", data=end)


@enter("ledger/registry_full", "is 'failed', but by then a receiver of the kind capacity answers 'refused'")
def a_full_registry_is_a_full_disk(part: Part) -> None:
    _fails(part, 4, "client_2", FULL)


@enter("ledger/registry_full", "is 'storage_failed', but by then a receiver of the kind capacity answers 'registry_full'")
def a_full_registry_is_a_broken_disk(part: Part) -> None:
    _fails(part, 4, "client_2", BROKEN)


@enter("ledger/in_flight_rejected", "is 'failed', but by then a receiver of the kind keyed answers 'refused'")
def a_key_in_flight_is_a_full_disk(part: Part) -> None:
    _fails(part, 3, "client_02", FULL)


@enter("ledger/crash_torn", "would have written the effect 'crash_torn-1' next")
def a_torn_effect_is_whole(part: Part) -> None:
    part.data("receiver/effects", 1)["arrival"] = "arrival-1"
    part.data("receiver/arrivals", 3)["outcome"] = "replayed"


@enter(
    "ledger/append_after_torn_tail", "is an answer to the request of the client 'client_2', but its receiver died before that"
)
def an_answer_of_the_dead(part: Part) -> None:
    arrivals = part.journal("receiver/arrivals")
    refused = {"outcome": "refused", "reason": "key_missing", "effect": None}
    arrivals.insert(3, again(arrivals[1], "arrival-2", status=400, **refused))


@enter("ledger/corrupt_record", "was damaged then")
def a_damaged_journal_is_opened(part: Part) -> None:
    part.process("receiver", 2)["exit_code"] = 0


@enter("ledger/corrupt_record", "was damaged then")
def a_damaged_journal_and_ready(part: Part) -> None:
    part.process("receiver", 2)["ready"] = part.process("receiver", 1)["ready"]


@enter("ledger/torn_prefixes", "463 records, but the last line of")
def a_prefix_left_out(part: Part) -> None:
    part.journal("prefixes/prefixes").pop()


member("ledger/torn_prefixes", "prefixes/prefixes", 100, "kept", 2, "expected 1 of 2 records")
member("ledger/torn_prefixes", "prefixes/prefixes", 463, "kept", 1, "expected 2 of 2 records")
member("ledger/torn_prefixes", "prefixes/prefixes", 464, "after", 2, "expected 3 of 2 records")
member("ledger/torn_prefixes", "prefixes/prefixes", 7, "bytes", 7, "expected 6")
member("ledger/effect_then_key", "receiver/effects", 1, "status", 201, "a fresh effect of this arrival has 200")
member("ledger/effect_then_key", "receiver/keys", 1, "effect", "effect-1", "its effect has 'effect-2'")
member("ledger/effect_then_key", "receiver/keys", 1, "fingerprint", NOBODY, "but its effect has")
member("ledger/key_then_effect", "receiver/keys", 1, "status", 201, "its effect has 200")
member("ledger/conflict_422", "receiver/arrivals", 4, "status", 409, "expected (422,) for body_differs")
member("ledger/restart", "client_2/requests", 2, "replayed", False, "but")
member("ledger/replay", "receiver/arrivals", 1, "sender", "client_2", "a second arrival of")
of_process("ledger/concurrent", "client_07", 1, "exit_code", 10, "but the audit's own table has 0")
of_process("ledger/concurrent", "client_07", 1, "step", 3, "asks for 2")
of_process("ledger/corrupt_record", "receiver", 2, "ended_by", "kill", "but the audit's own table has 'itself'")


member(
    "ledger/in_flight_rejected", "client_02/requests", 2, "outcome", "may_have_happened",
    "is 'may_have_happened', but in_flight means 'did_not_happen'",
)  # fmt: skip
member(
    "ledger/crash_torn", "client_1/requests", 2, "outcome", "did_not_happen",
    "is 'did_not_happen', but connection_closed means 'may_have_happened'",
)  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES.by_name)
def test_a_careful_forgery_is_refused(name: str, whole: Whole, judge_real: Audit, tmp_path: Path) -> None:
    FORGERIES.refuse(name, whole, judge_real, tmp_path)

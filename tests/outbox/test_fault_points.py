"""Declared = reachable = fired: every fault point of the outbox halts a real process, and recovery makes the work whole."""

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.outbox.world import World, python, state, summary
from tests.support import Ended

ARMED = '{"question":"What is 6 times 7?"}'


def declared_points() -> list[str]:
    """What a process that has the outbox loaded, and nothing else, has declared."""
    code = (
        "import json, outbox.dispatcher, outbox.producer; from outbox import faults; print(json.dumps(list(faults.declared())))"
    )
    points: list[str] = json.loads(python(code).stdout)
    return points


@dataclass(frozen=True, slots=True)
class SetUp:
    """How a point is reached: what happens first, and which program is armed."""

    prepare: Callable[[World], None]
    armed: Callable[[World, str], Ended]


def produce_armed(world: World, point: str) -> Ended:
    return world.produce(body=ARMED, halt_at=point)


def dispatch_armed(world: World, point: str) -> Ended:
    return world.dispatch(halt_at=point)


def reconcile_armed(world: World, point: str) -> Ended:
    return world.dispatch("--policy", "reconcile", halt_at=point)


def nothing(_world: World) -> None:
    """An empty directory."""


def pending(world: World) -> None:
    """An intention, and a receiver that is up."""
    assert world.produce(body=ARMED).exit_code == 0
    world.start_receiver()


def in_doubt(world: World) -> None:
    """An attempt whose response nobody recorded."""
    pending(world)
    assert world.dispatch(halt_at="send.response").exit_code == 23


def refused(world: World) -> None:
    """An intention, and nobody who listens."""
    assert world.produce(body=ARMED).exit_code == 0


def torn_intention(world: World) -> None:
    assert world.produce(body=ARMED, halt_at="intention.append.torn").exit_code == 23
    assert not world.journal("intentions").read_bytes().endswith(b"\n")


def torn(record_type: str) -> Callable[[World], None]:
    def prepare(world: World) -> None:
        pending(world)
        assert world.dispatch(halt_at=f"{record_type}.append.torn").exit_code == 23

    return prepare


def without_newline(journal: str) -> Callable[[World], None]:
    def prepare(world: World) -> None:
        pending(world)
        # A second attempt of the same intention is what the armed pass would make; the journal has a record by then.
        assert world.dispatch().exit_code == 0
        path = world.journal(journal)
        path.write_bytes(path.read_bytes().removesuffix(b"\n"))

    return prepare


def set_ups() -> dict[str, SetUp]:
    table: dict[str, SetUp] = {}
    for stage in ("before", "torn", "written", "synced"):
        table[f"intention.append.{stage}"] = SetUp(nothing, produce_armed)
        table[f"outcome.append.{stage}"] = SetUp(refused, dispatch_armed)
        for record_type in ("attempt", "receipt", "history"):
            table[f"{record_type}.append.{stage}"] = SetUp(pending, dispatch_armed)
    for stage in ("before", "written", "synced"):
        table[f"intentions.create.{stage}"] = SetUp(nothing, produce_armed)
        table[f"intentions.repair.{stage}"] = SetUp(torn_intention, produce_armed)
        for journal, record_type in (("attempts", "attempt"), ("receipts", "receipt"), ("history", "history")):
            table[f"{journal}.create.{stage}"] = SetUp(pending, dispatch_armed)
            table[f"{journal}.repair.{stage}"] = SetUp(torn(record_type), dispatch_armed)
    for stage in ("before", "torn", "written", "synced"):
        table[f"inquiry.append.{stage}"] = SetUp(in_doubt, reconcile_armed)
    table["inquiry.before"] = SetUp(in_doubt, reconcile_armed)
    table["send.before"] = SetUp(pending, dispatch_armed)
    table["send.response"] = SetUp(pending, dispatch_armed)
    return table


SET_UPS = set_ups()
# A complete record that lacks its newline is repaired as well, by adding it.
NEWLINE_SET_UPS = [
    (f"{journal}.repair.{stage}", SetUp(without_newline(journal), produce_armed if journal == "intentions" else dispatch_armed))
    for journal in ("intentions", "attempts", "receipts", "history")
    for stage in ("before", "written", "synced")
]


def test_every_declared_point_has_a_set_up_and_every_set_up_a_point() -> None:
    assert sorted(declared_points()) == sorted(SET_UPS)


def halts_and_recovers(world: World, point: str, set_up: SetUp) -> None:
    set_up.prepare(world)
    ended = set_up.armed(world, point)
    assert (ended.exit_code, ended.signal) == (23, None)
    assert ended.stderr.splitlines()[-1] == f"halt(23) at {point}#1"
    assert ended.stdout == ""

    produced = world.produce(body=ARMED)
    assert produced.exit_code == 0, produced
    if world.receiver is None:
        world.start_receiver()
    passed = world.dispatch()
    assert passed.exit_code == 0, passed
    whole(world)

    before = state(world.outbox)
    again = world.dispatch()
    assert (again.exit_code, summary(again)) == (0, {"intentions": 1, "already_delivered": 1})
    assert state(world.outbox) == before


def whole(world: World) -> None:
    """One intention, delivered at least once, applied once, one receipt and one history record that agree."""
    (intention,) = world.records("intentions")
    (effect,) = world.records("effects")
    (receipt,) = world.records("receipts")
    (turn,) = world.records("history")
    assert intention["data"]["body"]["content"] == ARMED
    assert effect["data"]["fingerprint"] == intention["data"]["fingerprint"] == receipt["data"]["fingerprint"]
    assert receipt["data"]["result"] == effect["data"]["result"]
    assert turn["data"] == {"question": intention["data"]["body"], "answer": receipt["data"]["result"]}
    attempts = world.records("attempts", "attempt")
    assert [each["data"]["number"] for each in attempts] == list(range(1, len(attempts) + 1))
    assert 1 <= len(world.records("arrivals", "arrival")) <= len(attempts)


@pytest.mark.parametrize("point", sorted(SET_UPS))
def test_a_process_halts_at_the_point_and_recovery_makes_one_effect_receipt_and_turn(world: World, point: str) -> None:
    halts_and_recovers(world, point, SET_UPS[point])


@pytest.mark.parametrize(("point", "set_up"), NEWLINE_SET_UPS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_process_halts_while_it_adds_a_missing_newline_and_recovery_keeps_the_record(
    world: World, point: str, set_up: SetUp
) -> None:
    halts_and_recovers(world, point, set_up)


@pytest.mark.parametrize("point", ["outcome.append.before", "outcome.append.torn", "outcome.append.written", "send.response"])
def test_a_halt_around_the_record_of_a_conflict_leaves_the_earlier_effect_alone(world: World, point: str) -> None:
    world.start_receiver()
    assert world.produce(body="first").exit_code == 0
    assert world.dispatch().exit_code == 0
    earlier = world.journal("effects").read_bytes()
    # Another outbox says something else under the same key.
    world.outbox = world.outbox.with_name("other")
    assert world.produce(body="second").exit_code == 0
    ended = world.dispatch(halt_at=point)
    assert (ended.exit_code, ended.stderr) == (23, f"halt(23) at {point}#1\n")
    assert world.dispatch().exit_code == 11
    assert world.journal("effects").read_bytes() == earlier
    assert (world.records("receipts"), world.records("history")) == ([], [])
    assert [each["data"]["number"] for each in world.records("attempts", "attempt")] == [1, 2]


@pytest.mark.parametrize("point", ["receipt.append.before", "send.response"])
def test_after_a_halt_behind_the_response_the_keyed_receiver_replays(world: World, point: str) -> None:
    pending(world)
    assert world.dispatch(halt_at=point).exit_code == 23
    assert world.counts() == (1, 0, 0)
    assert world.dispatch().exit_code == 0
    assert world.counts() == (1, 1, 1)
    (receipt,) = world.records("receipts")
    assert (receipt["data"]["replayed"], receipt["data"]["attempt"]) == (True, 2)


def test_after_a_halt_behind_the_receipt_nothing_is_sent_again(world: World) -> None:
    pending(world)
    assert world.dispatch(halt_at="receipt.append.synced").exit_code == 23
    passed = world.dispatch()
    assert summary(passed) == {"intentions": 1, "already_delivered": 1, "history_added": 1}
    assert len(world.records("arrivals", "arrival")) == 1

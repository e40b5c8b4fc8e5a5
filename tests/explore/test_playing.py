"""Cases played with real processes: planted bugs are found, shrunk and replayed; each mode works end to end."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from scenarios.engine.stage import StepFailed
from scenarios.engine.supervisor import Supervisor
from scenarios.errors import HarnessBug
from scenarios.explore import results
from scenarios.explore.campaign import CASES
from scenarios.explore.levels import FIRST, PAUSES, POINTS, WIRE, Deeper
from scenarios.explore.model import Case, Cut, Reached, Role, Subject, deaths
from scenarios.explore.rounds import KEEP_FAILED, Play, Played
from scenarios.explore.subjects import SUBJECTS, wired
from scenarios.explore.tenants import Houses
from scenarios.explore.verdicts import HELD, VIOLATED
from scenarios.power.events import CREATE, DIRECTORY, WRITE, Event
from scenarios.power.promises import View
from scenarios.power.recording import Recording
from tests.explore.ground import (
    EFFECT_THEN_KEY,
    KEYED,
    MARK_FIRST,
    SMALL_BROKEN,
    UNARMED,
    UNKEYED,
    Ground,
    changed,
    named,
    only,
    plan,
    program,
    told_by,
)
from tests.explore.test_campaign import main
from tests.support import ROOT

# Points of what is wrong on purpose: receivers that keep keys apart from effects, and a scan that commits step by step.
MISTAKES = ("key.", "keys.", "recorded.")
LOST_LINE = (
    "VIOLATED (lost) small/broken/send.before#1: dispatcher died at send.before#1 in round 1 (sender: 1 intention, 1 attempt, "
    "1 receipt, 0 history records; receiver: 0 arrivals, 0 effects, 0 answers); in the end 0 effects, 1 receipts, 0 history, "
    "0 arrivals: lost: first was promised and has 0 effects, and a receipt says that it was"
)


def test_a_planted_bug_is_found_and_its_printed_line_plays_it_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("explore", "--subject", "small/*", "--out", tmp_path / "out", subjects=(SMALL_BROKEN,)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"FAIL {tmp_path / 'out'}: 19 cases, 3 violated, 0 unknown") for line in lines)
    failed = [number for number, result in enumerate(told_by(tmp_path / "out").values()) if result["verdict"] != HELD]
    assert sorted(path.name for path in (tmp_path / "out" / CASES).iterdir()) == [f"{number:06d}" for number in failed]
    again = lines[lines.index(LOST_LINE) + 1].removeprefix("  again: ")
    python, program_, *arguments = shlex.split(again)
    assert (python, program_, arguments[-2:]) == ("python", "run.py", ["--out", "NEW_DIR"])
    assert main(*arguments[:-1], tmp_path / "again", subjects=(SMALL_BROKEN,)) == 1
    assert capsys.readouterr().out.splitlines() == [LOST_LINE, f"files: {tmp_path / 'again' / 'case'}"]
    assert (tmp_path / "again" / "case" / "outbox" / "receipts.jsonl").is_file()


def test_a_failing_case_is_shrunk_to_the_fault_that_matters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = "small/broken/attempt.append.torn#1+send.before#1"
    assert main("shrink", long, "--out", tmp_path / "out", subjects=(SMALL_BROKEN,)) == 1
    told, again = capsys.readouterr().out.splitlines()
    assert told == LOST_LINE
    assert again == "  again: python run.py replay 'small/broken/send.before#1' --out NEW_DIR"


def test_a_case_that_holds_cannot_be_shrunk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("shrink", "small/keyed/send.before#1", "--out", tmp_path / "out", subjects=(KEYED,)) == 0
    assert "there is nothing to shrink: the case does not fail" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("which", "struck", "kinds"),
    [
        (MARK_FIRST, "send.before#1", ("lost",)),
        (EFFECT_THEN_KEY, "effect.append.synced#1", ("duplicate",)),
        (KEYED, "effect.append.synced#1", ()),
        (KEYED, "effect.append.torn#1", ()),
        (UNKEYED, "effect.append.synced#1", ()),
        (replace(UNKEYED, allowed=KEYED.allowed), "effect.append.synced#1", ("duplicate",)),
        (KEYED, "receipt.append.torn#1+receipts.repair.written#1", ()),
        (KEYED, "effect.append.torn#1+receipt.append.torn#1+history.append.torn#1", ()),
    ],
)
def test_one_death_shows_what_a_sender_or_receiver_is_worth(
    ground: Ground, tmp_path: Path, which: Subject, struck: str, kinds: tuple[str, ...]
) -> None:
    played = ground.play(named(which, struck), tmp_path / "case")
    assert (played.verdict.kinds, played.verdict.doubts) == (kinds, ())
    assert [left.death for left in played.left] == list(played.case.faults)


def test_a_receiver_that_its_own_death_keeps_from_serving_is_stuck(ground: Ground, tmp_path: Path) -> None:
    never_again = changed(KEYED, "receiver", "never_again")
    played = ground.play(named(never_again, "receiver:effect.append.torn#1"), tmp_path / "case")
    assert (played.verdict.kinds, played.verdict.doubts) == (("stuck",), ())
    assert [each.child.ended.result().exit_code for each in played.processes if each.name == "receiver"] == [23, 14, 14, 14]


def test_a_receiver_that_a_loss_of_power_keeps_from_serving_is_stuck(ground: Ground, tmp_path: Path) -> None:
    made = [Event(DIRECTORY, "receiver", "receiver"), Event(CREATE, "receiver", "receiver/effects.jsonl")]
    events = (*made, Event(WRITE, "receiver", "receiver/effects.jsonl", data=b"no record\n"))
    nothing = View({}, {}, {}, {}, {})
    recording = Recording(events, (nothing,) * 4, frozenset({"receiver"}), {})
    last = max(image for call, image in recording.places if call == 3)
    image = next(n for n in range(1, last + 1) if (recording.image((3, n)) or {}).get("receiver/effects.jsonl"))
    played = ground.play(named(KEYED, f"power:3.{image}"), tmp_path / "case", recording=recording)
    assert (played.verdict.kinds, played.verdict.doubts) == (("lost", "stuck"), ())
    # It refused in its house; that it does so alone is what an audit can read.
    assert {each.child.ended.result().exit_code for each in played.processes if each.name == "receiver"} == {14}


def test_a_receiver_that_never_served_is_a_doubt(ground: Ground, tmp_path: Path) -> None:
    refusing = replace(
        KEYED, roles=tuple(replace(r, program=program("receiver", "exit", "14")) if r.server else r for r in KEYED.roles)
    )
    played = ground.play(named(refusing, "receipt.append.before#1"), tmp_path / "case", houses=None)
    assert "expected its READY line, but it ended with exit code 14" in played.verdict.doubts[0]


def test_what_a_death_left_is_told_on_both_sides(ground: Ground, tmp_path: Path) -> None:
    (left,) = ground.play(named(KEYED, "receipt.append.torn#1"), tmp_path / "case").left
    assert left.state.torn == ("receipts.jsonl",)
    assert left.state.told.startswith(
        "sender: 1 intention, 1 attempt, 0 receipts, 0 history records; receiver: 1 arrival, 1 effect, 1 answer; "
        "receipts.jsonl ends in "
    )


def test_a_second_death_strikes_in_the_recovery_and_states_that_were_met_are_not_gone_into(
    ground: Ground, tmp_path: Path
) -> None:
    few = only(UNARMED, "small/deep", Role(program("often", "often", "3"), owns=("send",)))
    campaign = ground.campaign(plan(few, depth=2), tmp_path)
    assert list(told_by(tmp_path)) == [
        *(f"small/deep/often:send.before#{number}" for number in (1, 2, 3)),
        *(f"small/deep/often:send.before#1+often:send.before#{number}" for number in (1, 2, 3)),
    ]
    totals = campaign.totals
    assert (totals.cases, totals.held, totals.unknown, totals.pruned, totals.fired) == (6, 6, 0, 2, {"send.before"})


def test_what_others_come_to_because_of_a_death_is_struck_in_its_round(ground: Ground, tmp_path: Path) -> None:
    """The sender records an unknown outcome only where the receiver died under it."""
    first = named(KEYED, "effect.append.torn#1")
    played = ground.play(first, tmp_path / "first", observe=True, restart_servers=True)
    with results.Results(tmp_path, 0) as written:
        written.put(0, results.line(played, reached=True))
    derived = ground.derive(KEYED, tmp_path / "base")
    beside = [case for case in Deeper(derived, POINTS, tmp_path, 0, 1) if len(case.rounds) == 1]
    stages = ("before", "torn", "written", "synced")
    assert [str(case) for case in beside] == [f"{first}&outcome.append.{stage}#1" for stage in stages]
    for case in beside[:2]:
        again = ground.play(case, tmp_path / str(len(str(case))))
        assert (again.verdict.outcome, {left.death for left in again.left}) == (HELD, set(case.faults))


def test_deaths_beside_a_cut_are_each_tried_once(ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = Cut("cut-response:headers")
    monkeypatch.setitem(FIRST, WIRE, lambda derived: iter([Case(derived.subject, ((cut,),))]))
    beside = [Role(program(name, "often", "1")) for name in ("one", "two")]
    campaign = ground.campaign(plan(only(UNARMED, "small/wire", *beside), mode=WIRE, depth=3), tmp_path)
    one, two = "&one:send.before#1", "&two:send.before#1"
    assert list(told_by(tmp_path)) == [
        f"small/wire/wire:cut-response:headers#1{deaths}" for deaths in ("", one, two, one + two)
    ]
    assert (campaign.totals.held, campaign.totals.unknown) == (4, 0)


@pytest.mark.parametrize(
    ("cut", "effects"),
    [
        ("cut-request:headers", 1),
        ("reset-response:body-middle", 1),
        ("duplicate-request", 1),
        ("redirect", 1),
        ("unreadable-success", 1),
    ],
)
def test_a_keyed_receiver_survives_the_wire(ground: Ground, tmp_path: Path, cut: str, effects: int) -> None:
    played = ground.play(named(wired(KEYED), f"wire:{cut}#1"), tmp_path / "case")
    assert played.verdict.outcome == HELD, played.verdict
    assert played.state is not None
    assert sum(played.state.effects.values()) == effects


def test_what_the_network_doubles_is_two_effects_without_keys(ground: Ground, tmp_path: Path) -> None:
    strict = replace(wired(UNKEYED), allowed=KEYED.allowed)
    assert ground.play(named(strict, "wire:duplicate-request#1"), tmp_path / "case").verdict.kinds == ("duplicate",)


def test_who_is_stopped_is_overtaken_and_goes_on(ground: Ground, tmp_path: Path) -> None:
    campaign = ground.campaign(plan(KEYED, mode=PAUSES, budget=2), tmp_path)
    assert (campaign.totals.cases, campaign.totals.held) == (2, 2)
    played = ground.play(named(KEYED, "pause:send.response#1"), tmp_path / "case")
    assert (played.verdict.outcome, played.left) == (HELD, [])
    assert [process.name for process in played.processes if "dispatcher" in process.name][:2] == [
        "dispatcher",
        "other_dispatcher",
    ]


@pytest.fixture
def houses(ground: Ground) -> Iterator[Houses]:
    """A house of its own, which a test may ruin."""
    made = Houses(ground.room.supervisor, ROOT, 1)
    ground.do(made.__aenter__())
    yield made
    ground.do(made.__aexit__(None, None, None))


def test_a_receiver_that_refuses_to_open_leaves_its_house_in_order(ground: Ground, tmp_path: Path, houses: Houses) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "effects.jsonl").write_text("no record\n")

    async def ask() -> None:
        async with houses.lent() as house:
            for bad in (["keyed", "--dir", str(damaged)], ["keyed", "--dir", str(tmp_path), "--port", "70000"]):
                with pytest.raises(StepFailed, match=r"was to be opened, and refused: (DamagedJournal|BadInput)"):
                    await house.open(bad)
            await house.close(await house.open(["keyed", "--dir", str(tmp_path / "good")]))

    ground.do(ask())


def test_a_house_that_is_gone_is_no_verdict_on_a_case(ground: Ground, tmp_path: Path, houses: Houses) -> None:
    async def ask() -> None:
        async with houses.lent() as house:
            ground.room.supervisor.signal(house._child, signal.SIGKILL)
            await house._child.wait_ended(5)
            with pytest.raises(HarnessBug, match="the house of receivers has ended"):
                await house.open(["keyed", "--dir", str(tmp_path)])

    ground.do(ask())
    with pytest.raises(HarnessBug, match="the house of receivers has ended"):
        ground.play(named(KEYED, "send.before#1"), tmp_path / "case", houses=houses)


def test_a_house_tells_why_it_ended(ground: Ground, houses: Houses) -> None:
    async def ask() -> None:
        async with houses.lent() as house:
            with pytest.raises(HarnessBug, match="invalid choice: 'nonsense'"):
                await house.open(["nonsense", "--dir", "x"])

    ground.do(ask())


def test_a_tenant_and_a_process_of_its_own_are_one_receiver(ground: Ground, tmp_path: Path) -> None:
    case = named(KEYED, "receipt.append.torn#1")
    shared = ground.play(case, tmp_path / "shared")
    alone = ground.play(case, tmp_path / "alone", houses=None)
    assert len(alone.processes) == len(shared.processes) + 1
    assert same(shared) == same(alone)


def same(played: Played) -> dict[str, object]:
    """A result without the number of processes."""
    return {name: value for name, value in results.line(played, reached=False).items() if name != "processes"}


@pytest.mark.campaign
def test_new_interpreters_come_to_the_same_verdicts(ground: Ground, tmp_path: Path) -> None:
    cases = [named(SMALL_BROKEN, "send.before#1"), named(KEYED, "effect.append.torn#1")]

    async def play() -> list[Played]:
        async with Supervisor(ROOT, "exec") as supervisor:
            room = replace(ground.room, supervisor=supervisor, houses=None, keep=KEEP_FAILED)
            return [await Play(case, room, tmp_path / f"exec-{number}").run() for number, case in enumerate(cases)]

    executed = ground.do(play())
    assert [played.verdict.outcome for played in executed] == [VIOLATED, HELD]
    assert [same(played) for played in executed] == [
        same(ground.play(case, tmp_path / f"fork-{number}")) for number, case in enumerate(cases)
    ]


@pytest.mark.campaign
def test_every_point_that_is_declared_is_reached_by_a_subject(ground: Ground, tmp_path: Path) -> None:
    """Each point is a case at depth 1, or at depth 2 one that a torn write or an unknown outcome leads to, in the recovery or
    with another process in the same round."""

    def reached_in(case: Case) -> list[Reached]:
        played = ground.play(case, tmp_path / str(case).replace("/", "."), observe=True, restart_servers=True)
        assert played.verdict.outcome == HELD, played.verdict
        return played.reached

    # Asked of another process: what is declared in this one depends on which tests ran in it before.
    listed = subprocess.run([sys.executable, "run.py", "points", "--json"], cwd=ROOT, capture_output=True, check=True)
    missing = {each["point"] for each in json.loads(listed.stdout) if not each["point"].startswith(MISTAKES)}
    torn: dict[str, Case] = {}
    unknown: list[Case] = []
    for which in SUBJECTS:
        for reached in reached_in(Case(which)):
            for death in deaths(reached):
                missing.discard(death.point)
                case = Case(which, ((death,),))
                if death.point.endswith(".torn"):
                    torn.setdefault(death.point, case)
                elif death.point.endswith(".response") and death.occurrence == 1:
                    unknown.append(case)
    for case in (*torn.values(), *unknown):
        if missing:
            missing -= {death.point for reached in reached_in(case) for death in deaths(reached)}
    assert sorted(missing) == [], "no subject comes to these points"

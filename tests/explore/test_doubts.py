"""Green is expensive: where a pass would mean nothing, the verdict is UNKNOWN, with what to mend, and the exit code is 3."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from scenarios.explore.command import Exploring, explore
from scenarios.explore.model import Role, Subject
from scenarios.explore.state import Place, State, Unreadable, unread
from scenarios.explore.verdicts import LOST, UNKNOWN
from tests.explore.ground import KEYED, MARK_FIRST, UNARMED, Ground, changed, named, only, plan, program, told_by


def beside(name: str, *arguments: str) -> Subject:
    """The small subject with a program of this name at the end of each round."""
    return only(KEYED, f"doubtful/{name}", Role(program("other", name, *arguments), owns=("send",)))


def blind(place: Place) -> State:
    """Reads everything but effects: of these it always tells one."""
    return replace(KEYED.read(place), effects={"first": 1})


def doubled(place: Place) -> State:
    """Counts every effect but the first twice."""
    state = KEYED.read(place)
    return replace(state, effects={key: count if key == "first" else 2 * count for key, count in state.effects.items()})


def once(place: Place) -> State:
    """Sees every key, and counts none of them twice."""
    state = KEYED.read(place)
    return replace(state, effects=dict.fromkeys(state.effects, 1))


DOUBTFUL = (
    (beside("noise"), "two runs without faults left other files; what differs by chance cannot be compared"),
    (beside("fickle"), "two runs without faults reached other points: for instance other at send.before in round 1: 1 and 2"),
    (replace(UNARMED, name="doubtful/points"), "no point was reached, so there is nothing to arm"),
    (replace(KEYED, read=blind), "an effect was planted, and 0 more are counted; the counter is blind"),
    (replace(KEYED, read=doubled), "an effect was planted, and 2 more are counted"),
    (replace(KEYED, read=once), "1 are counted of first, not 2; the counter is blind to a duplicate"),
    (replace(KEYED, plant=program("planted", "exit", "9")), "the effect that was to be planted was refused (exit code 9)"),
    (replace(KEYED, plant=program("planted", "exit", "0")), "an effect was planted, and 0 more are counted"),
    (beside("exit", "9"), "does not hold without any fault: after the last round: "),
    (beside("exit", "23"), "ended with 23, the injected halt, though nothing was armed"),
    (beside("signal", "6"), "other (incarnation 1) was ended by SIGABRT, which nobody had sent"),
    (replace(KEYED, operations=("nobody's",)), "does not hold without any fault: nobody's was promised and has 0 effects"),
)


@pytest.mark.parametrize(("which", "why"), DOUBTFUL, ids=[why[:40] for _which, why in DOUBTFUL])
def test_a_subject_that_proves_nothing_gives_no_cases(ground: Ground, tmp_path: Path, which: Subject, why: str) -> None:
    derived = ground.derive(which, tmp_path / "base")
    assert len(derived.doubts) == 1
    assert why in derived.doubts[0]
    assert derived.doubts[0].startswith(which.name)


def test_a_campaign_of_a_doubtful_subject_ends_with_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = Exploring(tmp_path / "out", plan(replace(KEYED, read=blind)), "fork")
    assert explore(asked, io.StringIO()) == 3
    printed = capsys.readouterr().out
    assert "UNKNOWN: small/keyed: an effect was planted" in printed
    assert f"UNKNOWN {tmp_path / 'out'}: 0 cases, 0 violated, 0 unknown" in printed
    assert "PASS" not in printed


def test_a_subject_in_doubt_does_not_keep_the_others_from_being_explored(ground: Ground, tmp_path: Path) -> None:
    campaign = ground.campaign(plan(replace(KEYED, name="doubtful/blind", read=blind), KEYED, budget=2), tmp_path)
    assert [bool(derived.doubts) for derived in campaign.derived] == [True, False]
    assert (campaign.totals.cases, campaign.totals.held) == (2, 2)


def test_an_armed_point_that_does_not_fire_is_unknown(ground: Ground, tmp_path: Path) -> None:
    which = beside("shy")
    played = ground.play(named(which, "other:send.before#1"), tmp_path / "case")
    assert played.verdict.outcome == UNKNOWN
    assert played.verdict.doubts == (
        "round 1: other was armed at send.before#1 and did not halt there; this run is not the one that the case was derived "
        "from: derive again",
    )


@pytest.mark.parametrize("faults", ["send.before#7", "history.append.synced#1+send.before#1"])
def test_an_occurrence_that_never_comes_is_unknown(ground: Ground, tmp_path: Path, faults: str) -> None:
    assert ground.play(named(KEYED, faults), tmp_path / "case").verdict.outcome == UNKNOWN


def test_a_stop_that_never_comes_is_unknown(ground: Ground, tmp_path: Path) -> None:
    verdict = ground.play(named(KEYED, "pause:send.before#7"), tmp_path / "case").verdict
    assert verdict.outcome == UNKNOWN
    assert "was to be stopped at send.before#7 and ended before; derive again" in verdict.doubts[0]


def test_a_recovery_that_does_nothing_is_unknown(ground: Ground, tmp_path: Path) -> None:
    which = changed(KEYED, "dispatcher", "first_only")
    verdict = ground.play(named(which, "send.before#1"), tmp_path / "case").verdict
    assert verdict.outcome == UNKNOWN
    assert "recovery did nothing" in " ".join(verdict.doubts)


def test_a_server_that_does_not_come_up_is_unknown(ground: Ground, tmp_path: Path) -> None:
    producer, receiver, dispatcher = KEYED.roles
    which = replace(KEYED, roles=(producer, replace(receiver, program=program("receiver", "exit", "9")), dispatcher))
    verdict = ground.play(named(which, "none"), tmp_path / "case").verdict
    assert verdict.outcome == UNKNOWN
    assert "round 1: receiver (incarnation 1): expected its READY line, but it ended with exit code 9" in verdict.doubts[0]


def test_a_doubt_and_a_violation_are_both_told(ground: Ground, tmp_path: Path) -> None:
    """The second death never comes; the first has lost the operation all the same."""
    verdict = ground.play(named(MARK_FIRST, "send.before#1+send.before#1"), tmp_path / "case").verdict
    assert verdict.outcome == UNKNOWN
    assert LOST in verdict.kinds


@pytest.mark.parametrize("error", [KeyError("result"), Unreadable("receiver/effects.jsonl: OSError: it is a directory")])
def test_a_reader_that_fails_is_a_doubt_of_its_case_and_nothing_is_said_of_the_rest(
    ground: Ground, tmp_path: Path, error: Exception
) -> None:
    def failing(place: Place) -> State:
        if (place.directory / "receiver" / "effects.jsonl").exists():
            raise error
        return KEYED.read(place)

    played = ground.play(named(replace(KEYED, read=failing), "none"), tmp_path / "case")
    assert (played.verdict.outcome, played.verdict.violations, played.state) == (UNKNOWN, (), unread())
    said = f"its reader failed: KeyError: {error}" if isinstance(error, KeyError) else str(error)
    assert played.verdict.doubts[-1].endswith(f"what is durable cannot be read: {said}")


def test_what_cannot_be_prepared_is_a_doubt_about_the_subject(ground: Ground, tmp_path: Path) -> None:
    """A program that runs once is run before any server is up."""
    which = replace(KEYED, roles=(*KEYED.roles[:-1], replace(KEYED.roles[-1], once=True)))
    campaign = ground.campaign(plan(which), tmp_path)
    assert campaign.totals.cases == 0
    (doubt,) = campaign.derived[0].doubts
    assert (
        "small/keyed: what its cases begin with could not be prepared: dispatcher (incarnation 1): expected exit code 0"
        in doubt
    )


def test_a_case_in_doubt_keeps_its_files_and_is_told_in_the_results(ground: Ground, tmp_path: Path) -> None:
    campaign = ground.campaign(plan(only(UNARMED, "small/shy", Role(program("other", "shy"), owns=("send",)))), tmp_path)
    assert (campaign.totals.cases, campaign.totals.unknown) == (1, 1)
    assert "did not halt there" in told_by(tmp_path)["small/shy/other:send.before#1"]["doubts"][0]
    (kept,) = (tmp_path / "cases").iterdir()
    assert (kept / "processes.json").is_file()

"""Mode random: histories are data that survives, one seed gives one history, and they are played and judged as other cases."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from outbox.errors import BadInput
from scenarios.engine.study import ROOT
from scenarios.explore import canary, generate, randoms, results, seeds
from scenarios.explore.canary import subject as canary_subject
from scenarios.explore.cast import cast, judged, points
from scenarios.explore.command import find
from scenarios.explore.histories import History, Named, Step, parse
from scenarios.explore.model import Case, Cut, Death, Subject
from scenarios.explore.player import play
from scenarios.explore.rounds import KEEP_ALL, Played
from tests.explore.ground import KEYED, MARK_FIRST, UNKEYED, Ground, plan, subject

JOURNAL, DISPATCH = subject("journal/keyed"), subject("dispatch/keyed")
RUN_DISPATCHER = {"do": "run", "process": "dispatcher"}


def history(*steps: dict[str, Any], operations: int = 1, wire: tuple[dict[str, Any], ...] = ()) -> History:
    return parse({"operations": operations, "wire": list(wire), "steps": list(steps)})


def struck(step: dict[str, Any], how: str, at: str, *meanwhile: dict[str, Any]) -> dict[str, Any]:
    return {**step, "fault": {"how": how, "at": at}, **({"meanwhile": list(meanwhile)} if meanwhile else {})}


def played(ground: Ground, which: Subject, told: History, directory: Path) -> Played:
    room = replace(ground.room, keep=KEEP_ALL)
    return ground.do(play(Case(which, history=Named("told", told)), room, directory))


def endings(result: Played) -> list[tuple[str, int | None, str | None]]:
    return [
        (each.name, each.child.ended.result().exit_code, each.child.ended.result().signal)
        for each in result.processes
        if not each.program.module.startswith("receivers")
    ]


@pytest.mark.parametrize("which", [JOURNAL, DISPATCH, subject("dispatch-operator/keyed")], ids=lambda each: each.name)
def test_a_seed_gives_one_history_and_its_json_is_the_history_again(which: Subject) -> None:
    first = [generate.of_seed(which, seed) for seed in range(6)]
    assert first == [generate.of_seed(which, seed) for seed in range(6)]
    assert len(set(first)) == 6
    for each in first:
        assert parse(json.loads(json.dumps(each.data()))) == each
        assert judged(which, Named("0", each))  # every process and point of it is there


def test_a_plan_of_any_length_makes_each_history_when_its_turn_comes() -> None:
    endless = randoms.of_plan(JOURNAL, 1, 10**9, 1)
    assert len(endless) == 10**9
    assert [str(each) for each in islice(endless, 3)] == [str(each) for each in randoms.of_plan(JOURNAL, 1, 3, 1)]


def test_a_history_is_the_same_whatever_else_is_loaded() -> None:
    before = points(JOURNAL, "receiver"), generate.of_seed(JOURNAL, 4)
    from scenarios.oracle import variants  # noqa: PLC0415 - it declares points of its own

    assert variants.VARIANTS
    assert (points(JOURNAL, "receiver"), generate.of_seed(JOURNAL, 4)) == before


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"operations": 0, "wire": [], "steps": []}, "operations"),
        ({"operations": 1, "steps": []}, "members"),
        ({"operations": 1, "wire": [], "steps": [{"do": "sleep"}]}, "run, serve, kill, clock"),
        ({"operations": 1, "wire": [], "steps": [{"do": "clock", "seconds": 1e9}]}, "whole number"),
        ({"operations": 1, "wire": [], "steps": [{"do": "run"}]}, "members"),
        ({"operations": 1, "wire": [], "steps": [struck(RUN_DISPATCHER, "halt", "no.such.point#1")]}, "no fault point"),
        ({"operations": 1, "wire": [], "steps": [struck(RUN_DISPATCHER, "burn", "send.before#1")]}, "halt, kill, stop"),
        ({"operations": 1, "wire": [], "steps": [struck(RUN_DISPATCHER, "halt", "send.before#1", {"do": "kill"})]}, "stopped"),
        ({"operations": 1, "wire": [{"connection": 1, "fault": "lightning"}], "steps": []}, "lightning"),
        ({"operations": 1, "wire": [{"connection": 1, "fault": "redirect"}] * 2, "steps": []}, "twice"),
    ],
)
def test_what_means_nothing_any_more_is_refused_with_the_reason(told: dict[str, Any], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        parse(told)


def test_a_process_that_the_subject_has_not_is_refused() -> None:
    with pytest.raises(BadInput, match="no process accountant"):
        judged(JOURNAL, Named("x", history({"do": "run", "process": "accountant"})))


def test_a_subject_is_cast_with_a_producer_for_each_operation_and_others_stay_as_they_are() -> None:
    assert cast(JOURNAL, 3).operations == ("first", "second", "third")
    assert len(cast(DISPATCH, 3).operations) == 3
    operated = subject("dispatch-operator/keyed")
    assert cast(operated, 3) == operated


def test_the_faults_of_a_history_are_counted_for_a_receiver_without_keys() -> None:
    told = history(
        struck({"do": "serve"}, "kill", "effect.append.written#1"),
        {"do": "kill"},
        struck(RUN_DISPATCHER, "stop", "send.response#1", RUN_DISPATCHER),
        wire=({"connection": 2, "fault": "duplicate-request"},),
    )
    case = judged(UNKEYED, Named("x", told))
    assert case.faults == (
        Cut("duplicate-request", 2),
        Death("receiver", "effect.append.written"),
        Death("dispatcher", "send.response"),
    )
    assert case.subject.allowed.up_to(case) == 4
    assert str(case) == "small/unkeyed/random:x"


def test_deaths_kills_and_stops_come_where_they_are_told_and_the_rest_recovers(ground: Ground, tmp_path: Path) -> None:
    told = history(
        {"do": "run", "process": "producer"},
        struck(RUN_DISPATCHER, "halt", "send.response#1"),
        {"do": "clock", "seconds": 700},
        struck(RUN_DISPATCHER, "kill", "receipt.append.torn#1"),
        struck({"do": "run", "process": "second_producer"}, "halt", "intention.append.torn#1"),
        struck(RUN_DISPATCHER, "stop", "send.before#1", {"do": "kill"}, RUN_DISPATCHER),
        struck({"do": "serve"}, "stop", "effect.append.written#1"),
        RUN_DISPATCHER,
        operations=2,
    )
    result = played(ground, JOURNAL, told, tmp_path / "case")
    assert result.verdict.outcome == "held", result.verdict
    assert endings(result)[:7] == [
        ("producer", 0, None),
        ("dispatcher", 23, None),
        ("dispatcher", None, "SIGKILL"),
        ("second_producer", 23, None),
        ("dispatcher", 10, None),
        ("other_dispatcher", 13, None),
        ("dispatcher", 0, None),
    ]
    assert [(left.death.point, left.round) for left in result.left] == [
        ("send.response", 2),
        ("receipt.append.torn", 4),
        ("intention.append.torn", 5),
    ]
    assert results.line(result, reached=False)["history"] == told.data()


def test_whoever_waits_for_a_stopped_receiver_is_killed_and_the_receiver_finishes(ground: Ground, tmp_path: Path) -> None:
    told = history(
        {"do": "run", "process": "producer"},
        struck({"do": "serve"}, "stop", "effect.append.before#1"),
        RUN_DISPATCHER,
    )
    result = played(ground, UNKEYED, told, tmp_path / "case")
    assert endings(result)[1][1:] == (None, "SIGKILL")
    assert result.state is not None
    # The effect was applied for nobody, and once more when the operation was sent again.
    assert result.state.effects == {"first": 2}
    assert result.verdict.outcome == "held"


def test_a_broken_sender_is_found_and_its_history_shrunk_and_kept(ground: Ground, tmp_path: Path) -> None:
    failing = history({"do": "run", "process": "producer"}, {"do": "kill"}, RUN_DISPATCHER)
    assert played(ground, MARK_FIRST, failing, tmp_path / "case").verdict.kinds == ("lost",)

    def fails(told: History) -> bool:
        return any(step.do == "kill" for step in told.steps)

    seed = next(seed for seed in range(20) if fails(generate.of_seed(MARK_FIRST, seed)))
    smallest = generate.shrunk(MARK_FIRST, seed, fails, 500)
    assert smallest.steps == (Step("kill"),)
    path = seeds.write(tmp_path / "seeds", MARK_FIRST.name, str(seed), smallest, {"kinds": ["lost"], "violations": []})
    assert seeds.read_all(tmp_path / "seeds") == [seeds.Kept(MARK_FIRST.name, Named(f"broken-mark-first-{seed}", smallest))]
    assert randoms.named(MARK_FIRST, path.stem, path.parent).history == smallest
    with pytest.raises(BadInput, match="not of journal/keyed"):
        randoms.named(JOURNAL, path.stem, path.parent)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("bad.json", "{", "no JSON"),
        ("Bad.json", "{}", "lower-case"),
        ("bad.json", '{"format": "halt23.seed", "format_version": 2}', "version 1"),
        ("bad.json", '{"format": "halt23.seed", "format_version": 1, "subject": "a/b", "history": {}}', "members"),
    ],
)
def test_a_seeds_file_that_cannot_be_played_is_named_with_the_reason(tmp_path: Path, name: str, text: str, why: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match=rf"{name}: .*{why}"):
        seeds.read_all(tmp_path)


def test_a_case_of_a_seed_and_of_a_file_are_found_by_name(tmp_path: Path) -> None:
    case = find("journal/keyed/random:7")
    assert case.history == Named("7", generate.of_seed(JOURNAL, 7))
    told = history(RUN_DISPATCHER)
    path = seeds.write(tmp_path / "seeds", JOURNAL.name, "7", told, {"kinds": [], "violations": []})
    assert find(str(path)).history == Named("journal-keyed-7", told)
    with pytest.raises(BadInput, match="expected a seed"):
        find("journal/keyed/random:-1")


def test_what_is_kept_in_the_checkout_can_be_played() -> None:
    for kept in seeds.read_all(ROOT / seeds.FOLDER):
        assert judged(find(f"{kept.subject}/none").subject, kept.named)


def test_the_canary_fails_and_a_canary_that_holds_makes_everything_unknown(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ground.do(canary.found(canary_subject(), of_seed_that_fails, ground.room, tmp_path / "canary"))
    assert found is not None
    assert found["kinds"] == ["duplicate"]
    monkeypatch.setattr(canary, "MOST", 1)
    monkeypatch.setattr(generate, "of_seed", lambda _subject, _seed: History())
    campaign = ground.campaign(plan(KEYED, mode="random", seed=1, budget=1), tmp_path / "out")
    assert campaign.totals.cases == 0
    assert "does not see what it must see" in campaign.derived[0].doubts[0]


def of_seed_that_fails(_subject: Subject, _seed: int) -> History:
    return history({"do": "run", "process": "producer"}, struck(RUN_DISPATCHER, "halt", "send.response#1"))


def test_a_random_step_of_the_wire_needs_no_connection(ground: Ground, tmp_path: Path) -> None:
    told = History(1, ((1, "reset-response:headers"), (4, "redirect")), (Step("run", "producer"), Step("run", "dispatcher")))
    result = played(ground, KEYED, told, tmp_path / "case")
    assert result.verdict.outcome == "held"


@pytest.mark.campaign
def test_a_campaign_is_audited_and_a_history_that_was_changed_afterwards_is_found(tmp_path: Path) -> None:
    out = tmp_path / "out"
    # As a user runs it: other tests have loaded systems with a mistake, and with them points that a campaign would declare.
    command = [sys.executable, str(ROOT / "run.py"), "explore", "--mode", "random", "--subject", "*/keyed", "--budget", "40"]
    assert subprocess.run([*command, "--keep", "all", "--out", str(out)], check=False, capture_output=True).returncode == 0
    assert audit(out) == 0
    lines = (out / "results.jsonl").read_bytes()
    assert b'"how":"kill"' in lines
    (out / "results.jsonl").write_bytes(lines.replace(b'"how":"kill"', b'"how":"halt"'))
    manifest = json.loads((out / "manifest.json").read_bytes())
    changed = hashlib.sha256((out / "results.jsonl").read_bytes()).hexdigest()
    manifest["files"]["results.jsonl"]["sha256"] = changed
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")
    assert audit(out) == 1


def audit(out: Path) -> int:
    return subprocess.run([sys.executable, ROOT / "audit" / "audit.py", out], check=False, capture_output=True).returncode

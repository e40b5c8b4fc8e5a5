"""The story of each scenario: every record placed once, in an order that could have been, and the counts where they belong."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings, strategies

from scenarios.report import archive as archives
from scenarios.report.events import Event, Kind, Story, Trait
from scenarios.report.facts import Archive, ScenarioEvidence, Tally
from scenarios.report.story import tell
from tests.audit.real import Whole


def placed(story: Story) -> Counter[tuple[str, int]]:
    return Counter((ref.journal, ref.number) for event in story.events for ref in event.refs)


def lines(scenario: ScenarioEvidence) -> Counter[tuple[str, int]]:
    return Counter((path, line.number) for path, journal in scenario.journals.items() for line in journal.lines)


def told(whole: Whole, folder: Path, name: str, edit: Any) -> Story:
    """The story of one scenario after `edit` changed its part of the archive."""
    part = whole.part(name)
    edit(part)
    return tell(archives.read(part.write(folder)).scenarios[0])


def labels(story: Story) -> list[str]:
    return [event.label for event in story.events]


def events(story: Story, kind: Kind) -> list[Event]:
    return [event for event in story.events if event.kind is kind]


# The whole archived study.


def test_every_record_of_the_study_is_placed_exactly_once(study: Archive, stories: Mapping[str, Story]) -> None:
    for scenario in study.scenarios:
        assert placed(stories[scenario.path]) == lines(scenario), scenario.path


def test_nothing_in_the_study_is_in_doubt(stories: Mapping[str, Story]) -> None:
    assert {path: [event.sentence for event in story.doubts] for path, story in stories.items() if story.doubts} == {}


def test_the_counts_along_the_axis_only_grow_and_end_at_those_of_the_results(
    study: Archive, stories: Mapping[str, Story]
) -> None:
    for scenario in study.scenarios:
        before = Tally().values()
        for event in stories[scenario.path].events:
            now = event.counts.values()
            assert all(new >= old for old, new in zip(before, now, strict=True)), scenario.path
            before = now
        assert stories[scenario.path].counts == scenario.counts


def test_a_count_changes_only_where_a_record_is_written(stories: Mapping[str, Story]) -> None:
    for story in stories.values():
        before = Tally()
        for event in story.events:
            assert event.counts == before or event.kind is Kind.RECORD
            before = event.counts


def test_the_records_of_a_journal_stand_in_its_order(stories: Mapping[str, Story]) -> None:
    for path, story in stories.items():
        last: dict[str, int] = {}
        for ref in (ref for event in story.events for ref in event.refs):
            assert ref.number == last.get(ref.journal, 0) + 1, (path, ref)
            last[ref.journal] = ref.number


def test_a_lane_begins_with_its_start_and_ends_with_its_end(study: Archive, stories: Mapping[str, Story]) -> None:
    for scenario in study.scenarios:
        story = stories[scenario.path]
        assert len(story.lanes) == len(scenario.processes)
        for number, lane in enumerate(story.lanes):
            kinds = [event.kind for event in story.events if event.lane == number]
            assert kinds[0] is Kind.START
            ends = [kind for kind in kinds if kind in (Kind.END, Kind.HALT)]
            assert ends == ([Kind.HALT] if lane.process.exit_code == 23 else [Kind.END]), (scenario.path, lane.title)


def test_nobody_writes_or_sends_after_its_end(stories: Mapping[str, Story]) -> None:
    for path, story in stories.items():
        ended: set[int | None] = set()
        for event in story.events:
            if event.kind is not Kind.MESSAGE or Trait.CUT not in event.traits:  # the end of a connection is seen after it
                assert event.lane is None or event.lane not in ended, (path, event.sentence)
            if event.kind in (Kind.END, Kind.HALT):
                ended.add(event.lane)


def test_every_halt_is_told_with_point_and_exit_code(study: Archive, stories: Mapping[str, Story]) -> None:
    for scenario in study.scenarios:
        halts = [event.label for event in events(stories[scenario.path], Kind.HALT)]
        declared = [f"halt(23) at {p.fault[0]}#{p.fault[1]}" for p in scenario.processes if p.fault and p.exit_code == 23]
        assert sorted(halts) == sorted(declared)


def test_a_counterexample_that_applies_twice_shows_its_duplicate(study: Archive, stories: Mapping[str, Story]) -> None:
    for scenario in study.scenarios:
        duplicates = [event for event in stories[scenario.path].events if "DUPLICATE" in event.label]
        twice = scenario.counterexample and scenario.counts is not None and scenario.counts.effects == 2
        assert len(duplicates) == (1 if twice else 0), scenario.path
        assert all(Trait.DUPLICATE in event.traits for event in duplicates)


# Single scenarios.


def test_the_moment_when_history_says_one_and_the_receiver_says_two(stories: Mapping[str, Story]) -> None:
    (moment,) = events(stories["delivery/unkeyed_delivery"], Kind.MOMENT)
    assert moment.label == "Local history says once, the receiver did it twice"
    assert moment.counts == Tally(effects=2, receipts=1, history=1, arrivals=2)
    assert events(stories["delivery/keyed_delivery"], Kind.MOMENT) == []


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("ledger/key_then_effect", "Local history says once, the receiver never did it"),
        ("identity/mark_before_send", "A receipt and no effect: lost"),
    ],
)
def test_a_silent_loss_is_told(stories: Mapping[str, Story], path: str, label: str) -> None:
    assert [event.label for event in events(stories[path], Kind.MOMENT)] == [label]
    assert "it is lost" in stories[path].closing[-1]


def test_a_pause_holds_up_whoever_waits(stories: Mapping[str, Story]) -> None:
    order = labels(stories["history/head_of_line"])
    paused, checked, resumed = (
        next(n for n, label in enumerate(order) if word in label) for word in ("paused", "CHECKPOINT", "SIGCONT")
    )
    assert paused < checked < resumed < order.index("effect 1") < order.index("attempt 1 of head_of_line-2")


def test_a_checkpoint_shows_the_counts_of_its_moment(stories: Mapping[str, Story]) -> None:
    (check,) = events(stories["delivery/receiver_unavailable"], Kind.CHECK)
    assert check.label == "CHECKPOINT after_refusal: E 0 R 0 H 0 A 0"


def test_a_cut_on_the_wire_is_told_with_its_bytes(stories: Mapping[str, Story]) -> None:
    cuts = [event for event in stories["wire/response_cut_in_body"].events if event.reached < 1]
    assert [event.label for event in cuts] == ["cut: 166 of 189 bytes"]
    requests = [event.label for event in stories["wire/request_cut_at_byte"].events if event.reached < 1]
    assert requests == ["cut: 25 of 283 bytes", "ended, nothing back"]


def test_concurrent_requests_stand_in_the_order_of_the_receivers_log(stories: Mapping[str, Story]) -> None:
    story = stories["ledger/concurrent"]
    arrivals = [ref.id for event in story.events for ref in event.refs if ref.type == "arrival"]
    assert arrivals == [f"arrival-{number}" for number in range(1, 13)]
    assert sum(Trait.REPLAYED in event.traits for event in events(story, Kind.MESSAGE)) == 11


def test_what_a_moved_folder_holds_is_told_where_it_was_written(stories: Mapping[str, Story]) -> None:
    story = stories["identity/receiver_lost_journal"]
    effects = [ref.journal for event in story.events for ref in event.refs if ref.type == "effect"]
    assert effects == ["lost_receiver/effects.jsonl", "receiver/effects.jsonl"]


# Evidence that does not fit: said in the open, never filled in.


def test_a_record_that_nobody_can_have_written_is_told_as_not_placed(whole: Whole, folder: Path) -> None:
    def add(part: Any) -> None:
        journal = part.journal("receiver/effects")
        journal.append({**journal[0], "id": "of-nobody", "data": {**journal[0]["data"], "arrival": "arrival-9", "number": 2}})

    story = told(whole, folder, "delivery/keyed_delivery", add)
    assert [event.label for event in story.doubts] == ["not placed: 1 record of receiver/effects.jsonl"]
    assert "of-nobody" in story.doubts[0].sentence
    assert story.counts.effects == 2  # what is there is counted, even if nobody knows where it belongs


def test_a_record_that_is_missing_is_not_made_up(whole: Whole, folder: Path) -> None:
    story = told(whole, folder, "delivery/keyed_delivery", lambda part: part.journal("receiver/arrivals").pop(0))
    assert any("would now write an arrival record" in event.sentence for event in story.doubts)
    assert story.counts.arrivals == 1
    assert events(story, Kind.MOMENT) == [], "nothing is called lost as long as an effect has no place"


def test_a_missing_journal_is_no_reason_to_stop(whole: Whole, folder: Path) -> None:
    name = "delivery/keyed_delivery"
    path = f"scenarios/{name}/outbox/receipts.jsonl"
    story = told(whole, folder, name, lambda part: part.journals.pop(path))
    assert story.doubts
    assert labels(story)[0] == "keyed receiver"


def test_a_printed_summary_that_tells_otherwise_is_told(whole: Whole, folder: Path) -> None:
    def edit(part: Any) -> None:
        process = part.process("dispatcher", 2)
        process["stdout"] = process["stdout"].replace('"delivered": 1', '"delivered": 3')

    story = told(whole, folder, "delivery/keyed_delivery", edit)
    assert any("printed another count of its pass than this story has (delivered)" in event.sentence for event in story.doubts)


def test_a_halt_that_the_story_does_not_pass_is_told(whole: Whole, folder: Path) -> None:
    def edit(part: Any) -> None:
        part.process("dispatcher", 1)["fault"]["occurrence"] = 7

    story = told(whole, folder, "delivery/keyed_delivery", edit)
    assert any("did not pass send.response#7" in event.sentence for event in story.doubts)


def test_counts_of_the_results_that_are_others_are_told(study: Archive) -> None:
    scenario = next(each for each in study.scenarios if each.path == "delivery/keyed_delivery")
    story = tell(replace(scenario, counts=Tally(9, 9, 9, 9)))
    assert any("results.json has other counts" in event.sentence for event in story.doubts)


def test_a_scenario_that_was_given_up_is_told_as_far_as_it_went(study: Archive) -> None:
    scenario = next(each for each in study.scenarios if each.path == "delivery/keyed_delivery")
    ran = tuple(process for process in scenario.processes if process.step < 4)
    killed = replace(ran[0], exit_code=None, signal="SIGKILL", ended_by="harness")
    given_up = replace(
        scenario, processes=(killed, *ran[1:]), problems=("step 3 (run): it went wrong",), counts=None, verdict="FAIL"
    )
    story = tell(given_up)
    assert story.lanes[-1].title == "dispatcher"
    assert any("ended by the harness with SIGKILL" in event.sentence for event in story.events)


UNKNOWN = "unknown/unknown_applied"
WRONG: list[Any] = [None, True, -1, 2.5, "x" * 100_000, [], {}, [[]], {"a": {"b": None}}]


@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("name", ["delivery/keyed_delivery", "wire/response_cut_in_body", "ledger/concurrent", UNKNOWN])
def test_any_value_anywhere_in_the_records_is_lived_with(whole: Whole, folder: Path, name: str, value: Any) -> None:
    part = whole.part(name)
    for records in part.journals.values():
        for record in records[1:2] or records:
            record["data"] = {key: value for key in record["data"]}
    for process in part.processes[-1:]:
        process.update(dict.fromkeys(process.keys() - {"scenario", "process", "incarnation", "step"}, value))
    scenario = archives.read(part.write(folder)).scenarios[0]
    assert placed(tell(scenario)) == lines(scenario)


@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
def test_any_value_in_the_steps_is_lived_with(study: Archive, value: Any) -> None:
    scenario = next(each for each in study.scenarios if each.path == "identity/receiver_lost_journal")
    steps = tuple({name: value for name in step} for step in scenario.steps)
    for changed in (steps, tuple({**step, "process": value, "path": value} for step in scenario.steps)):
        story = tell(replace(scenario, steps=changed))
        assert placed(story) == lines(scenario)


def test_a_long_journal_is_told_in_a_moment(study: Archive) -> None:
    scenario = next(each for each in study.scenarios if each.path == "ledger/concurrent")
    journal = scenario.journals["receiver/arrivals.jsonl"]
    many = tuple(replace(journal.lines[0], number=number, id=f"arrival-{number}") for number in range(1, 20_001))
    journals = {**scenario.journals, journal.path: replace(journal, lines=many)}
    begun = time.process_time()
    story = tell(replace(scenario, journals=journals))
    assert time.process_time() - begun < 5
    assert placed(story)[(journal.path, 20_000)] == 1


@settings(max_examples=80, deadline=None)
@given(chance=strategies.randoms(use_true_random=False))
def test_whatever_lines_are_lost_doubled_or_moved_each_is_placed_once(study: Archive, chance: Random) -> None:
    scenario = chance.choice(study.scenarios)
    journals = dict(scenario.journals)
    for _ in range(chance.randint(1, 3)):
        path = chance.choice(sorted(journals))
        rows = list(journals[path].lines)
        if not rows:
            continue
        one, other = chance.randrange(len(rows)), chance.randrange(len(rows))
        if chance.random() < 0.4:
            del rows[one]
        elif chance.random() < 0.5:
            rows.insert(other, rows[one])
        else:
            rows[one], rows[other] = rows[other], rows[one]
        journals[path] = replace(journals[path], lines=tuple(replace(row, number=n) for n, row in enumerate(rows, 1)))
    changed = replace(scenario, journals=journals)
    assert placed(tell(changed)) == lines(changed)

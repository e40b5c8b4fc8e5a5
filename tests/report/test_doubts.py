"""Evidence that does not fit: the story says so in the open, fills nothing in, and accuses nobody."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings, strategies

from scenarios.report import archive as archives
from scenarios.report.events import Kind, Story, Trait
from scenarios.report.facts import Archive, Tally
from scenarios.report.story import tell
from tests.audit.real import Whole
from tests.report.test_story import events, labels, lines, placed


def told(whole: Whole, folder: Path, name: str, edit: Any) -> Story:
    """The story of one scenario after `edit` changed its part of the archive."""
    part = whole.part(name)
    edit(part)
    return tell(archives.read(part.write(folder)).scenarios[0])


def accused(story: Story) -> list[str]:
    """Where the story calls something lost."""
    said = [event.sentence for event in story.events if Trait.LOST in event.traits or "NO effect" in event.label]
    return [*said, *(sentence for sentence in story.closing if "lost" in sentence)]


def test_in_the_study_losses_are_told_where_there_are_some(stories: Mapping[str, Story]) -> None:
    assert accused(stories["ledger/key_then_effect"]) != []


@pytest.mark.parametrize("journal", ["effects", "arrivals", "keys"])
@pytest.mark.parametrize("name", ["delivery/keyed_delivery", "ledger/key_then_effect", "identity/mark_before_send"])
def test_nothing_is_called_lost_where_a_file_is_missing(study: Archive, name: str, journal: str) -> None:
    scenario = next(each for each in study.scenarios if each.path == name)
    rest = {path: file for path, file in scenario.journals.items() if not path.endswith(f"/{journal}.jsonl")}
    if len(rest) == len(scenario.journals):
        return  # this receiver has no such file
    story = tell(replace(scenario, journals=rest, counts=None))
    assert story.doubts, "that something is missing is said"
    assert accused(story) == []


def test_each_missing_journal_of_the_study_is_noticed_and_none_becomes_a_loss(study: Archive) -> None:
    for scenario in study.scenarios[::4]:
        for path in scenario.journals:
            rest = {each: file for each, file in scenario.journals.items() if each != path}
            story = tell(replace(scenario, journals=rest, counts=None))
            assert story.doubts, (scenario.path, path)
            assert not any(Trait.LOST in event.traits for event in story.events), (scenario.path, path)


def test_missing_prefixes_are_noticed(study: Archive) -> None:
    scenario = next(each for each in study.scenarios if each.path == "ledger/torn_prefixes")
    rest = {path: file for path, file in scenario.journals.items() if not path.startswith("prefixes/")}
    (doubt,) = tell(replace(scenario, journals=rest)).doubts
    assert "The file prefixes/prefixes.jsonl is missing" in doubt.sentence


def test_a_missing_effects_file_is_named_where_its_receiver_starts(study: Archive) -> None:
    scenario = next(each for each in study.scenarios if each.path == "delivery/keyed_delivery")
    rest = {path: file for path, file in scenario.journals.items() if path != "receiver/effects.jsonl"}
    (doubt, *_) = tell(replace(scenario, journals=rest, counts=None)).doubts
    assert doubt.sentence.startswith("The file receiver/effects.jsonl is missing")


@pytest.mark.parametrize("fault", [("no.such_point", 1), ("send.response", 9)])
def test_a_process_that_died_at_an_unknown_place_gets_no_records_of_the_next(study: Archive, fault: tuple[str, int]) -> None:
    scenario = next(each for each in study.scenarios if each.path == "delivery/keyed_delivery")
    changed = [replace(each, fault=fault) if each.exit_code == 23 else each for each in scenario.processes]
    story = tell(replace(scenario, processes=tuple(changed)))
    dead = next(number for number, lane in enumerate(story.lanes) if lane.process.exit_code == 23)
    written = {ref.type for event in story.events if event.lane == dead for ref in event.refs}
    assert not written & {"receipt", "history"}
    said = [event.sentence for event in story.doubts if f"did not pass {fault[0]}#{fault[1]}" in event.sentence]
    assert len(said) == 1
    assert "receipt record cannot be told" in said[0]
    assert placed(story) == lines(scenario)


def test_a_number_that_nobody_counted_up_to_is_told_by_its_order(study: Archive) -> None:
    scenario = next(each for each in study.scenarios if each.path == "delivery/keyed_delivery")
    story = tell(replace(scenario, counts=Tally(10**400, 1, 1, 2)))
    assert any("about 10^400 effects" in event.sentence for event in story.doubts)


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
    scenario = chance.choice([each for each in study.scenarios if each.journals])  # some have an export and nothing else
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

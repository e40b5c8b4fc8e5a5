"""Stories of processes that meet what another one has written and not committed, which only PostgreSQL lets them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from scenarios.report import archive as archives
from scenarios.report import page, svg
from scenarios.report.diagram import draw
from scenarios.report.events import Event, Kind, Story, Trait
from scenarios.report.facts import Archive, Process, ScenarioEvidence
from scenarios.report.story import tell
from tests.report.test_page import outline
from tests.report.test_pictures import overlaps
from tests.report.test_story import events, labels, lines, placed
from tests.support import ROOT

POSTGRES = ROOT / "evidence" / "study-postgres"


@pytest.fixture(scope="module")
def postgres() -> Archive:
    if not (POSTGRES / "manifest.json").is_file():
        pytest.fail(f"{POSTGRES} is missing: archive a run with: run.py --section dispatch --store postgres", pytrace=False)
    return archives.read(POSTGRES)


def scenario(archive: Archive, name: str) -> ScenarioEvidence:
    return next(each for each in archive.scenarios if each.path == f"dispatch/{name}")


def with_process(given: ScenarioEvidence, name: str, change: Callable[[Process], Process]) -> ScenarioEvidence:
    changed = tuple(change(each) if each.name == name else each for each in given.processes)
    return replace(given, processes=changed)


def of(told: Story, name: str) -> list[Event]:
    """What the process `name` did, in order."""
    return [event for event in told.events if event.lane is not None and told.lanes[event.lane].process.name == name]


def test_nothing_in_the_study_on_postgresql_is_in_doubt_and_no_label_lies_over_another(postgres: Archive) -> None:
    stories = {each.path: tell(each) for each in postgres.scenarios}
    assert {path: [event.sentence for event in told.doubts] for path, told in stories.items() if told.doubts} == {}
    assert {path: found for path, told in stories.items() if (found := overlaps(draw(told)))} == {}
    assert [each.path for each in postgres.scenarios if placed(stories[each.path]) != lines(each)] == []


def test_a_producer_that_dies_after_it_has_looked_for_its_key_has_written_nothing(study: Archive, postgres: Archive) -> None:
    for archive in (study, postgres):
        told = tell(scenario(archive, "death_at_enqueue_looked"))
        (halt,) = events(told, Kind.HALT)
        assert halt.label == "halt(23) at dispatch.enqueue.looked#1"
        before = told.events[: told.events.index(halt)]
        assert not any(event.kind is Kind.MESSAGE for event in before)


def test_a_key_that_is_taken_between_the_look_and_the_insert_is_answered_with_its_row(postgres: Archive) -> None:
    told = tell(scenario(postgres, "key_is_taken_meanwhile"))
    assert "paused: enqueue.looked#1" in labels(told)
    (answer,) = [event for event in told.events if Trait.REPLAYED in event.traits]
    assert answer.label == "it is there: …0002"
    assert "has the row …0002 by now" in answer.sentence
    assert told.events.index(answer) > told.events.index(events(told, Kind.RESUME)[0])


def test_a_key_of_which_the_row_was_there_from_the_beginning_does_not_say_by_now(study: Archive) -> None:
    told = tell(scenario(study, "repeated_with_key"))
    (answer,) = [event for event in told.events if event.label.startswith("it is there")]
    assert "has the row …0001: its id" in answer.sentence


def test_a_scan_passes_over_a_row_whose_claim_is_open_and_the_claimant_commits_it(postgres: Archive) -> None:
    told = tell(scenario(postgres, "scan_meets_an_open_claim"))
    assert [event.label for event in of(told, "other_scheduler")][1:] == [
        "anything due? locked",
        "exit 0: what was due was locked",
    ]
    assert "claim: attempt 1" in [event.label for event in of(told, "scheduler")]


def test_a_scan_that_says_it_took_a_row_whose_claim_was_open_is_in_doubt(postgres: Archive) -> None:
    given = scenario(postgres, "scan_meets_an_open_claim")
    printed = next(each.stdout for each in given.processes if each.name == "scheduler")
    told = tell(with_process(given, "other_scheduler", lambda each: replace(each, stdout=printed)))
    assert [event.sentence for event in told.doubts] == [
        "The other_scheduler printed another count of its scan than this story has (attempted, delivered)."
    ]


def test_a_claimant_that_was_killed_in_its_transaction_holds_no_row_that_another_took(postgres: Archive) -> None:
    given = scenario(postgres, "scan_meets_an_open_claim")
    printed = {each.name: each.stdout for each in given.processes}
    killed = with_process(given, "scheduler", lambda each: replace(each, exit_code=None, signal="SIGKILL", stdout=""))
    told = tell(with_process(killed, "other_scheduler", lambda each: replace(each, stdout=printed["scheduler"])))
    assert "claim: attempt 1" in [event.label for event in of(told, "other_scheduler")]


def test_an_acknowledgement_waits_for_the_open_outcome_and_is_overtaken_by_it(postgres: Archive) -> None:
    told = tell(scenario(postgres, "ack_meets_an_open_outcome"))
    order = labels(told)
    committed, overtaken = order.index("attempt 1: success"), order.index("acknowledgement: overtaken")
    assert committed < overtaken < order.index("acknowledgement")
    assert "exit 1: overtaken" in order


def test_a_picture_in_a_page_differs_from_the_file_in_nothing_but_its_quotation_marks(study: Archive) -> None:
    for each in study.scenarios[::20]:
        picture = svg.picture(draw(tell(each)), each.path, "told")
        there, here = (outline(text.encode()) for text in (picture, svg.for_html(picture)))
        assert (there.tags, there.attributes, there.text) == (here.tags, here.attributes, here.text)
        assert len(svg.for_html(picture)) < len(picture)


def test_the_page_of_the_study_on_postgresql_needs_no_caution(postgres: Archive) -> None:
    text = page.render(postgres, POSTGRES / "report.html").decode()
    assert f"</span> {len(postgres.scenarios)} scenarios: all as declared" in text

"""The stories of the dispatch outbox: its tables are a lane, every transition is placed, and times are the scenario's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from scenarios.report import mermaid, svg
from scenarios.report import page as pages
from scenarios.report.diagram import Text, draw
from scenarios.report.events import Event, Kind, Story, Trait
from scenarios.report.exports import export
from scenarios.report.facts import Archive, ExportFile, ScenarioEvidence, Tally
from scenarios.report.story import tell
from tests.report.browser import Watched
from tests.report.conftest import STUDY
from tests.report.test_pictures import overlaps
from tests.report.test_story import events, labels, lines, placed

ZOMBIE = "dispatch/zombie_unkeyed"
ONE = "…0001"


def scenario(study: Archive, name: str) -> ScenarioEvidence:
    return next(each for each in study.scenarios if each.path == f"dispatch/{name}")


def story(stories: Mapping[str, Story], name: str) -> Story:
    return stories[f"dispatch/{name}"]


def beside(told: Story, event: Event) -> list[str]:
    """The labels of the row of an event."""
    return next([each.label for each in row] for row in told.rows() if event in row)


def database_labels(told: Story) -> list[str]:
    """What stands on the lane of the database, in order."""
    return [event.label for event in told.events if event.lane is not None and told.lanes[event.lane].role == "database"]


def test_every_dispatch_scenario_has_the_lane_of_its_tables_first(stories: Mapping[str, Story]) -> None:
    chosen = {path: each for path, each in stories.items() if path.startswith("dispatch/")}
    assert len(chosen) >= 64
    for path, told in chosen.items():
        assert told.lanes[0].role == "database", path
        assert told.letters == "ERTA"


def test_the_books_of_a_zombie_are_told_with_leases_times_and_the_late_outcome(stories: Mapping[str, Story]) -> None:
    told = story(stories, "zombie_unkeyed")
    assert database_labels(told) == ["database", "pending", "delivering until 1015", "delivering until 1030", "delivered"]
    (late,) = [event for event in told.events if Trait.LATE in event.traits]
    assert (late.label, late.at) == ("attempt 1: too late", ""), "what is not written is not dated"
    assert told.lanes[late.lane or 0].process.name == "zombie"
    sends = [event.label for event in told.events if event.label.startswith("POST")]
    assert sends == ["POST …0001, attempt 2", "POST …0001, attempt 1"]
    assert [event.label for event in events(told, Kind.MOMENT)] == ["The outbox says once, the receiver did it twice"]
    assert told.counts == Tally(effects=2, receipts=1, history=4, arrivals=2)
    assert "4 transitions, 2 arrivals; 2 attempts. Rows: 1 delivered." in told.closing[0]


def test_a_claim_bears_its_number_where_an_attempt_is_counted_again(stories: Mapping[str, Story]) -> None:
    told = story(stories, "forced_retry_is_fenced")
    claims = [event for event in told.events if event.label.startswith("claim")]
    assert [event.label for event in claims] == ["claim: attempt 1", "claim: attempt 1, claim 2"]
    assert "attempt 1, claim 2, lease until 1075" in claims[1].sentence
    assert "attempt 1 never finished" in labels(told)


def test_a_failure_that_ends_the_claim_of_another_says_so_and_the_mended_one_does_not(stories: Mapping[str, Story]) -> None:
    assert "pending: ends attempt 2" in database_labels(story(stories, "recorded_late_finaliser"))
    mended = story(stories, "mended_late_finaliser")
    assert not any("ends attempt" in label for label in database_labels(mended))
    assert "attempt 1: too late" in labels(mended)


def test_the_three_transactions_as_recorded_are_three_and_a_death_cuts_them(stories: Mapping[str, Story]) -> None:
    for name, said in (
        ("recorded_error_then_death", ["error of attempt 1"]),
        ("recorded_status_then_death", ["error of attempt 1", "attempt 1: failed"]),
        ("recorded_late_finaliser", ["error of attempt 1", "attempt 1: failed", "due 1060"]),
    ):
        told = story(stories, name)
        assert [label for label in labels(told) if label in ("error of attempt 1", "attempt 1: failed", "due 1060")] == said
    assert "EXPORT after_the_death: 1 delivering, 1 stale" in labels(story(stories, "recorded_error_then_death"))


def test_the_clock_of_a_slow_scan_is_the_file_and_a_record_of_another_time_says_so(stories: Mapping[str, Story]) -> None:
    recorded, mended = story(stories, "recorded_slow_scan"), story(stories, "mended_slow_scan")
    assert "delivered, dated 1000" in database_labels(recorded)
    assert "delivering until 1035" in database_labels(mended), "a whole lease from its own claim at 1020"
    assert {event.at for event in recorded.events} == {"", "1000", "1020"}


def test_what_was_written_and_not_committed_does_not_arrive(stories: Mapping[str, Story]) -> None:
    told = story(stories, "death_at_claim_written")
    (cut,) = [event for event in told.events if "not committed" in event.label]
    assert cut.reached < 1
    after = told.events[told.events.index(cut) + 1]
    assert (after.kind, after.label) == (Kind.HALT, "halt(23) at dispatch.claim.written#1")


def test_the_loser_of_a_race_is_answered_after_the_winner_committed(stories: Mapping[str, Story]) -> None:
    order = labels(story(stories, "producers_race_for_a_key"))
    assert order.index("row, not committed") < order.index("enqueue") < order.index("it is there: …0001")


def test_a_command_that_does_not_wait_is_a_success_before_its_receiver_dies(stories: Mapping[str, Story]) -> None:
    order = labels(story(stories, "success_is_not_storage"))
    assert order.index("attempt 1: success") < order.index("halt(23) at effect.append.before#1")
    assert "The outbox says once, the receiver never did it" in order


@pytest.mark.parametrize(
    ("name", "moment"),
    [
        ("expired_though_applied", "The outbox says expired, the receiver did it"),
        ("purge_races_claim", "The outbox says purged, the receiver did it"),
        ("mended_last_attempt", "The outbox says dead letter, the receiver did it"),
    ],
)
def test_what_no_book_says_is_marked_at_the_end(stories: Mapping[str, Story], name: str, moment: str) -> None:
    assert [event.label for event in events(story(stories, name), Kind.MOMENT)] == [moment]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("wrong_token", "acknowledgement: refused"),
        ("ack_loses_to_claim", "acknowledgement: overtaken"),
        ("purge_is_audited", "purge: no such row"),
        ("forced_retry_refused", "forced retry: refused"),
        ("disk_full_at_claim", "claim: the disk is full"),
    ],
)
def test_what_changed_nothing_is_told(stories: Mapping[str, Story], name: str, label: str) -> None:
    assert label in labels(story(stories, name))


def test_a_refusal_by_the_database_is_told_twice_and_nothing_is_committed(stories: Mapping[str, Story]) -> None:
    told = story(stories, "disk_full_at_outcome")
    refused = [event for event in told.events if "the disk is full" in event.label and event.kind is Kind.MESSAGE]
    assert [event.label for event in refused] == ["outcome of attempt 1: the disk is full", "outcome again: the disk is full"]
    assert all(event.reached < 1 for event in refused)


def test_a_server_that_was_killed_is_cut_on_its_lane_and_begins_another(study: Archive) -> None:
    """The steps of another store around the same tables: what it left is what a full disk left."""
    given = scenario(study, "disk_full_at_outcome")
    steps: list[Mapping[str, Any]] = []
    for step in given.steps:
        if step["do"] == "limit_files":
            steps.append({"do": "kill_database"})
        elif step["do"] == "export" and step["name"] != "end":
            steps += [step, {"do": "start_database"}]
        else:
            steps.append(step)
    moved = [replace(each, step=each.step + 1) if each.step > 7 else each for each in given.processes]
    told = tell(replace(given, steps=tuple(steps), processes=tuple(moved)))
    assert told.doubts == ()
    assert [lane.title for lane in told.lanes if lane.role == "database"] == ["database", "database, 2nd"]
    (killed,) = [event for event in told.events if Trait.KILLED in event.traits]
    assert (killed.label, killed.lane) == ("SIGKILL", 0)
    assert "outcome of attempt 1: the server is gone" in labels(told)


# Evidence that does not fit.


def edited(file: ExportFile, **tables: Any) -> ExportFile:
    content = {
        "format": "halt23.dispatch",
        "dispatch_outbox": [dict(line.data) for line in file.rows],
        "status_transitions": [dict(line.data) for line in file.transitions],
        "admin_events": [dict(line.data) for line in file.events],
        **tables,
    }
    read = export(file.path, json.dumps(content).encode())
    assert read is not None
    return read


def test_a_transition_that_is_missing_is_not_made_up(study: Archive) -> None:
    given = scenario(study, "zombie_unkeyed")
    end = given.exports["end"]
    for left_out in range(len(end.transitions)):
        rest = [dict(line.data) for line in end.transitions if line.number != left_out + 1]
        changed = replace(given, exports={"end": edited(end, status_transitions=rest)}, counts=None)
        told = tell(changed)
        assert told.doubts, left_out
        assert placed(told) == lines(changed)


def test_a_transition_of_another_time_is_nobodys(study: Archive) -> None:
    given = scenario(study, "zombie_unkeyed")
    end = given.exports["end"]
    rows = [dict(line.data) for line in end.transitions]
    rows[2]["created_at"] = 1014.0
    changed = replace(given, exports={"end": edited(end, status_transitions=rows)})
    told = tell(changed)
    assert any(event.label.startswith("not placed") for event in told.doubts)
    assert placed(told) == lines(changed)


def test_an_export_that_tells_of_other_rows_is_told(study: Archive) -> None:
    given = scenario(study, "claim_then_death")
    early = given.exports["after_the_death"]
    row = {**early.rows[0].data, "next_attempt_at": 1016.0, "status": "pending"}
    told = tell(replace(given, exports={**given.exports, "after_the_death": edited(early, dispatch_outbox=[row])}))
    (doubt,) = told.doubts
    assert "after_the_death is not what this story has by now: row …0001 has another status" in doubt.sentence


def test_counters_that_a_scan_did_not_come_to_are_told(study: Archive) -> None:
    given = scenario(study, "zombie_unkeyed")
    processes = tuple(
        replace(each, stdout=each.stdout.replace('"superseded": 1', '"superseded": 0')) for each in given.processes
    )
    (doubt,) = tell(replace(given, processes=processes)).doubts
    assert "zombie printed another count of its scan than this story has (superseded)" in doubt.sentence


@pytest.mark.parametrize("missing", ["end", "after_the_death"])
def test_an_export_that_is_missing_is_named_and_nothing_is_called_lost(study: Archive, missing: str) -> None:
    given = scenario(study, "death_after_response_keyed")
    rest = {name: file for name, file in given.exports.items() if name != missing}
    told = tell(replace(given, exports=rest, counts=None))
    assert any(missing in event.sentence and "missing" in event.sentence for event in told.doubts)
    assert not any(Trait.LOST in event.traits for event in told.events)


WRONG: list[Any] = [None, True, -1, 2.5, 10**400, "x" * 10_000, "{", [], {}, [[]], {"a": {"b": None}}]


@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
def test_any_value_anywhere_in_an_export_is_lived_with(study: Archive, value: Any) -> None:
    given = scenario(study, "purge_frees_the_key")
    end = given.exports["end"]
    for table in ("dispatch_outbox", "status_transitions", "admin_events"):
        rows = {"dispatch_outbox": end.rows, "status_transitions": end.transitions, "admin_events": end.events}[table]
        for member in rows[0].data if rows else ():
            changed = [{**line.data, member: value} for line in rows]
            broken = replace(given, exports={"end": edited(end, **{table: changed})})
            told = tell(broken)
            assert placed(told) == lines(broken), (table, member)
            draw(told)
        for whole in (value, [value]):
            tell(replace(given, exports={"end": edited(end, **{table: whole})}))


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"{", b"\xff", b'{"format":"another"}', b"[" * 100_000])
def test_a_file_that_is_no_export_is_none(content: bytes) -> None:
    assert export("exports/end.json", content) is None


# On the page and in files.


def test_a_picture_shows_the_time_wherever_it_is_another(stories: Mapping[str, Story]) -> None:
    diagram = draw(story(stories, "claim_then_death"))
    words = [shape.words for shape in diagram.shapes if isinstance(shape, Text)]
    assert [each for each in words if each in ("time", "1000", "1014", "1015")] == ["time", "1000", "1014", "1015"]
    assert overlaps(diagram) == []


def test_as_files_they_have_lanes_times_and_counts(stories: Mapping[str, Story]) -> None:
    told = story(stories, "zombie_unkeyed")
    text = mermaid.text(told)
    assert "participant P0 as database" in text
    assert "claim#58; attempt 2, at 1015" in text
    assert ">ERTA</text>" in svg.document(draw(told), "zombie")


def test_the_row_of_a_scenario_has_attempts_and_rows(study: Archive) -> None:
    given = scenario(study, "purge_frees_the_key")
    text = pages.render(replace(study, scenarios=(given,)), STUDY / "report.html").decode()
    assert ">Attempts</th>" in text
    assert ">Rows at the end</th>" in text
    assert '<td>2</td><td class="w">1 delivered, 1 event</td>' in text
    other = replace(given, exported=())
    text = pages.render(replace(study, scenarios=(other,)), STUDY / "report.html").decode()
    assert "2 counts are missing or differ" in text
    assert "? <small>expected 1 delivered, 1 event</small>" in text


def test_raw_rows_are_shown_and_what_an_early_export_has_like_the_last_is_not_repeated(study: Archive) -> None:
    given = scenario(study, "claim_then_death")
    text = pages.render(replace(study, scenarios=(given,)), STUDY / "report.html").decode()
    assert f'transition 1 dispatch.pending.enqueued {{"entity_id":"{ONE}"' in text
    assert "transition 1 as in the last export\n" in text
    assert f"row 1 {ONE} {{" in text
    assert 'row 1 as in the last export but for {"status":"delivering"' in text


def test_a_dispatch_scenario_in_a_browser(desktop: Watched) -> None:
    page = desktop.page
    page.select_option("select[name=section]", "dispatch")
    page.click(f'tr[data-for="{ZOMBIE}"] a')
    panel = page.locator(f'details[id="{ZOMBIE}"]')
    assert panel.locator("svg").is_visible()
    for words in ("database", "delivering until 1030", "attempt 1: too late", "effect 2: DUPLICATE"):
        assert panel.locator("svg text").filter(has_text=words).first.is_visible(), words
    panel.get_by_text("Raw records").click()
    assert panel.get_by_text("transition 4 dispatch.delivered.transport_ok").is_visible()
    assert panel.locator("h5").filter(has_text="exports/end.json").is_visible()

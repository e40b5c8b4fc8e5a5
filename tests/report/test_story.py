"""The story of each scenario: every record placed once, in an order that could have been, and the counts where they belong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from scenarios.report.events import Event, Kind, Story, Trait
from scenarios.report.facts import Archive, ScenarioEvidence, Tally


def placed(story: Story) -> Counter[tuple[str, int]]:
    return Counter((ref.journal, ref.number) for event in story.events for ref in event.refs)


def lines(scenario: ScenarioEvidence) -> Counter[tuple[str, int]]:
    found = Counter((path, line.number) for path, journal in scenario.journals.items() for line in journal.lines)
    end = scenario.exports.get("end")
    if end is not None:
        found.update((f"{end.path}:status_transitions", line.number) for line in end.transitions)
        found.update((f"{end.path}:admin_events", line.number) for line in end.events)
    return found


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
        processes = [(number, lane) for number, lane in enumerate(story.lanes) if lane.role != "database"]
        assert len(processes) == len(scenario.processes)
        for number, lane in processes:
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
        if scenario.section == "dispatch":  # there two effects may be those of two dispatches
            rows = scenario.exports["end"].transitions
            dispatches = {line.data["entity_id"] for line in rows if line.data["reason_code"] == "dispatch.delivering.attempt"}
            twice = scenario.counts is not None and scenario.counts.effects > len(dispatches)
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


NEVER_SENT_BEFORE = (
    "delivery/receiver_unavailable",
    "history/lock_after_crash",
    "unknown/unknown_not_applied",
    "points/attempt_append_written",
    "points/attempt_append_synced",
    "points/outcome_append_before",
    "points/outcome_append_torn",
    "points/outcome_append_written",
    "points/outcome_append_synced",
    "points/send_before",
)


@pytest.mark.parametrize("path", NEVER_SENT_BEFORE)
def test_a_second_attempt_is_no_second_request_where_the_first_never_left(stories: Mapping[str, Story], path: str) -> None:
    story = stories[path]
    assert [label for label in labels(story) if "POST" in label] == ["POST, attempt 2"]
    assert not any(Trait.RESENT in event.traits or "sends the request again" in event.sentence for event in story.events)


def test_a_request_after_one_that_left_is_sent_again(stories: Mapping[str, Story]) -> None:
    story = stories["delivery/unkeyed_delivery"]
    first, second = [event for event in story.events if "POST" in event.label]
    assert (first.label, second.label) == ("POST, attempt 1", "POST again, attempt 2")
    assert Trait.RESENT not in first.traits
    assert Trait.RESENT in second.traits
    assert "sends the request again (attempt 2" in second.sentence


def test_another_senders_request_does_not_make_the_first_attempt_a_second(stories: Mapping[str, Story]) -> None:
    assert "POST, attempt 1" in labels(stories["delivery/key_conflict"])


def test_a_relay_that_passes_a_first_request_on_sends_nothing_again(stories: Mapping[str, Story]) -> None:
    posts = [event for event in stories["wire/response_cut_in_body"].events if event.label == "POST, attempt 1"]
    assert len(posts) == 2, "to the relay, and from it"
    assert all(Trait.RESENT not in event.traits for event in posts)


def test_a_refusal_is_told_of_the_attempt_and_the_contradiction_at_the_end(stories: Mapping[str, Story]) -> None:
    story = stories["identity/body_changed_on_retry"]
    assert any("records the outcome: conflict; this attempt did nothing." in event.sentence for event in story.events)
    (moment,) = events(story, Kind.MOMENT)
    assert moment.label == "The receiver did it, the sender's side says it did not"
    assert story.events[-1] is moment


def test_only_one_scenario_ends_with_a_refusal_of_what_was_done(stories: Mapping[str, Story]) -> None:
    journals = {path: story for path, story in stories.items() if not path.startswith("dispatch/")}
    denied = [path for path, story in journals.items() if any(Trait.DENIED in event.traits for event in story.events)]
    assert denied == ["identity/body_changed_on_retry"]

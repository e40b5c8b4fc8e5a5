"""D4 to D6: the life of a dispatch is a closed graph. What is not in the record's tables does not exist, for anybody."""

import itertools

import pytest

from outbox.dispatch import BadValue, IllegalEdge
from outbox.dispatch.edges import EDGES, FINISHED, REASONS, STATUSES, Edge, edge, known_status, known_statuses

# The record's tables, word for word: previous status, status, reason code, who may.
RECORDED = frozenset(
    {
        (None, "pending", "dispatch.pending.enqueued", "system"),
        ("pending", "delivering", "dispatch.delivering.attempt", "system"),
        ("delivering", "delivering", "dispatch.delivering.attempt", "system"),
        ("delivering", "delivered", "dispatch.delivered.transport_ok", "system"),
        ("delivering", "pending", "dispatch.delivered.transport_ok", "system"),
        ("delivering", "pending", "dispatch.pending.retry_backoff", "system"),
        ("delivering", "dead_letter", "dispatch.dead_letter.max_attempts", "system"),
        ("delivering", "dead_letter", "dispatch.dead_letter.ack_timeout", "system"),
        ("pending", "expired", "dispatch.expired.deadline", "system"),
        ("delivering", "expired", "dispatch.expired.deadline", "system"),
        ("pending", "acked", "dispatch.acked.consumer", "system"),
        ("delivering", "acked", "dispatch.acked.consumer", "system"),
        ("dead_letter", "pending", "dispatch.pending.retry_backoff", "operator"),
        ("expired", "pending", "dispatch.pending.retry_backoff", "operator"),
    }
)


@pytest.mark.parametrize(
    ("previous", "status", "reason", "named"),
    [
        ("lost", "pending", "dispatch.pending.enqueued", "'lost'"),
        ("pending", "sent", "dispatch.delivering.attempt", "'sent'"),
        ("pending", "Delivering", "dispatch.delivering.attempt", "'Delivering'"),
        ("pending", "delivering", "dispatch.delivering.try", "'dispatch.delivering.try'"),
        ("pending", "delivering", "", "''"),
    ],
)
def test_a_word_that_does_not_exist_is_named(previous: str, status: str, reason: str, named: str) -> None:
    with pytest.raises(BadValue, match=named) as raised:
        edge(previous, status, reason)
    assert not isinstance(raised.value, IllegalEdge)


@pytest.mark.parametrize("source", ["consumer", "", "SYSTEM"])
def test_a_source_that_does_not_exist_has_no_edge(source: str) -> None:
    with pytest.raises(IllegalEdge):
        edge("pending", "delivering", "dispatch.delivering.attempt", source)


def test_every_combination_outside_the_record_is_refused_and_every_one_inside_is_an_edge() -> None:
    accepted = set()
    for previous, status, reason, source in itertools.product((None, *STATUSES), STATUSES, REASONS, ("system", "operator")):
        try:
            found = edge(previous, status, reason, source)
        except IllegalEdge:
            continue
        assert found == Edge(previous, status, reason, source)
        accepted.add((previous, status, reason, source))
    assert accepted == RECORDED
    assert {(each.previous, each.status, each.reason, each.source) for each in EDGES} == RECORDED


@pytest.mark.parametrize("final", ["delivered", "acked"])
def test_a_final_state_has_no_way_out_and_the_message_says_so(final: str) -> None:
    with pytest.raises(IllegalEdge, match=f"cannot go from {final} to pending .* this state is final"):
        edge(final, "pending", "dispatch.pending.retry_backoff", "operator")


def test_a_dead_letter_comes_back_only_by_an_operator_and_the_message_tells_the_way() -> None:
    with pytest.raises(IllegalEdge, match=r"as system.*pending \(dispatch\.pending\.retry_backoff, operator\)"):
        edge("dead_letter", "pending", "dispatch.pending.retry_backoff")


def test_an_illegal_edge_is_the_builtin_error_that_the_record_names() -> None:
    assert issubclass(IllegalEdge, BadValue)
    assert issubclass(IllegalEdge, ValueError)


def test_the_statuses_are_the_records_six_and_four_of_them_are_ends() -> None:
    assert STATUSES == ("pending", "delivering", "delivered", "acked", "dead_letter", "expired")
    assert set(FINISHED) == set(STATUSES) - {"pending", "delivering"}


def test_several_statuses_are_given_back_once_each_in_the_order_of_life() -> None:
    assert known_statuses(["expired", "pending", "expired"]) == ("pending", "expired")
    assert known_status("acked") == "acked"
    with pytest.raises(BadValue, match=r"'gone' is no status; a dispatch is one of: pending, delivering"):
        known_statuses(["pending", "gone"])

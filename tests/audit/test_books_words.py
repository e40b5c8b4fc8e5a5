"""A broken archive of a dispatch outbox is told in the words of the trade, before anything is compared as a whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy

import pytest

from audit import books_enqueue, books_words
from audit.books_tables import BadInput
from audit.books_text import Arguments, Unknown, text_of
from audit.case import Case
from outbox.dispatch import backoff_seconds, edges
from outbox.dispatch.enqueue import destination
from outbox.dispatch.signal import DispatchSignal
from tests.audit.held_books import Books, Study

ONE = "0" * 31 + "1"
Edit = Callable[[Books], object]


def _metadata(books: Books, number: int, **members: object) -> None:
    move = books.moves()[number]
    move["metadata"] = json.dumps({**json.loads(move["metadata"]), **members}, separators=(",", ":"))


def _swap(books: Books, one: int, other: int) -> None:
    moves = books.moves()
    moves[one], moves[other] = moves[other], moves[one]


def _claim_again(books: Books) -> None:
    """A second claim of the first attempt, while it is being sent."""
    claim = next(move for move in books.moves() if move["reason_code"] == books_words.ATTEMPT)
    at = books.moves().index(claim)
    books.moves().insert(at + 1, {**deepcopy(claim), "previous_status": "delivering"})


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (
            lambda books: books.moves()[4].update(status="acked"),
            "status_transitions[4]: goes from delivering to acked for the reason dispatch.delivered.transport_ok as system: "
            "the graph has no such edge",
        ),
        (
            lambda books: books.moves()[0].update(source="operator"),
            "goes from nothing to pending for the reason dispatch.pending.enqueued as operator: the graph has no such edge",
        ),
        (
            lambda books: _swap(books, 3, 4),
            "status_transitions[3].previous_status: is 'delivering', but the transition before it left the dispatch pending",
        ),
        (lambda books: books.moves().pop(0), "previous_status: is 'pending', but the dispatch has none before it"),
        (lambda books: _metadata(books, 9, attempt=3), "claims attempt 3, expected 2: attempts rise by one"),
        (lambda books: _metadata(books, 9, attempt=1), "claims attempt 1 a second time: no two claims have one attempt"),
        (_claim_again, "claims attempt 1 a second time: no two claims have one attempt"),
        (lambda books: _metadata(books, 9, claim_number=1), "has the claim number 1, expected 2: claims rise by one"),
        (
            lambda books: books.rows()[0].update(status="pending"),
            "dispatch_outbox[0].status: is 'pending', but its transitions left it at 'delivered'",
        ),
        (lambda books: books.rows()[1].update(attempt=1), "attempt: is 1, but its transitions left it at 2"),
        (
            lambda books: books.rows()[0].update(last_error="something"),
            "last_error: is 'something', though no transition records a failure: stale retry data",
        ),
        (
            lambda books: books.rows("after_the_first_scan")[1].update(next_attempt_at=1015.0),
            "next_attempt_at: is 1015.0, before the backoff of attempt 1 is over (1000.0 and 60 seconds): stale retry data",
        ),
        (
            lambda books: _metadata(books, 4, outcome="may_have_happened"),
            "has the outcome 'may_have_happened' under the reason dispatch.delivered.transport_ok",
        ),
        (
            lambda books: books.moves()[10].update(status="delivered", reason_code="dispatch.delivered.transport_ok"),
            "records that attempt 2 happened, but no receiver answered it with a success: an outcome without a response",
        ),
        (
            lambda books: books.rows()[0].update(payload=books.rows()[0]["payload"].replace("study", "other")),
            f"but the payload of the row '{ONE}' has ",
        ),
        (
            lambda books: books.rows().pop(0),
            f"is of the dispatch '{ONE}', which has neither a row nor an event of its purge",
        ),
        (lambda books: books.moves().clear(), f"the row '{ONE}' has no transition: its enqueue is in no book"),
        (lambda books: books.moves().clear(), f"data.key: is '{ONE}', which is no dispatch that the books know"),
    ],
)
def test_the_words_of_the_trade(edit: Edit, words: str, booked: Study) -> None:
    books = booked.books("poison_row")
    edit(books)
    found = books.findings()
    assert any(words in each for each in found), found
    whole = [number for number, each in enumerate(found) if "but the processes wrote" in each]
    assert whole == [] or whole[0] > 0, "the first thing that is told is what was wrong, not that something differs"


def test_an_attempt_that_nobody_claimed_cannot_have_arrived(booked: Study) -> None:
    def edit(case: Case) -> None:
        case.stores["receiver"]["arrivals"].of("arrival")[0].data["attempt"] = "7"

    found = booked.books("poison_row").findings(edit)
    assert any(f"data.attempt: is '7', an attempt of '{ONE}' that nobody claimed" in each for each in found)
    assert any(f"the effect '{ONE}' has no claim in the books" in each for each in found)


@pytest.mark.parametrize("name", ["recorded_error_then_death", "recorded_status_then_death"])
def test_stale_data_of_the_recorded_books_is_what_the_plan_says(name: str, booked: Study) -> None:
    books = booked.books(name)
    for step in books.plan["steps"]:
        if step["do"] == "export":
            step["rows"]["stale"] = 0
    assert "stale retry data" in books.findings()[0]


def test_the_recorded_books_have_no_claim_number(booked: Study) -> None:
    books = booked.books("recorded_slow_scan")
    books.rows()[0]["claim_number"] = 1
    assert any("claim_number: is 1, but its transitions left it at 0" in each for each in books.findings())


def test_the_graph_is_that_of_the_outbox() -> None:
    theirs = {(edge.previous, edge.status, edge.reason, edge.source) for edge in edges.EDGES}
    assert theirs == books_words.EDGES
    assert edges.STATUSES == books_words.STATUSES


def test_the_backoff_is_that_of_the_outbox() -> None:
    assert [books_words.backoff(attempt) for attempt in range(40)] == [backoff_seconds(attempt) for attempt in range(40)]


@pytest.mark.parametrize("token", [None, "f" * 32])
@pytest.mark.parametrize("route", ["http://receiver.localhost/operations?seat=2", "HTTPS://Host:8443#x", "/operations", "a\tb"])
def test_a_payload_is_that_of_the_outbox(route: str, token: str | None) -> None:
    body = {
        "order": 7,
        "words": ["é\u2028", '"\\/', "\x01\x7f\n\r\t\f\b"],
        "deep": {"none": None, "yes": True, "half": 0.5, "big": 1e22},
    }
    row = books_enqueue.new_row(ONE, "kïnd", route, body, at=1000.25, ack_token=token)
    signal = DispatchSignal(
        id="00000000-0000-0000-0000-000000000001", created_at=1000.25, dispatch_id=ONE, kind="kïnd", deliver_to=route,
        ack_token=token, body=body,
    )  # fmt: skip
    assert row["payload"] == signal.to_json()
    assert row["destination"] == destination(route)
    assert text_of(body, ", ", ": ") == json.dumps(body, ensure_ascii=False)


@pytest.mark.parametrize(
    ("identity", "members"),
    [("1", {}), (ONE, {"ack_token": "g" * 32}), (ONE, {"max_attempts": 0})],
)
def test_a_dispatch_that_the_outbox_refuses_is_refused(identity: str, members: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        books_enqueue.new_row(identity, "study", "/operations", {}, at=1.0, **members)  # type: ignore[arg-type]


def test_a_command_line_is_read_as_far_as_it_is_known() -> None:
    arguments = Arguments(["--now", "7", "a", "--flag", "--many", "1", "--many", "2"], ("--now", "--many"), ("--flag",))
    assert (arguments.moment("--now"), arguments.all("--many"), arguments.has("--flag")) == (7.0, ["1", "2"], True)
    assert (arguments.rest, arguments.get("--else"), arguments.number("--else")) == (["a"], None, None)
    for given, words in ((["--now"], "has no value"), (["--odd"], "does not know")):
        with pytest.raises(Unknown, match=words):
            Arguments(given, ("--now",))
    with pytest.raises(Unknown, match="the time is the machine's"):
        Arguments([], ("--now",)).moment("--now")

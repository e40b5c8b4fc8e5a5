"""The audit's own database: who waits for whom on either store, what they see then, and what a failure leaves."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from audit.books_tables import Database, Refused, Transaction

Program = Generator[Any, None, Any]


class Someone:
    """A session with nothing behind it."""

    limited = False


def _insert(identity: str, key: str) -> Callable[[Transaction], Program]:
    """A new row; whether it was written is yielded, as the point before the commit."""

    def work(tables: Transaction) -> Program:
        yield (yield from tables.insert({"id": identity, "dedup_key": key}))

    return work


def _mark(identity: str) -> Callable[[Transaction], Program]:
    """A change of a row; what the row was when it was locked is yielded."""

    def work(tables: Transaction) -> Program:
        yield from tables.lock(identity)
        before = dict(tables.rows[identity])
        tables.rows[identity]["mark"] = "changed"
        yield before

    return work


def _write(database: Database, work: Callable[[Transaction], Program]) -> Program:
    return database.write(Someone(), work)


def _shared(*identities: str) -> Database:
    """A database for many writers, with these rows."""
    database = Database(shared=True)
    for each in identities:
        writing = _write(database, _insert(each, f"key of {each}"))
        assert [next(writing), next(writing, "committed")] == [True, "committed"]
    return database


def test_writers_wait_for_each_other_and_who_is_dropped_leaves_nothing() -> None:
    database = Database(shared=False)
    writing, waiting = [_write(database, _insert("a", "one")) for _ in range(2)]
    assert [next(writing), next(waiting)] == [True, None]
    writing.close()
    assert database.read().rows == {}
    assert [next(waiting), next(waiting, "done")] == [True, "done"]
    assert list(database.read().rows) == ["a"]


def test_who_may_write_no_more_leaves_what_was_committed() -> None:
    database, someone = Database(shared=False), Someone()
    writing: Program = database.write(someone, _insert("a", "one"))
    assert next(writing) is True
    someone.limited = True
    with pytest.raises(Refused):
        next(writing)
    assert database.read().rows == {}


def test_where_writers_share_a_database_they_wait_for_a_row_and_see_it_as_it_was_left() -> None:
    database = _shared("a", "b")
    first, waiting, other = [_write(database, _mark(each)) for each in ("a", "a", "b")]
    assert "mark" not in next(first)
    assert next(waiting) is None
    assert "mark" not in next(other), "another row is nobody's business"
    assert "mark" not in database.read().rows["a"]
    assert next(first, "committed") == "committed"
    assert next(waiting)["mark"] == "changed"


def test_a_lock_goes_with_who_is_dropped() -> None:
    database = _shared("a")
    first, waiting = [_write(database, _mark("a")) for _ in range(2)]
    next(first)
    assert next(waiting) is None
    first.close()
    assert "mark" not in next(waiting)


def test_a_key_that_is_being_written_is_waited_for() -> None:
    database = _shared()
    first, second, third = [_write(database, _insert(each, "one")) for each in "abc"]
    assert [next(first), next(second), next(third)] == [True, None, None]
    first.close()
    assert [next(second), next(second, "committed"), next(third)] == [True, "committed", False]
    assert list(database.read().rows) == ["b"]


def test_a_key_that_is_being_removed_is_waited_for() -> None:
    database = _shared("a")

    def purge(tables: Transaction) -> Program:
        yield from tables.lock("a")
        del tables.rows["a"]
        yield "written"

    purging, inserting = _write(database, purge), _write(database, _insert("b", "key of a"))
    assert [next(purging), next(inserting)] == ["written", None]
    assert [next(purging, "committed"), next(inserting)] == ["committed", True]


def test_nobody_who_had_begun_goes_on_when_the_server_was_killed() -> None:
    database = _shared("a")
    first, waiting = [_write(database, _mark("a")) for _ in range(2)]
    next(first)
    assert next(waiting) is None
    database.kill()
    database.up = True
    for each in (first, waiting):
        with pytest.raises(Refused):
            next(each)
    assert "mark" not in next(_write(database, _mark("a")))


def test_transitions_stand_in_the_order_in_which_they_were_written_whoever_commits_first() -> None:
    database = Database(shared=True)

    def work(tables: Transaction) -> Program:
        tables.record("a", None, "pending", reason="r", actor="a", summary=f"number {len(told)}", at=1.0)
        told.append("written")
        yield "written"

    told: list[str] = []
    first, second = [_write(database, work) for _ in range(2)]
    assert [next(first), next(second), next(second, "done"), next(first, "done")] == ["written", "written", "done", "done"]
    moves = database.read().document()["status_transitions"]
    assert [move["reason_summary"] for move in moves] == ["number 0", "number 1"]

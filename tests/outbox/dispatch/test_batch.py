"""Many rows in one statement: they do to a table what a statement for each row would do."""

import sqlite3
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Column, Connection, Float, Integer, MetaData, Table, Text, create_engine

from outbox.dispatch import batch

THINGS = Table("things", MetaData(), Column("id", Text), Column("n", Integer), Column("x", Float), Column("said", Text))
_VALUES = st.tuples(st.integers(-(2**63), 2**63 - 1) | st.none(), st.floats(allow_nan=False) | st.none(), st.text() | st.none())
_IDS = st.text(min_size=1)
_ROWS = st.dictionaries(_IDS, _VALUES, max_size=70).map(lambda rows: [(name, *values) for name, values in rows.items()])


class Opened:
    """A connection to an empty table."""

    def __enter__(self) -> Connection:
        self._engine = create_engine("sqlite://")
        self._connection = self._engine.connect()
        THINGS.create(self._connection)
        return self._connection

    def __exit__(self, *_error: object) -> None:
        self._connection.close()
        self._engine.dispose()


def rows_of(connection: Connection) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in connection.exec_driver_sql("SELECT id, n, x, said FROM things ORDER BY rowid").all()]


def one_by_one(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """What SQLite makes of the same rows, each in a statement of its own."""
    with closing(sqlite3.connect(":memory:")) as plain:
        plain.execute("CREATE TABLE things (id TEXT, n INTEGER, x FLOAT, said TEXT)")
        for row in rows:
            plain.execute("INSERT INTO things VALUES (?, ?, ?, ?)", row)
        return plain.execute("SELECT id, n, x, said FROM things ORDER BY rowid").fetchall()


@given(_ROWS.map(lambda rows: [row for row in rows if all("\0" not in value for value in row if isinstance(value, str))]))
def test_rows_are_appended_in_order_and_as_they_are(rows: list[tuple[Any, ...]]) -> None:
    with Opened() as connection:
        batch.insert(connection, THINGS, rows, ("id", "n", "x", "said"))
        assert rows_of(connection) == one_by_one(rows)


@given(st.sets(st.integers(0, 99)), st.sets(st.integers(0, 199)), st.data())
def test_exactly_the_rows_whose_guards_are_equal_are_written_and_told(
    present: set[int], asked: set[int], data: st.DataObject
) -> None:
    numbers = {each: data.draw(st.integers(0, 1), label=f"the number of {each}") for each in sorted(present | asked)}
    with Opened() as connection:
        batch.insert(connection, THINGS, [(str(each), 0, None, "old") for each in sorted(present)], ("id", "n", "x", "said"))
        written = batch.update(
            connection,
            THINGS,
            [(str(each), numbers[each], each + 0.5, f"new {each}") for each in sorted(asked)],
            guards=("id", "n"),
            columns=("x", "said"),
            returning=("id",),
        )
        expected = {each for each in asked & present if numbers[each] == 0}
        assert {row[0] for row in written} == {str(each) for each in expected}
        assert {int(name): (x, said) for name, _n, x, said in rows_of(connection)} == {
            each: (each + 0.5, f"new {each}") if each in expected else (None, "old") for each in present
        }


@pytest.mark.parametrize("number", [0, 1, 2, 3, 1024, 1025, 2500])
def test_any_number_of_rows_is_taken(number: int) -> None:
    rows = [(str(each), each, each / 3, None) for each in range(number)]
    with Opened() as connection:
        batch.insert(connection, THINGS, rows, ("id", "n", "x", "said"))
        assert rows_of(connection) == rows
        new = [(str(each), each, "moved") for each in range(number)]
        written = batch.update(connection, THINGS, new, guards=("id", "n"), columns=("said",), returning=("id", "n"))
        assert sorted(map(tuple, written)) == sorted((str(each), each) for each in range(number))

"""Many rows in one statement: all of them are its values.

On SQLite, because the interpreter lets go of its lock whenever SQLite works: a statement for each row hands it to the event
loop and asks for it back as often, and most of the time of a transaction is waiting for that. There are as many statements as
sizes, and the sizes are powers of two (what is over is filled up with rows of nulls, which match nothing), so that SQLite need
not read them anew each time. On PostgreSQL, because each statement is a message of its own that the driver makes and takes
apart: there a column of the rows is an array, so one statement serves any number of them.

It knows neither what the rows mean nor when to write them.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Float, Integer, Row, Table

from outbox.dispatch.address import SQLITE
from outbox.dispatch.schema import JsonText

# Names and values of one statement: SQLite takes no more than 32,766.
MAX_ROWS = 1024

_Rows = Sequence[tuple[Any, ...]]
_Names = tuple[str, ...]


def update(
    connection: Connection, table: Table, rows: _Rows, *, guards: _Names, columns: _Names, returning: _Names
) -> list[Row[Any]]:
    """Set `columns` of those rows of `table` whose `guards` are equal, and return `returning` of each that was written.

    Each of `rows` holds the values of the guards, then those of the columns. The first guard must never be null.
    """
    written: list[Row[Any]] = []
    for size, values in _parts(connection, rows):
        given = _given(table, (*guards, *columns), size)
        written += connection.exec_driver_sql(_update(table, given, guards, columns, returning), values).all()
    return written


def insert(connection: Connection, table: Table, rows: _Rows, columns: _Names) -> None:
    """Append `rows`, which hold the values of `columns`. The first column must never be null."""
    for size, values in _parts(connection, rows):
        connection.exec_driver_sql(_insert(table, _given(table, columns, size), columns), values)


def _parts(connection: Connection, rows: _Rows) -> Iterator[tuple[int | None, tuple[Any, ...]]]:
    """The rows in parts that a statement can take: its size in rows (None: any number), and its values."""
    if not rows:
        return
    if connection.dialect.name != SQLITE:
        yield None, tuple(map(list, zip(*rows, strict=True)))
        return
    for start in range(0, len(rows), MAX_ROWS):
        part = rows[start : start + MAX_ROWS]
        size = 1 << (len(part) - 1).bit_length()
        values = [value for row in part for value in row]
        yield size, (*values, *(None,) * ((size - len(part)) * len(part[0])))


@functools.cache
def _given(table: Table, columns: _Names, size: int | None) -> str:
    """The beginning of a statement: its values, as the rows of a table `given` with the columns value_0, value_1 and so on."""
    names = ", ".join(_values(columns))
    if size is not None:
        row = f"({', '.join('?' * len(columns))})"
        return f"WITH given({names}) AS (VALUES {', '.join([row] * size)})"
    arrays = ", ".join(f"%s::{_in_arrays(table, column)}[]" for column in columns)
    as_columns = ", ".join(
        f"{name}::json" if isinstance(table.c[column].type, JsonText) else name
        for column, name in zip(columns, _values(columns), strict=True)
    )
    return f"WITH given({names}) AS (SELECT {as_columns} FROM unnest({arrays}) AS listed({names}))"  # noqa: S608 - no values


@functools.cache
def _update(table: Table, given: str, guards: _Names, columns: _Names, returning: _Names) -> str:
    names = _values((*guards, *columns))
    new = ", ".join(f"{column} = {name}" for column, name in zip(columns, names[len(guards) :], strict=True))
    same = " AND ".join(f"{table.name}.{guard} = {name}" for guard, name in zip(guards, names, strict=False))
    told = ", ".join(f"{table.name}.{column}" for column in returning)
    # Names of the schema and places for values, here and below.
    return f"{given} UPDATE {table.name} SET {new} FROM given WHERE {same} RETURNING {told}"  # noqa: S608


@functools.cache
def _insert(table: Table, given: str, columns: _Names) -> str:
    names = _values(columns)
    rows = f"SELECT {', '.join(names)} FROM given WHERE {names[0]} IS NOT NULL"  # noqa: S608
    return f"{given} INSERT INTO {table.name} ({', '.join(columns)}) {rows}"


def _values(columns: _Names) -> _Names:
    return tuple(f"value_{number}" for number in range(len(columns)))


def _in_arrays(table: Table, column: str) -> str:
    """PostgreSQL's type for the values of a column in an array."""
    kind = table.c[column].type
    if isinstance(kind, Integer):
        return "int8"
    return "float8" if isinstance(kind, Float) else "text"

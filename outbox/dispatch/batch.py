"""Many rows in one statement, for SQLite.

The interpreter lets go of its lock whenever SQLite works, so a statement for each row hands it to the event loop and asks for
it back as often, and most of the time of a transaction is waiting for that. Here all rows are values of one statement. There
are as many statements as sizes, and the sizes are powers of two (what is over is filled up with rows of nulls, which match
nothing), so that SQLite need not read them anew each time.

It knows neither what the rows mean nor when to write them. PostgreSQL has its own way, the driver's pipelines.
"""

import functools
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, Table

# Names and values of one statement: SQLite takes no more than 32,766.
MAX_ROWS = 1024


def update(
    connection: Connection,
    table: Table,
    rows: Sequence[tuple[Any, ...]],
    *,
    guards: tuple[str, ...],
    columns: tuple[str, ...],
    returning: tuple[str, ...],
) -> list[Row[Any]]:
    """Set `columns` of those rows of `table` whose `guards` are equal, and return `returning` of each that was written.

    Each of `rows` holds the values of the guards, then those of the columns. The first guard must never be null.
    """
    written: list[Row[Any]] = []
    for size, values in _parts(rows, len(guards) + len(columns)):
        statement = _update(table.name, guards, columns, returning, size)
        written += connection.exec_driver_sql(statement, values).all()
    return written


def insert(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]], columns: tuple[str, ...]) -> None:
    """Append `rows`, which hold the values of `columns`. The first column must never be null."""
    for size, values in _parts(rows, len(columns)):
        connection.exec_driver_sql(_insert(table.name, columns, size), values)


def _parts(rows: Sequence[tuple[Any, ...]], width: int) -> list[tuple[int, tuple[Any, ...]]]:
    """The rows in parts that a statement can take: its size in rows, and its values."""
    parts = []
    for start in range(0, len(rows), MAX_ROWS):
        part = rows[start : start + MAX_ROWS]
        size = 1 << (len(part) - 1).bit_length()
        values = [value for row in part for value in row]
        parts.append((size, (*values, *(None,) * ((size - len(part)) * width))))
    return parts


@functools.cache
def _update(table: str, guards: tuple[str, ...], columns: tuple[str, ...], returning: tuple[str, ...], size: int) -> str:
    given = _names(len(guards) + len(columns))
    new = ", ".join(f"{column} = given.{name}" for column, name in zip(columns, given[len(guards) :], strict=True))
    same = " AND ".join(f"{table}.{guard} = given.{name}" for guard, name in zip(guards, given, strict=False))
    return (
        f"WITH given({', '.join(given)}) AS ({_values(len(given), size)}) "  # noqa: S608 - names of the schema, no values
        f"UPDATE {table} SET {new} FROM given WHERE {same} RETURNING {', '.join(returning)}"
    )


@functools.cache
def _insert(table: str, columns: tuple[str, ...], size: int) -> str:
    given = _names(len(columns))
    return (
        f"WITH given({', '.join(given)}) AS ({_values(len(given), size)}) "  # noqa: S608 - names of the schema, no values
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(given)} FROM given WHERE {given[0]} IS NOT NULL"
    )


def _names(width: int) -> tuple[str, ...]:
    return tuple(f"value_{number}" for number in range(width))


def _values(width: int, size: int) -> str:
    row = f"({', '.join('?' * width)})"
    return f"VALUES {', '.join([row] * size)}"

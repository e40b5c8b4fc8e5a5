"""A database by hand, without the library: with the driver alone, so that a test can spoil it or look at it."""

import contextlib
from collections.abc import Iterator
from typing import Any

import psycopg

from outbox import sqlite_choice


@contextlib.contextmanager
def driver(url: str) -> Iterator[Any]:
    """A connection on which each statement is its own transaction, unless the test says BEGIN."""
    if url.startswith("postgresql:"):
        with psycopg.connect(url, autocommit=True) as connection:
            yield connection
        return
    # The library's own SQLite: an older one must not touch its WAL database.
    with contextlib.closing(sqlite_choice.choose().module.connect(url, isolation_level=None, timeout=0.1)) as connection:
        yield connection


def hand(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Execute one statement; its rows."""
    with driver(url) as connection:
        cursor = connection.execute(statement)
        return list(cursor.fetchall()) if cursor.description else []


def tables(url: str) -> set[str]:
    """The names of all tables."""
    schema = "pg_tables WHERE schemaname = 'public'" if url.startswith("postgresql:") else "sqlite_master WHERE type = 'table'"
    column = "tablename" if url.startswith("postgresql:") else "name"
    return {str(name) for (name,) in hand(url, f"SELECT {column} FROM {schema}") if not str(name).startswith("sqlite_")}

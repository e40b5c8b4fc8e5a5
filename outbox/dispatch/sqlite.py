"""SQLite for SQLAlchemy's asynchronous engine: the chosen SQLite (`outbox.sqlite_choice`), and what a connection needs.

A process with a mended SQLite may turn a database to WAL mode beneath one without. So in the fallback every transaction begins
by asking for the mode (`refuse_wal`), and touches nothing if it is WAL.
"""

from types import ModuleType, SimpleNamespace
from typing import Any

import aiosqlite
from sqlalchemy.dialects.sqlite.aiosqlite import AsyncAdapt_aiosqlite_dbapi

from outbox.errors import BadInput
from outbox.sqlite_choice import WAL, Sqlite


def adapted(sqlite: Sqlite) -> AsyncAdapt_aiosqlite_dbapi:
    """The module that SQLAlchemy takes for its aiosqlite dialect, made for another SQLite than Python's own."""
    module = sqlite.module

    def connect(database: str, **options: Any) -> aiosqlite.Connection:
        connection = aiosqlite.Connection(lambda: module.connect(database, **options), iter_chunk_size=64)
        # The connection's own thread must not keep alive a process that forgot to close it.
        connection._thread.daemon = True
        return connection

    shown = SimpleNamespace(
        **{name: getattr(module, name) for name in _SHOWN}, Connection=aiosqlite.Connection, connect=connect
    )
    return AsyncAdapt_aiosqlite_dbapi(_as_module(shown), module)


def _as_module(shown: SimpleNamespace) -> ModuleType:
    module = ModuleType("aiosqlite_with_another_sqlite")
    module.__dict__.update(vars(shown))
    return module


_SHOWN = (
    "DatabaseError",
    "DataError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Warning",
    "sqlite_version",
    "sqlite_version_info",
)


def set_up(connection: Any, sqlite: Sqlite, busy_timeout_seconds: float, *, set_mode: bool = True) -> None:
    """What a fresh connection needs. `connection` is a DBAPI connection.

    Without `set_mode` the database keeps its journal mode: WAL is written into the file, which may be somebody else's.
    """
    cursor = connection.cursor()
    try:
        cursor.execute(f"PRAGMA busy_timeout = {round(busy_timeout_seconds * 1000)}")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA fullfsync = ON")
        if (
            sqlite.journal_mode != WAL
        ):  # asked before it is set: setting it would take a database that nobody has open out of WAL
            cursor.execute("PRAGMA journal_mode")
            refuse_wal(cursor.fetchone()[0], sqlite)
        cursor.execute(f"PRAGMA journal_mode = {sqlite.journal_mode}" if set_mode else "PRAGMA journal_mode")
        # A database that others have open keeps its mode. Then the one that it has must be one that may be used.
        mode = cursor.fetchone()[0]
    finally:
        cursor.close()
    refuse_wal(mode, sqlite)


def refuse_wal(mode: str, sqlite: Sqlite) -> None:
    """Raises BadInput if the database is in WAL mode and this SQLite must not touch such a one."""
    if mode == WAL and sqlite.journal_mode != WAL:
        raise BadInput(
            f"the database is in WAL mode and SQLite {sqlite.version} has the WAL-reset race, which can corrupt it: "
            "pip install pysqlite3, or use a Python with SQLite 3.51.3 or later; nothing was read or written"
        )

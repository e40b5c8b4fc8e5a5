"""SQLAlchemy's engines for the two databases, and what each of their connections and transactions needs."""

import importlib.util
import os
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, event
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool, ConnectionPoolEntry, PoolResetState

from outbox.dispatch import sqlite
from outbox.dispatch.address import check_file
from outbox.dispatch.errors import DamagedStore
from outbox.errors import BadInput
from outbox.sqlite_choice import WAL, Sqlite

CONNECT_TIMEOUT_SECONDS = 10
# Execution options: a transaction that changes nothing, and a connection of ours.
READING = "halt23_reading"
OURS = "halt23_store"
# Which file a connection was opened on.
FILE = "halt23_file"


def sqlite_engine(url: URL, chosen: Sqlite, *, create: bool, busy_timeout_seconds: float) -> AsyncEngine:
    """An engine on a file. A writing transaction is BEGIN IMMEDIATE. Raises BadInput and MachineRefused."""
    path = Path(url.database or "")
    check_file(path, create=create)
    engine = create_async_engine(
        url,
        module=sqlite.adapted(chosen),
        poolclass=AsyncAdaptedQueuePool,
        connect_args={"isolation_level": None, "timeout": busy_timeout_seconds},
        execution_options={OURS: True},
        pool_reset_on_return=None,  # `returned` does it
    )

    @event.listens_for(engine.sync_engine, "reset")
    def returned(connection: Any, _record: ConnectionPoolEntry, state: PoolResetState) -> None:
        # Asked first, for it costs nothing: a rollback is a way to the connection's thread and back.
        if not state.terminate_only and connection.driver_connection.in_transaction:
            connection.rollback()

    @event.listens_for(engine.sync_engine, "connect")
    def connected(connection: Any, record: ConnectionPoolEntry) -> None:
        sqlite.set_up(connection, chosen, busy_timeout_seconds, set_mode=create)
        record.info[FILE] = _file(path)

    @event.listens_for(engine.sync_engine, "begin")
    def begun(connection: Connection) -> None:
        if connection.info[FILE] != _file(path):
            raise DamagedStore(
                f"the file {path} was removed or replaced while it was open; what is written now would be lost with the old "
                "one. Nothing was done; open the database again"
            )
        reading = connection.get_execution_options().get(READING, False)
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
        if chosen.journal_mode != WAL:
            sqlite.refuse_wal(str(connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()), chosen)

    return engine


def _file(path: Path) -> tuple[int, int] | None:
    """Which file is at `path` now; None if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - once a transaction, and pathlib would make another path each time
    except OSError:
        return None
    return status.st_dev, status.st_ino


def postgresql_engine(url: URL) -> AsyncEngine:
    """An engine on a server. Raises BadInput where the driver is not installed."""
    if importlib.util.find_spec("psycopg") is None:
        raise BadInput("PostgreSQL needs the package psycopg: pip install 'halt23[postgres]'")
    from psycopg.types.string import TextLoader  # noqa: PLC0415 - an optional package

    engine = create_async_engine(
        url,
        pool_pre_ping=True,  # a server that was restarted between two scans has closed the pool's connections
        isolation_level="READ COMMITTED",
        connect_args={"connect_timeout": CONNECT_TIMEOUT_SECONDS},
        execution_options={OURS: True},
    )

    @event.listens_for(engine.sync_engine, "connect")
    def connected(connection: Any, _record: object) -> None:
        # JSON comes back as the text that was stored.
        connection.driver_connection.adapters.register_loader("json", TextLoader)

    return engine

"""Whether a job that nobody received is still there: by the target's own count, or by its name in the files of the folder.

Of a SQLite file its rows are searched, not its bytes: what was deleted may still lie in the file and is stored nowhere.
"""

import asyncio
import contextlib
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from outbox.errors import BadInput
from scenarios.targets import model
from scenarios.targets.commands import Commands

PENDING, BYTES = "pending", "bytes"
_SQLITE = b"SQLite format 3\0"
_COMPANIONS = ("-wal", "-shm", "-journal")
_LARGEST_BYTES = 1 << 26
_SECONDS = 20.0


async def pending(commands: Commands, values: dict[str, str]) -> int | None:
    """How many jobs the target says are stored; None where it does not say, or cannot at the moment. Raises BadInput."""
    worker = commands.target.contents.worker
    asked = worker.pending if worker is not None else None
    if asked is None:
        return None
    if isinstance(asked, str):
        query = model.query(model.fill(asked, values))
        assert query is not None
        return await asyncio.to_thread(_ask, Path(values["dir"], query.file), query.sql)
    ran = await (await commands.start(asked, values)).ended(_SECONDS)
    if not ran.good or not ran.stdout.strip().isdigit():
        return None
    return int(ran.stdout)


def _ask(path: Path, sql: str) -> int | None:
    if not path.is_file():
        return None
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=5)) as database:
            database.execute("pragma query_only = on")
            row: Any = database.execute(sql).fetchone()
    except sqlite3.OperationalError:
        return None  # it was not made yet, or is held
    except sqlite3.Error as error:
        raise BadInput(f"pending: {sql!r}: {error}") from None
    if row is None or not isinstance(row[0], int):
        raise BadInput(f"pending: {sql!r} gave {row!r}; expected one number")
    return row[0]


def holds(directory: Path, name: str) -> bool:
    """Whether the name of a job is found in a file below the folder, or in the name of one."""
    for at, folders, files in os.walk(directory):
        if any(name in each for each in (*folders, *files)):
            return True
        companions = {f"{each}{end}" for each in files for end in _COMPANIONS}
        for each in files:
            path = Path(at, each)
            with contextlib.suppress(OSError):
                if each in companions or not path.is_file() or path.stat().st_size > _LARGEST_BYTES:
                    continue
                data = path.read_bytes()
                if _in_rows(path, name) if data.startswith(_SQLITE) else name.encode() in data:
                    return True
    return False


def _in_rows(path: Path, name: str) -> bool:
    """Whether a row of a SQLite file has the name; a copy is asked, so that the file stays as it is."""
    with tempfile.TemporaryDirectory(prefix="halt23-") as place:
        for end in ("", "-wal", "-journal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copy(f"{path}{end}", Path(place, f"copy{end}"))
        try:
            with contextlib.closing(sqlite3.connect(Path(place, "copy"))) as database:
                database.text_factory = bytes
                tables = [row[0].decode() for row in database.execute("select name from sqlite_master where type = 'table'")]
                return any(_has(database, table, name.encode()) for table in tables)
        except sqlite3.Error:
            return name.encode() in path.read_bytes()


def _has(database: sqlite3.Connection, table: str, name: bytes) -> bool:
    quoted = table.replace('"', '""')
    with contextlib.suppress(sqlite3.OperationalError):  # a table of an extension that is not here
        for row in database.execute(f'select * from "{quoted}"'):  # noqa: S608 - a table's own name
            if any(isinstance(each, bytes) and name in each for each in row):
                return True
    return False

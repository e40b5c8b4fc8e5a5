"""A producer in a process of its own, for tests: it prints what it got. The functions are its commands."""

import asyncio
import os
import resource
import sqlite3
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from outbox import sqlite_choice
from outbox.dispatch import StateDB, enqueue_dispatch
from outbox.errors import Halt23Error


async def create(url: str) -> None:
    async with StateDB(url) as db:
        print(db.info.engine)


async def enqueue(url: str, keys: str) -> None:
    """One row for each key, in order; prints the ids."""
    async with StateDB(url) as db:
        for number in range(int(keys)):
            print(await enqueue_dispatch(db, kind="ping", deliver_to="seat-1", dedup_key=f"key-{number}"))


async def fill(path: str) -> None:
    """Enqueue until the file may grow no further; prints how many rows were promised, and the error."""
    async with StateDB(path) as db:
        largest = max(os.path.getsize(name) for name in (path, f"{path}-wal"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest + 100_000, resource.RLIM_INFINITY))
        promised = 0
        try:
            while True:
                await enqueue_dispatch(db, kind="ping", deliver_to="seat-1", body={"text": "x" * 20_000})
                promised += 1
        except Halt23Error as error:
            print(promised, type(error).__name__)


async def unfixed(path: str) -> None:
    """Open the database with Python's own SQLite, as if no other were installed, in a process that holds no other lock on it.

    Enqueue one row at once, and one each time that a line comes; prints what became of each."""
    sqlite_choice._installed = lambda: [sqlite3]
    try:
        async with StateDB(path) as db:
            while True:
                await enqueue_dispatch(db, kind="ping", deliver_to="seat-1")
                print("written", db.info.journal_mode, flush=True)
                if not await asyncio.to_thread(sys.stdin.readline):
                    return
    except Halt23Error as error:
        print(type(error).__name__, error)


def main(argv: Sequence[str]) -> int:
    """Process entry."""
    commands: Mapping[str, Callable[..., Coroutine[Any, Any, None]]] = {
        "create": create,
        "enqueue": enqueue,
        "fill": fill,
        "unfixed": unfixed,
    }
    asyncio.run(commands[argv[0]](*argv[1:]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

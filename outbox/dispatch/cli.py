"""The operator's command line, straight on the database, whether or not a scheduler is alive.

    python -m outbox.dispatch --db URL ls [--status STATUS] [--limit 50]
    python -m outbox.dispatch --db URL show ID
    python -m outbox.dispatch --db URL ack ID TOKEN
    python -m outbox.dispatch --db URL retry ID
    python -m outbox.dispatch --db URL purge ID | --status STATUS … --older-than-seconds N [--dry-run]
    python -m outbox.dispatch --db URL events [--limit 50]
    python -m outbox.dispatch --db URL run [--once] [--project DIR] [--tick-seconds N]

`--db` is a file (SQLite) or a URL (`postgresql://USER@HOST/NAME`); `--json` prints JSON; `ack`, `retry` and `purge` take
`--now SECONDS` in place of the machine's clock. There is no enqueue: producers call the library.

Exit codes: 0 done, 1 the row changed meanwhile or `purge` did not find it, so nothing was done, 2 bad input, also an ID that
`show`, `ack` or `retry` does not find, 13 the database is locked, 14 it is damaged, 16 it cannot be reached or the machine
refused.
SIGTERM and SIGINT end a `run` after what it is sending, with 0 if the last scan went well.
"""

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

from outbox import faults
from outbox.dispatch import printing
from outbox.dispatch.admin import (
    LIST_LIMIT,
    ack_dispatch,
    get_dispatch,
    list_admin_events,
    list_dispatches,
    list_transitions,
    purge_dispatch,
    retry_dispatch,
)
from outbox.dispatch.delivery import Delivery
from outbox.dispatch.edges import STATUSES
from outbox.dispatch.errors import BadValue
from outbox.dispatch.retention import purge_dispatches
from outbox.dispatch.scheduler import Scheduler
from outbox.dispatch.settings import load
from outbox.dispatch.store import StateDB
from outbox.errors import BadInput, Halt23Error, reported
from outbox.sqlite_choice import choose

CHANGED_MEANWHILE = 1

Command = Callable[[StateDB, argparse.Namespace], Awaitable[int]]


async def _ls(db: StateDB, arguments: argparse.Namespace) -> int:
    rows = await list_dispatches(db, status=arguments.status, limit=arguments.limit)
    printing.rows(rows, as_json=arguments.json)
    return 0


async def _show(db: StateDB, arguments: argparse.Namespace) -> int:
    row = await get_dispatch(db, arguments.id)
    history = await list_transitions(db, arguments.id)
    if row is None and not history:
        raise BadValue(f"there is no dispatch {arguments.id!r}; `ls` lists them")
    printing.row(row, history, as_json=arguments.json)
    return 0


async def _ack(db: StateDB, arguments: argparse.Namespace) -> int:
    done = await ack_dispatch(db, arguments.id, arguments.token, now=arguments.now)
    return _told(done, f"{arguments.id} is acknowledged", "it changed meanwhile; nothing was done, try again", arguments)


async def _retry(db: StateDB, arguments: argparse.Namespace) -> int:
    done = await retry_dispatch(db, arguments.id, now=arguments.now)
    return _told(done, f"{arguments.id} is pending again", "it changed meanwhile; nothing was done, look again", arguments)


async def _purge(db: StateDB, arguments: argparse.Namespace) -> int:
    many = bool(arguments.status) or arguments.older_than_seconds is not None
    if (arguments.id is not None) == many:
        raise BadValue("purge takes either one ID, or --status and/or --older-than-seconds")
    if arguments.id is not None:
        if arguments.dry_run:
            raise BadValue("--dry-run counts what --status and --older-than-seconds select; for one ID use `show`")
        done = await purge_dispatch(db, arguments.id, remove_history=arguments.remove_history, now=arguments.now)
        return _told(done, f"{arguments.id} is purged", f"there is no dispatch {arguments.id!r}; nothing was done", arguments)
    counts = await purge_dispatches(
        db,
        statuses=arguments.status,
        older_than_seconds=arguments.older_than_seconds,
        dry_run=arguments.dry_run,
        remove_history=arguments.remove_history,
        now=arguments.now,
    )
    printing.purged(counts, dry_run=arguments.dry_run, as_json=arguments.json)
    return 0


async def _events(db: StateDB, arguments: argparse.Namespace) -> int:
    found = await list_admin_events(db, limit=arguments.limit, newest_first=True)
    printing.events(found, as_json=arguments.json)
    return 0


async def _run(db: StateDB, arguments: argparse.Namespace) -> int:
    """`db` is not open yet: a stop that comes while it is being opened is heard, and then nothing is claimed."""
    if arguments.project is not None and not os.path.isdir(arguments.project):  # noqa: PTH112 - the other one can raise
        raise BadInput(f"--project {arguments.project}: there is no such directory")
    settings = load(arguments.project)
    if arguments.tick_seconds is not None:
        if not 0 < arguments.tick_seconds < float("inf"):
            raise BadValue(f"--tick-seconds {arguments.tick_seconds}: expected a positive number")
        settings = replace(settings, tick_seconds=arguments.tick_seconds)

    def told(delivery: Delivery) -> None:
        if arguments.once or delivery.counts["attempted"] or delivery.superseded:
            printing.scan({**delivery.counts, "superseded": delivery.superseded}, as_json=arguments.json)

    scheduler = Scheduler(db, settings, directory=arguments.project, told=told)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, scheduler.stop)
    async with db:
        printing.store(db, settings, once=arguments.once)
        if arguments.once:
            told(await scheduler.scan())
            return 0
        await scheduler.run()
    failure = scheduler.failure
    printing.stopped(failure)
    if isinstance(failure, Halt23Error):
        return failure.exit_code
    return 0 if failure is None else 1


def _told(done: bool, success: str, failure: str, arguments: argparse.Namespace) -> int:
    printing.answer(done, success if done else failure, as_json=arguments.json)
    return 0 if done else CHANGED_MEANWHILE


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--db", metavar="URL", help="a file (SQLite) or postgresql://USER@HOST/NAME")
    common.add_argument("--json", action="store_true", help="print JSON")
    parser = argparse.ArgumentParser(
        prog="python -m outbox.dispatch",
        description="Look into a durable dispatch outbox, act on it, or run its scheduler.",
        parents=[common],
    )
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, function: Command, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text, parents=[common])
        command.set_defaults(function=function)
        return command

    listing = add("ls", _ls, "List dispatches, the newest first.")
    listing.add_argument("--status", metavar="STATUS", help=f"one of {', '.join(STATUSES)}")
    listing.add_argument("--limit", type=int, default=LIST_LIMIT, metavar="N", help=f"at most N rows ({LIST_LIMIT})")
    add("show", _show, "Show a dispatch with its history.").add_argument("id", metavar="ID")
    ack = add("ack", _ack, "Present the token of a dispatch that asks for an acknowledgement.")
    ack.add_argument("id", metavar="ID")
    ack.add_argument("token", metavar="TOKEN")
    retry = add("retry", _retry, "Send a dead letter or an expired dispatch again.")
    retry.add_argument("id", metavar="ID")
    purge = add("purge", _purge, "Delete a dispatch, or all of a status and/or an age; who and what is kept as an event.")
    purge.add_argument("id", metavar="ID", nargs="?")
    purge.add_argument("--status", action="append", default=[], metavar="STATUS", help="this status; may be given again")
    purge.add_argument("--older-than-seconds", type=float, metavar="N", help="last changed at least N seconds ago")
    purge.add_argument("--dry-run", action="store_true", help="delete nothing, say what would be")
    purge.add_argument("--remove-history", action="store_true", help="delete the transitions as well; they are kept otherwise")
    for command in (ack, retry, purge):
        command.add_argument("--now", type=float, metavar="SECONDS", help="do it at this time of the epoch (the machine's)")
    events = add("events", _events, "Show what was purged, when and by whom, the newest first.")
    events.add_argument("--limit", type=int, default=LIST_LIMIT, metavar="N", help=f"at most N events ({LIST_LIMIT})")
    run = add("run", _run, "Run the scheduler until SIGTERM, by the settings in halt23.toml.")
    run.add_argument("--once", action="store_true", help="make one scan and end")
    run.add_argument("--project", type=Path, metavar="DIR", help="where halt23.toml is and commands run (here)")
    run.add_argument("--tick-seconds", type=float, metavar="N", help="seconds between scans (30)")
    return parser


class Harmless(logging.Formatter):
    """One line for one record: what a command said on its standard error may hold anything."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is the library's
        return printing.harmless(super().formatMessage(record))


def _version() -> str:
    sqlite = choose()
    return f"SQLite {sqlite.version} ({sqlite.package}), journal mode {sqlite.journal_mode}"


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry; see the module for the exit codes."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if not hasattr(arguments, "db"):
        parser.error("--db is missing: the file or URL of the database")
    arguments.json = getattr(arguments, "json", False)

    async def work() -> int:
        db = StateDB(arguments.db, create=arguments.command == "run")
        function: Command = arguments.function
        if arguments.command == "run":  # opens it itself
            return await function(db, arguments)
        async with db:
            return await function(db, arguments)

    def run() -> int:
        faults.arm_from_environment()
        log = logging.StreamHandler(sys.stderr)
        log.setFormatter(Harmless("dispatch: %(message)s"))
        logging.basicConfig(level=logging.INFO, handlers=[log])
        return asyncio.run(work())

    return reported("dispatch", run)

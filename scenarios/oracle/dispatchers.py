"""Senders that keep journals, each with one mistake; `correct` is their twin.

    python -m scenarios.oracle.dispatchers VARIANT --dir DIR --receiver http://127.0.0.1:PORT [--now SECONDS]

All make the same pass as `outbox.dispatcher`, with its lock, its workflow and its transport, except for the part that the
variant replaces, and a word on what came of it. Exit codes: 0 all delivered, 12 something is not, and those of the dispatcher
for what it could not begin.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from outbox import faults, transport
from outbox.dispatcher import EXIT_UNKNOWN, dispatcher_lock
from outbox.errors import LockHeld, reported
from outbox.journal import Record
from outbox.policies import Policy
from outbox.transport import Limits
from outbox.workflow import RECEIPTS, Workflow, intentions
from scenarios.oracle.disks import NameForgotten, NamelessYet, NeverSynced, RenamedFirst, ReplacedReceipts
from scenarios.oracle.flows import EarlyReceipt, GluedLine, SplitLine, SyncIgnored, SyncRetried, TornTail, Untold, WritesOnce
from scenarios.oracle.names import ReplacedName, RewrittenName
from scenarios.oracle.wires import (
    AnyStatus,
    BelowFourHundred,
    HiddenResend,
    KeyOfItsOwn,
    Plain,
    RedirectFollowed,
    ShortResponse,
)

LOCK_FILE = "dispatcher.pid"
PID_WRITTEN = faults.declare("pid.written", "the lock file with the pid is there")
LOOKED_UP = faults.declare("lookup.done", "what has no receipt is known, the lock is not taken")


@contextmanager
def pid_lock(directory: Path) -> Iterator[None]:
    """Mistake (F24): a file with a pid is the lock. Whoever dies leaves it behind, and everybody after refuses for ever.

    Right: a kernel lock on an open file, which dies with its holder; what the file contains does not matter.
    """
    path = directory / LOCK_FILE
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        raise LockHeld(f"{path}: another dispatcher runs") from None
    os.write(descriptor, str(os.getpid()).encode())
    os.close(descriptor)
    faults.reach(PID_WRITTEN)
    yield
    path.unlink()


@dataclass(frozen=True, slots=True)
class Sender:
    """What a variant is made of; each part is the right one where nothing else is said."""

    flow: Callable[[Path, Policy], Workflow] = Workflow
    wire: Callable[[aiohttp.ClientSession, str, Limits, float], Plain] = Plain
    lock: Callable[[Path], AbstractContextManager[None]] = dispatcher_lock
    # Mistake: what is to be sent is looked up before the lock is taken, and not again.
    looks_up_before_the_lock: bool = False


SENDERS: Mapping[str, Sender] = {
    "correct": Sender(),
    "early-receipt": Sender(flow=EarlyReceipt),
    "torn-tail": Sender(flow=TornTail),
    "glued-line": Sender(flow=GluedLine),
    "split-line": Sender(flow=SplitLine),
    "replaced-name": Sender(flow=ReplacedName),
    "rewritten-name": Sender(flow=RewrittenName),
    "sync-error-ignored": Sender(flow=SyncIgnored),
    "sync-retried": Sender(flow=SyncRetried),
    "short-write-ignored": Sender(flow=WritesOnce),
    "refusal-untold": Sender(flow=Untold),
    "never-synced": Sender(flow=NeverSynced),
    "nameless-yet": Sender(flow=NamelessYet),
    "replaced": Sender(flow=ReplacedReceipts),
    "renamed-first": Sender(flow=RenamedFirst),
    "name-forgotten": Sender(flow=NameForgotten),
    "hidden-resend": Sender(wire=HiddenResend),
    "key-of-its-own": Sender(wire=KeyOfItsOwn),
    "any-status": Sender(wire=AnyStatus),
    "below-400": Sender(wire=BelowFourHundred),
    "redirect-followed": Sender(wire=RedirectFollowed),
    "short-response": Sender(wire=ShortResponse),
    "pid-lock": Sender(lock=pid_lock),
    "look-up-outside-the-lock": Sender(looks_up_before_the_lock=True),
}


async def run_pass(sender: Sender, directory: Path, wire: Plain, keys: frozenset[str] | None) -> bool:
    """Bring every intention as far as it goes; whether all are delivered. `keys`: only these, which have no receipt."""
    whole = True
    with sender.flow(directory, Policy()) as flow:
        for intention in intentions(directory):
            receipt = flow.receipt(intention) if keys is None else None
            if keys is not None and intention.key not in keys:
                continue
            if receipt is None:
                came = await flow.deliver(intention, wire)
                if not isinstance(came, Record):
                    whole = False
                    continue
                receipt = came
            flow.commit_history(intention, receipt)
    return whole


def without_receipt(directory: Path) -> frozenset[str]:
    """What has no receipt now, as somebody reads who owns nothing."""
    known = {record.id for record in RECEIPTS.read(directory)}
    return frozenset(intention.key for intention in intentions(directory) if intention.key not in known)


async def dispatch(sender: Sender, given: argparse.Namespace) -> int:
    """One pass, and what it comes to as an exit code."""
    limits = Limits(timeout_seconds=given.timeout_seconds)
    keys = None
    if sender.looks_up_before_the_lock:
        keys = without_receipt(given.dir)
        faults.reach(LOOKED_UP)
    with sender.lock(given.dir):
        async with transport.new_session(limits) as session:
            wire = sender.wire(session, transport.loopback_url(given.receiver), limits, given.now)
            whole = await run_pass(sender, given.dir, wire, keys)
    print("everything that was found is delivered" if whole else "something is not delivered")
    return 0 if whole else EXIT_UNKNOWN


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry; see the module."""
    parser = argparse.ArgumentParser(prog="python -m scenarios.oracle.dispatchers", description="A sender with one mistake.")
    parser.add_argument("variant", choices=SENDERS)
    parser.add_argument("--dir", type=Path, required=True, help="the outbox's directory")
    parser.add_argument("--receiver", required=True, metavar="URL", help="http://127.0.0.1:PORT")
    parser.add_argument("--now", type=float, default=time.time(), metavar="SECONDS", help="in place of the clock")
    parser.add_argument("--timeout-seconds", type=float, default=Limits().timeout_seconds, help="bound of one attempt")
    given = parser.parse_args(argv)

    def run() -> int:
        faults.arm_from_environment()
        return asyncio.run(dispatch(SENDERS[given.variant], given))

    return reported("dispatcher", run)


if __name__ == "__main__":
    sys.exit(main())

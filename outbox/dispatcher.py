"""The serial dispatcher: one pass over the intentions of a directory, alone, under `dispatcher.lock`.

A pass streams the intentions, delivers each that has no receipt, and commits the history records that are missing. The lock is
a kernel lock on an open file: it dies with its holder, however the holder dies, and what the file contains does not matter. It
is held while the network is waited for, on purpose: recovery stays simple, and the price is that a slow request delays those
behind it.

    python -m outbox.dispatcher --dir DIR --receiver http://127.0.0.1:PORT [--policy resend]

prints one line of JSON, the counts of the pass. Exit codes: 0 all delivered, 2 bad input, 10 receiver unavailable (or it asked
to wait), 11 conflict (the receiver holds the key with another body), 12 unknown outcome (a request left and no usable answer
came), 13 lock held, 14 damaged journal, 15 refused by the receiver, 16 the machine refused (disk full, no permission). Where
several hold, the gravest is told: 12, then 11, 15, 10. An undelivered intention stays where it is; the next pass tries it
again.
"""

import argparse
import asyncio
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import aiohttp

from outbox import faults, transport, workflow
from outbox.errors import BadInput, reported, say
from outbox.files import lock, open_regular, refused
from outbox.outcome import DID_NOT_HAPPEN, MAY_HAVE_HAPPENED, Inquiry, NotDelivered, Outcome
from outbox.policies import POLICIES, Policy
from outbox.transport import Limits
from outbox.workflow import NotDue

LOCK_NAME = "dispatcher.lock"

EXIT_UNAVAILABLE = 10
EXIT_CONFLICT = 11
EXIT_UNKNOWN = 12
EXIT_REFUSED = 15

# Before a connection stands, every later intention would meet the same: the pass stops sending.
_NO_RECEIVER = frozenset({"connection_refused", "connect_timeout", "unreachable"})


@dataclass(slots=True)
class Summary:
    """Counts of one pass. `intentions` is the sum of all others but `history_added`."""

    intentions: int = 0
    already_delivered: int = 0
    delivered: int = 0
    unavailable: int = 0
    conflict: int = 0
    refused: int = 0
    unknown: int = 0
    waiting: int = 0
    not_attempted: int = 0
    history_added: int = 0

    def count(self, failure: NotDelivered) -> None:
        """Count an attempt that brought no receipt."""
        if failure.outcome == MAY_HAVE_HAPPENED:
            self.unknown += 1
        elif failure.reason == "conflict":
            self.conflict += 1
        elif failure.reason == "refused":
            self.refused += 1
        else:
            self.unavailable += 1

    def exit_code(self) -> int:
        """The process's exit code: the gravest of what happened."""
        if self.unknown:
            return EXIT_UNKNOWN
        if self.conflict:
            return EXIT_CONFLICT
        if self.refused:
            return EXIT_REFUSED
        return EXIT_UNAVAILABLE if self.unavailable or self.waiting else 0


@contextmanager
def dispatcher_lock(directory: Path) -> Iterator[None]:
    """Be the only dispatcher of `directory`. Raises LockHeld at once if there is one."""
    path = directory / LOCK_NAME
    try:
        descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise refused(path, "cannot be opened", error) from error
    try:
        lock(descriptor, path)
        yield
    finally:
        os.close(descriptor)


async def dispatch(
    directory: Path, receiver: str, limits: Limits | None = None, policy: Policy | None = None, now: float | None = None
) -> Summary:
    """Make one pass over `directory`, sending to `receiver` (a base URL on this machine).

    `now` (seconds since the epoch) replaces the clock. Raises LockHeld, DamagedJournal, MachineRefused and BadInput. What the
    network does is in the summary instead.
    """
    limits = limits or Limits()
    base = transport.loopback_url(receiver)
    if not directory.is_dir():
        raise BadInput(f"{directory} is not a directory; a producer creates it with its first intention")
    summary = Summary()
    with dispatcher_lock(directory), workflow.Workflow(directory, policy) as flow:
        async with transport.new_session(limits) as session:
            await _Pass(flow, _HttpWire(session, base, limits, now), summary).run(directory)
    return summary


class _HttpWire:
    """The workflow's wire: HTTP to one receiver."""

    def __init__(self, session: aiohttp.ClientSession, base: str, limits: Limits, now: float | None) -> None:
        self._session, self._base, self._limits, self._now = session, base, limits, now

    async def send(self, *, route: str, key: str, body: bytes, attempt: int) -> Outcome:
        url = self._base + route
        return await transport.post(
            self._session, url, key=key, body=body, attempt=attempt, limits=self._limits, now=self.now()
        )

    async def inquire(self, key: str) -> Inquiry:
        return await transport.inquire(self._session, self._base, key, self._limits)

    def now(self) -> float:
        return time.time() if self._now is None else self._now


class _Pass:
    def __init__(self, flow: workflow.Workflow, wire: _HttpWire, summary: Summary) -> None:
        self._flow, self._wire, self._summary = flow, wire, summary
        self._receiver_gone = False

    async def run(self, directory: Path) -> None:
        for intention in workflow.intentions(directory):
            self._summary.intentions += 1
            receipt = self._flow.receipt(intention)
            if receipt is not None:
                self._summary.already_delivered += 1
            elif self._receiver_gone:
                self._summary.not_attempted += 1
                continue
            else:
                outcome = await self._flow.deliver(intention, self._wire)
                if isinstance(outcome, NotDue):
                    self._wait(intention, outcome)
                    continue
                if isinstance(outcome, NotDelivered):
                    self._tell(intention, outcome)
                    continue
                receipt = outcome
                self._summary.delivered += 1
            self._summary.history_added += self._flow.commit_history(intention, receipt)

    def _wait(self, intention: workflow.Intention, due: NotDue) -> None:
        self._summary.waiting += 1
        say(f"dispatcher: {intention.key}: the receiver asked for no attempt before {due.not_before:.0f}", sys.stderr)

    def _tell(self, intention: workflow.Intention, failure: NotDelivered) -> None:
        self._summary.count(failure)
        self._receiver_gone = failure.reason in _NO_RECEIVER
        meaning = "this attempt did not happen" if failure.outcome == DID_NOT_HAPPEN else "it may have happened"
        say(f"dispatcher: {intention.key}: {failure.reason} ({meaning}): {failure.detail}", sys.stderr)
        if failure.reason == "undecided":
            say(
                f"dispatcher: {intention.key} stays unknown and is not sent again. Find out at the receiver's side whether it "
                "was applied; only if it was not, make one pass with --policy resend",
                sys.stderr,
            )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m outbox.dispatcher", description="Deliver the intentions of a directory that have no receipt."
    )
    parser.add_argument("--dir", type=Path, required=True, help="the outbox's directory")
    parser.add_argument("--receiver", required=True, metavar="URL", help="http://127.0.0.1:PORT")
    parser.add_argument("--policy", choices=sorted(POLICIES), default="resend", help="what is done about unknown outcomes")
    parser.add_argument("--now", type=float, metavar="SECONDS", help="time since the epoch, in place of the clock")
    parser.add_argument("--timeout-seconds", type=float, default=Limits().timeout_seconds, help="bound of one attempt")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry; see the module for the exit codes."""
    arguments = _parser().parse_args(argv)

    def run() -> int:
        faults.arm_from_environment()
        if not 0 < arguments.timeout_seconds < float("inf"):
            raise BadInput(f"--timeout-seconds {arguments.timeout_seconds}: expected a positive number")
        if arguments.now is not None and not math.isfinite(arguments.now):
            raise BadInput(f"--now {arguments.now}: expected a number of seconds")
        limits = Limits(timeout_seconds=arguments.timeout_seconds)
        policy = POLICIES[arguments.policy]
        summary = asyncio.run(dispatch(arguments.dir, arguments.receiver, limits, policy, arguments.now))
        say(json.dumps(asdict(summary)), sys.stdout)
        return summary.exit_code()

    return reported("dispatcher", run)


if __name__ == "__main__":
    sys.exit(main())

"""Workflows and journals with one mistake each in how they write."""

import asyncio
import contextlib
import os
from contextlib import ExitStack
from pathlib import Path

from outbox import faults
from outbox.files import refused, write_all
from outbox.journal import Journal, JournalSpec, Record
from outbox.outcome import NotDelivered
from outbox.policies import Policy
from outbox.workflow import ATTEMPTS, BEFORE_SEND, HISTORY, RECEIPTS, VIA_MARK, Intention, Sent, Wire, Workflow

NEWLINE_BEFORE = faults.declare("newline.before", "a record is in the file, its newline is not")


class EarlyReceipt(Workflow):
    """Mistake (F01): the call that sends returns at once, and the row is marked sent; what comes of it later is nobody's.

    As with a producer whose `send` puts a message into a buffer. Right: a receipt is written from the result that came back.
    """

    async def _attempt(self, intention: Intention, number: int, wire: Wire) -> Record | NotDelivered:
        sent = Sent(number, intention.key, intention.fingerprint)
        self._attempts.append(
            "attempt",
            f"{intention.key}#{number}",
            {"intention": intention.key, "number": number, "key": sent.key, "fingerprint": sent.fingerprint},
        )
        faults.reach(BEFORE_SEND)
        sending = asyncio.create_task(
            wire.send(route=intention.route, key=intention.key, body=intention.body, attempt=number), name="flush"
        )
        receipt = self._record_receipt(intention, sent, VIA_MARK)
        await sending  # the buffer is flushed before the process ends; its errors went unseen
        return receipt


class Careless(Workflow):
    """A workflow on journals of another class."""

    journals: type[Journal] = Journal

    def __init__(self, directory: Path, policy: Policy | None = None) -> None:
        self._policy = policy or Policy()
        with ExitStack() as opened:
            self._attempts = opened.enter_context(self._open(ATTEMPTS, directory))
            self._receipts = opened.enter_context(self._open(RECEIPTS, directory))
            self._history = opened.enter_context(self._open(HISTORY, directory))
            self._opened = opened.pop_all()

    def _open(self, spec: JournalSpec, directory: Path) -> Journal:
        return self.journals(spec, spec.path(directory))


class _KeepsTail(Journal):
    def _repair(self, lacks_newline: bool) -> None:
        if lacks_newline:
            super()._repair(lacks_newline)
            return
        # What is appended comes behind the tail, and is looked for there.
        self._end = os.fstat(self._descriptor).st_size


class _TwoWrites(Journal):
    def _write(self, line: bytes, points: faults.WritePoints) -> None:
        write_all(self._descriptor, line[:-1])
        faults.reach(NEWLINE_BEFORE)
        write_all(self._descriptor, line[-1:])
        faults.reach(points.written)
        self._sync()


class _NoNewline(_TwoWrites):
    def _repair(self, lacks_newline: bool) -> None:
        if not lacks_newline:
            super()._repair(lacks_newline)
            return
        self._end -= 1  # it is taken for complete as it stands


class TornTail(Careless):
    """Mistake (F21): the file is opened for append as it is. The next record is glued to the torn one, and both are lost.

    Right: what is torn is cut away before anything is appended.
    """

    journals = _KeepsTail


class SplitLine(Careless):
    """Right: a record and its newline are two writes, and whoever opens a file without the newline adds it. A twin."""

    journals = _TwoWrites


class GluedLine(Careless):
    """Mistake (F22): a last record that is whole but for its newline counts, and the next is appended right behind it.

    Right: the newline is added first.
    """

    journals = _NoNewline


class _SyncIgnored(Journal):
    def _sync(self) -> None:
        with contextlib.suppress(OSError):
            os.fsync(self._descriptor)


class _SyncRetried(Journal):
    def _sync(self) -> None:
        try:
            os.fsync(self._descriptor)
        except OSError:
            os.fsync(self._descriptor)


class _WritesOnce(Journal):
    def _write(self, line: bytes, points: faults.WritePoints) -> None:
        try:
            os.write(self._descriptor, line)
            faults.reach(points.written)
            self._sync()
        except OSError as error:
            self._cut_back()
            raise refused(self.path, "cannot be written", error) from error


class _Untold(Journal):
    def _write(self, line: bytes, points: faults.WritePoints) -> None:
        try:
            write_all(self._descriptor, line)
            faults.reach(points.written)
            self._sync()
        except OSError:
            self._cut_back()
            raise


class SyncIgnored(Careless):
    """Mistake: an error of fsync is passed over, and what may never reach the disk is acted upon.

    Right: the record is cut back, nothing is appended any more, and the process says why it ends.
    """

    journals = _SyncIgnored


class SyncRetried(Careless):
    """Mistake: an fsync that failed is made again, and its success is believed.

    Right: the kernel tells an error once and forgets it, so that a second success proves nothing; the journal is opened again.
    """

    journals = _SyncRetried


class WritesOnce(Careless):
    """Mistake: what the one write says that it wrote is not looked at. After a short one half a record stands for a whole one.

    Right: the rest is written, too, in as many calls as it takes.
    """

    journals = _WritesOnce


class Untold(Careless):
    """Mistake: an error of the machine is nobody's, and the process ends with a traceback and Python's own code.

    Right: a message that says what the machine would not do, and the code that is declared for it.
    """

    journals = _Untold

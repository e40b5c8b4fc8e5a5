"""Journals with one mistake each in what they make durable, and the kind of receiver that answers too early.

The death of a process shows none of these: what was handed to the kernel is still there then. The loss of power does.
"""

import os
from dataclasses import replace
from pathlib import Path

from outbox import faults
from outbox.files import open_regular, sync_directory, write_all
from outbox.journal import Journal, JournalSpec
from outbox.workflow import RECEIPTS
from receivers.arrivals import Answer, Arrival
from receivers.keyed import Keyed
from receivers.kind import Context
from receivers.ledger import EFFECTS
from scenarios.oracle.flows import Careless


class _NeverSynced(Journal):
    def _sync(self) -> None:
        return


class NeverSynced(Careless):
    """Mistake: records are handed to the kernel and not synced. What was sent and received may not have been recorded.

    Right: `append` returns when the record is durable.
    """

    journals = _NeverSynced


class _NamelessYet(Journal):
    def _load(self) -> None:
        spec, self.spec = self.spec, replace(self.spec, synced=False)
        super()._load()
        self.spec = spec


class NamelessYet(Careless):
    """Mistake: every record is synced, the directory in which the file was made is not. The whole file may be gone.

    Right: a new file's directory is synced before anything is acted upon that stands in the file.
    """

    journals = _NamelessYet


class Replaced(Journal):
    """Right: the whole content goes into a new file, is synced, takes the old one's place, and so does its name. A twin's."""

    content_is_synced = True
    name_is_synced = True

    def _write(self, line: bytes, points: faults.WritePoints) -> None:
        new = self.path.with_suffix(".new")
        descriptor = open_regular(new, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC)
        write_all(descriptor, os.pread(self._descriptor, self._end, 0) + line)
        if self.content_is_synced:
            os.fsync(descriptor)
        faults.reach(points.written)
        new.rename(self.path)
        os.dup2(descriptor, self._descriptor, inheritable=False)
        os.close(descriptor)
        if self.name_is_synced:
            sync_directory(self.path.parent)


class _RenamedFirst(Replaced):
    content_is_synced = False


class _NameForgotten(Replaced):
    name_is_synced = False


class ReplacedReceipts(Careless):
    """Right: receipts are a file that is replaced for each of them. A twin."""

    receipts: type[Journal] = Replaced

    def _open(self, spec: JournalSpec, directory: Path) -> Journal:
        return (self.receipts if spec is RECEIPTS else Journal)(spec, spec.path(directory))


class RenamedFirst(ReplacedReceipts):
    """Mistake: the new file is renamed before its content is synced. The old content is gone, and the new one not there."""

    receipts = _RenamedFirst


class NameForgotten(ReplacedReceipts):
    """Mistake (F23): the directory is not synced after the rename. When the power is back, so is the old file."""

    receipts = _NameForgotten


class _SyncedWithNext(Journal):
    behind = False

    def _sync(self) -> None:
        self.behind = True

    def catch_up(self) -> None:
        """Sync what was written since the last time."""
        if self.behind:
            self.behind = False
            super()._sync()


class AnswersFirst(Keyed):
    """Mistake: an effect is answered when it is written, and synced when the next request comes: a sync less for each burst.

    Right: an effect is durable before anybody is told of it.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.ledger.close()
        self._effects = _SyncedWithNext(EFFECTS, EFFECTS.path(context.directory))
        self.ledger._journal = self._effects

    async def serve(self, arrival: Arrival) -> Answer:
        """As a keyed receiver, with the sync that the last one lacked."""
        self._effects.catch_up()
        return await super().serve(arrival)

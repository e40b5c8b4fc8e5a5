"""Senders that keep a name of their own in a file beside the journals, with which every key begins.

The file also counts the results that came back, so it is written anew each time. A sender without a name takes one that was not
there before. No fault point is declared around any of this, as around most code in the world.
"""

import os
from pathlib import Path
from typing import Any

from outbox.files import sync_directory
from outbox.journal import Record
from outbox.policies import Policy
from outbox.workflow import ATTEMPTS, Intention, Sent, Workflow

FILE = "sender"


class ReplacedName(Workflow):
    """Right: the new file is written beside the old one, synced, and takes its place in one step. The twin."""

    def __init__(self, directory: Path, policy: Policy | None = None) -> None:
        self._path = directory / FILE
        name, _, count = self._read().partition(" ")
        if not name:
            name, count = f"sender-{sum(1 for _ in ATTEMPTS.read(directory))}", "0"
        self._name, self._count = name, int(count)
        self._write()
        super().__init__(directory, Policy(key=lambda key, _attempt: f"{name}.{key}"))

    def _read(self) -> str:
        try:
            return self._path.read_text("ascii")
        except FileNotFoundError:
            return ""

    def _write(self) -> None:
        other = self._path.with_suffix(".new")
        with other.open("w", encoding="ascii") as file:
            file.write(f"{self._name} {self._count}")
            file.flush()
            os.fsync(file.fileno())
        other.replace(self._path)
        sync_directory(self._path.parent)

    def _record_receipt(self, intention: Intention, sent: Sent, via: str, **rest: Any) -> Record:
        self._count += 1
        self._write()
        return super()._record_receipt(intention, sent, via, **rest)


class RewrittenName(ReplacedName):
    """Mistake: the file is emptied and written anew where it is. Who dies in between has no name when it comes back, takes
    another one, and sends the same operation under a key that nobody has seen."""

    def _write(self) -> None:
        with self._path.open("w", encoding="ascii") as file:
            text = f"{self._name} {self._count}"
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

"""Where edited archives are audited: in this process, on the disk, file by file.

A `Base` is some scenarios of a real archive as a whole valid archive in memory. A `Ground` has it on the disk; `audit` puts
changed files there, audits and puts the old ones back, so that an edit costs what its own files and one audit cost. The sources
are a frozen copy whose hashes are taken once. Nothing here knows any edit.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import audit.expectations
from audit.archive import Report, audit_archive
from audit.inventory import Checkout
from tests.audit.forge import REPOSITORY
from tests.audit.real import Part, Whole, freeze

PINS = dict(audit.expectations.PROTOCOLS)
Changes = Mapping[str, bytes | None]


class Base:
    """A valid archive in memory: bytes by path, and the part of the real archive that they came from."""

    def __init__(self, whole: Whole, names: tuple[str, ...]) -> None:
        self.whole = whole
        self.names = names
        self.files = self.part().sealed()

    def part(self) -> Part:
        return self.whole.part(*self.names)


@contextmanager
def own_pins() -> Iterator[None]:
    """The audit's own table of protocols, whatever other tests have put in its place."""
    pins: dict[int, Any] = audit.expectations.PROTOCOLS
    before = dict(pins)
    pins.clear()
    pins.update(PINS)
    try:
        yield
    finally:
        pins.clear()
        pins.update(before)


class Ground:
    """A base on the disk."""

    def __init__(self, base: Base, root: Path, folder: Path) -> None:
        self.base = base
        self.root = root
        self.checkout = Checkout(str(root))
        self.folder = folder
        for path in base.files:
            self._put(path, base.files[path])

    def _put(self, path: str, data: bytes | None) -> None:
        target = self.folder / path
        target.unlink(missing_ok=True)  # a file that is cut and written again is flushed to the disk at once
        if data is None:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)

    def judge(self) -> Report:
        with own_pins():
            return audit_archive(str(self.folder), self.checkout)

    def audit(self, changes: Changes) -> Report:
        """The report on the base with these files changed (None: removed)."""
        try:
            for path, data in changes.items():
                self._put(path, data)
            return self.judge()
        finally:
            for path in changes:
                self._put(path, self.base.files.get(path))


class Field:
    """All grounds of one archive: the sources frozen once, the latest few bases kept."""

    def __init__(self, folder: Path, checkout: Path = REPOSITORY) -> None:
        self.whole = Whole(folder)
        self._scratch = tempfile.TemporaryDirectory()
        self._grounds = 0
        self.root = Path(self._scratch.name) / "checkout"
        self.root.mkdir()
        freeze(self.root, checkout)
        self.ground = functools.lru_cache(maxsize=12)(self._ground)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.ground.cache_clear()
        self._scratch.cleanup()

    def _ground(self, *names: str) -> Ground:
        self._grounds += 1
        ground = Ground(Base(self.whole, names), self.root, Path(self._scratch.name) / f"archive-{self._grounds}")
        found = [str(finding) for finding in ground.judge().findings]
        if found:
            raise SystemExit(f"{self.whole.folder}: {' '.join(names)} as it is does not pass: {found[0]}")
        return ground

"""Which SQLite is used, and in which journal mode.

Releases before 3.51.3, but for 3.44.6 and 3.50.7, can corrupt a database in WAL mode that several connections write and
checkpoint (the WAL-reset race), and many Pythons are linked with one. So WAL is used only with a release that has the mend: the
one of the package `pysqlite3` if it is installed, else Python's own. Without one the rollback journal (`TRUNCATE`) is used,
which costs about three times as much for a commit and has no such race; `Sqlite.warning` says so, once.

Nothing is opened here; it needs the standard library only, so that a study can record the choice without loading the outbox.
"""

import importlib.util
import sqlite3
from dataclasses import dataclass
from typing import Any

WAL = "wal"
TRUNCATE = "truncate"
MENDED_FROM = (3, 51, 3)
MENDED_BEFORE = frozenset({(3, 44, 6), (3, 50, 7)})


@dataclass(frozen=True, slots=True)
class Sqlite:
    """The SQLite that is used: its Python module, its version, the journal mode, and what to tell a person (or None)."""

    module: Any
    package: str
    version: str
    journal_mode: str
    warning: str | None


def is_mended(version: tuple[int, ...]) -> bool:
    """Whether a release of SQLite is free of the WAL-reset race (https://www.sqlite.org/wal.html)."""
    return version >= MENDED_FROM or version in MENDED_BEFORE


def choose(candidates: list[Any] | None = None) -> Sqlite:
    """The first mended SQLite in WAL mode, or Python's own with a rollback journal."""
    modules = _installed() if candidates is None else candidates
    for module in modules:
        if is_mended(module.sqlite_version_info):
            return Sqlite(module, _package(module), module.sqlite_version, WAL, None)
    module = modules[-1]
    return Sqlite(
        module,
        _package(module),
        module.sqlite_version,
        TRUNCATE,
        f"SQLite {module.sqlite_version} has the WAL-reset race, so the slower rollback journal (TRUNCATE) is used. "
        "For WAL: pip install pysqlite3, or a Python with SQLite 3.51.3 or later",
    )


def _installed() -> list[Any]:
    modules: list[Any] = [sqlite3]
    if importlib.util.find_spec("pysqlite3") is not None:
        import pysqlite3.dbapi2  # noqa: PLC0415 - an optional package

        modules.insert(0, pysqlite3.dbapi2)
    return modules


def _package(module: Any) -> str:
    return str(module.__name__).partition(".")[0]

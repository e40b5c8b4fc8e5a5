"""Where a run was made: interpreter, packages, platform, file system, and the commit of the sources. All of it is volatile."""

import importlib.metadata
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

import psutil

from outbox.sqlite_choice import choose

# As in pyproject.toml: a bare checkout that was never installed has no metadata to ask.
DIRECT = (
    "aiohttp",
    "aiosqlite",
    "jinja2",
    "markupsafe",
    "psutil",
    "psycopg",
    "pysqlite3",
    "rich",
    "sqlalchemy",
    "yarl",
)
GIT_SECONDS = 10.0
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def provenance(root: Path, out: Path) -> dict[str, Any]:
    """The members of the manifest's `run` that tell of the machine and of the checkout at `root` (evidence/README.md)."""
    commit, clean = _commit(root)
    sqlite = choose()
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "file_system": _file_system(out),
        "packages": dict(sorted(_packages().items())),
        "sqlite": {"package": sqlite.package, "version": sqlite.version, "journal_mode": sqlite.journal_mode},
        "postgres": None,  # a run on a server says here which
        "commit": commit,
        "clean": clean,
    }


def _packages() -> dict[str, str]:
    """Name to version of every package that the project needs, directly or through another one, as installed here."""
    found: dict[str, str] = {}
    waiting = list(DIRECT)
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in found:
            continue
        try:
            package = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # needed on another platform or Python only
        found[name] = package.version
        for requirement in package.requires or []:
            match = _NAME.match(requirement)
            if match and "extra ==" not in requirement:
                waiting.append(match[0])
    return found


def _file_system(out: Path) -> str | None:
    """The type of the file system that holds `out`, or None where the system does not tell."""
    holding = [part for part in psutil.disk_partitions(all=True) if out.resolve().is_relative_to(part.mountpoint)]
    return max(holding, key=lambda part: len(part.mountpoint)).fstype if holding else None


def _commit(root: Path) -> tuple[str | None, bool | None]:
    """The commit that is checked out and whether the tree is as committed; None where git does not tell."""
    commit = _git(root, "rev-parse", "HEAD")
    changes = _git(root, "status", "--porcelain")
    return commit, None if changes is None else not changes


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            # Who looks only must leave no lock behind when it is killed.
            ["git", "--no-optional-locks", "-C", str(root), *arguments],  # noqa: S607 - whichever git the user has
            capture_output=True,
            text=True,
            timeout=GIT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()

"""The hashes of the sources that a run was made with, line ends normalised, so that the same commit hashes alike everywhere."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

FOLDERS = ("outbox", "receivers", "scenarios")
FILES = ("run.py",)


def source_hashes(root: Path) -> dict[str, str]:
    """Relative path to SHA-256 of every source file below `root`, sorted by path; see evidence/README.md for the rule."""
    return {path: _sha256(root / path) for path in sorted(_paths(root))}


def one_hash(hashes: Mapping[str, str]) -> str:
    """One SHA-256 in place of all: of the lines `PATH SHA-256`, sorted by path."""
    return hashlib.sha256("".join(f"{path} {sha}\n" for path, sha in sorted(hashes.items())).encode()).hexdigest()


def _paths(root: Path) -> Iterator[str]:
    # A package that was installed has no run.py beside it.
    yield from (name for name in FILES if (root / name).is_file())
    for folder in FOLDERS:
        for path in (root / folder).rglob("*"):
            relative = path.relative_to(root)
            if path.is_file() and not any(part == "__pycache__" or part.startswith(".") for part in relative.parts):
                yield relative.as_posix()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()

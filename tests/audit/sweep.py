"""Every leaf of a record and of a process, as edits of a part: its value changed to another of its kind, or removed.

Used by a test for representatives of every record type, and by hand over a whole archive:

    python -m tests.audit.sweep [ARCHIVE [SHARE]]

which prints every edit that the audit lets pass. SHARE n tries each n-th edit only.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from audit.archive import audit_archive
from tests.audit.forge import REPOSITORY
from tests.audit.real import Part, Whole

Edit = Callable[[Part], object]
Path_ = tuple[str | int, ...]
VOLATILE = {"stderr", "pid", "started_seconds", "ended_seconds", "resources", "substitutions", "ready"}


def leaves(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """The paths of all values that are neither objects nor filled arrays."""
    if isinstance(value, dict) and value:
        for name in value:
            yield from leaves(value[name], (*path, name))
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from leaves(item, (*path, number))
    else:
        yield path


def other(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        if len(value) == 64:
            return ("0" if value[0] != "0" else "1") + value[1:]
        return value[:-1] + ("x" if value[-1:] != "x" else "y")
    return "x" if value is None else {"x": 1}


def put(root: Any, path: Path_, removed: bool) -> None:
    """Change or remove the value at a path."""
    for name in path[:-1]:
        root = root[name]
    if removed:
        del root[path[-1]]
    else:
        root[path[-1]] = other(root[path[-1]])


def _editing(find: Callable[[Part], Any], path: Path_, removed: bool) -> Edit:
    return lambda part: put(find(part), path, removed)


def edits_of_record(part: Part, journal: str, line: int) -> Iterator[tuple[str, Edit]]:
    """Every edit of one record: its type, its id and each leaf of its data."""
    record = part.journals[journal][line - 1]
    for path in leaves({"id": record["id"], "data": record["data"]}):
        for removed in (False, True) if path[0] == "data" else (False,):
            name = f"{journal}:{line} {'.'.join(map(str, path))} {'removed' if removed else 'changed'}"
            yield name, _editing(lambda each: each.journals[journal][line - 1], path, removed)


def edits_of_process(part: Part, number: int) -> Iterator[tuple[str, Edit]]:
    """Every edit of one process, its volatile members left out."""
    for path in leaves(part.processes[number]):
        for removed in (False, True) if path[0] not in VOLATILE else ():
            name = f"process {number} {'.'.join(map(str, path))} {'removed' if removed else 'changed'}"
            yield name, _editing(lambda each: each.processes[number], path, removed)


def edits(part: Part) -> Iterator[tuple[str, Edit]]:
    """Every edit of every record and process of a part."""
    for journal, records in part.journals.items():
        for line in range(1, len(records) + 1):
            yield from edits_of_record(part, journal, line)
    for number in range(len(part.processes)):
        yield from edits_of_process(part, number)


def passes(part: Part, edit: Edit, folder: Path) -> bool:
    """Whether the audit lets an edit pass, with everything sealed again."""
    edit(part)
    report = audit_archive(str(part.write(folder)), str(REPOSITORY))
    assert not any("foresaw" in str(finding) for finding in report.findings)
    return report.verdict == "PASS"


def main(archive: Path, share: int) -> None:
    whole = Whole(archive)
    tried = passed = 0
    for name in whole.names:
        for number, (words, edit) in enumerate(edits(whole.part(name))):
            if (number + len(name)) % share:
                continue
            tried += 1
            with tempfile.TemporaryDirectory() as folder:
                if passes(whole.part(name), edit, Path(folder)):
                    passed += 1
                    print(name, words, flush=True)
    print(f"{passed} of {tried} edits passed")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)

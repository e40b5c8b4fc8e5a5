"""The tables of the documentation: taken from an archive, put between two markers.

    python -m scenarios.report.chapters evidence/study docs README.md

Between `<!-- table: SECTION -->` and `<!-- end of table -->` stands the table of that section, and nothing else. The counts are
the archive's, so a chapter shows what was found and never what somebody remembers. Only a finished archive in which everything
came out as declared is taken. Whether its results follow from its journals is not asked here: that is the audit's work, and it
comes first. Exit codes: 0 the documents hold the archive's tables, 2 bad input.
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from outbox.errors import BadInput, reported
from scenarios.report.tables import DATABASE, JOURNALS, head, in_words

END = "<!-- end of table -->"
GROUPED = "points"  # a scenario for each point is a list to look things up in; writes with one result share a row

_BEGIN = re.compile(r"<!-- table: (?P<section>[^>]*?) -->")
_COUNTS = ("effects", "receipts", "history", "arrivals")


@dataclass(frozen=True, slots=True)
class _Row:
    section: str
    name: str
    shows: str
    counterexample: bool
    cells: tuple[object, ...]


def tables(archive: Path) -> dict[str, str]:
    """Each section of `archive` with its table in Markdown, in the order of the catalogue.

    Raises BadInput where there is no finished archive, where it cannot be read, and where a scenario did not come out as
    declared.
    """
    if not (archive / "manifest.json").is_file():
        raise BadInput(
            f"{archive} is no finished archive: it has no manifest.json; make one with: python run.py --out {archive}"
        )
    rows = _rows(archive / "results.json")
    return {section: _table(section, list(members)) for section, members in groupby(rows, key=lambda row: row.section)}


def sections(text: str) -> list[str]:
    """The sections that `text` has a table marker for, in order."""
    return [match["section"] for match in _BEGIN.finditer(text)]


def update(text: str, by_section: Mapping[str, str]) -> str:
    """`text` with every marked table replaced by that of its section in `by_section`. A text without markers stays as it is.

    Raises BadInput for a section that is not in `by_section` and for markers that do not pair; the line is named.
    """
    lines: list[str] = []
    begun: int | None = None
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        marker = _BEGIN.search(line)
        if marker and begun is not None:
            raise BadInput(f"line {number}: a table begins here before the one of line {begun} ended; put {END} before it")
        if marker:
            section = marker["section"]
            if section not in by_section:
                raise BadInput(
                    f"line {number}: the archive has no section {section!r}; it has: {', '.join(by_section) or 'none'}"
                )
            begun = number
            lines += [line, by_section[section]]
        elif END in line:
            if begun is None:
                raise BadInput(f"line {number}: {END} ends no table; put <!-- table: SECTION --> where it begins")
            begun = None
        if begun is None:
            lines.append(line)
    if begun is not None:
        raise BadInput(f"line {begun}: the table that begins here has no end; put {END} behind it")
    return "".join(lines)


def rewrite(archive: Path, places: Sequence[Path]) -> list[Path]:
    """Put the tables of `archive` into the documents `places` (files, or folders of `*.md`) and return those that changed.

    Nothing is written unless everything fits. Raises BadInput, also where a section's table has no place in any document.
    """
    found = tables(archive)
    documents = _documents(places)
    missing = [section for section in found if not any(section in sections(text) for text in documents.values())]
    if missing:
        named = ", ".join(str(place) for place in places)
        raise BadInput(f"no document in {named} has the marker <!-- table: {missing[0]} -->; the table belongs behind it")
    updated = {path: _updated(path, text, found) for path, text in documents.items()}
    changed = [path for path, text in documents.items() if updated[path] != text]
    for path in changed:
        try:
            path.write_text(updated[path], encoding="utf-8", newline="\n")
        except OSError as error:
            raise BadInput(f"{path}: cannot be written: {error.strerror}") from error
    return changed


def _rows(path: Path) -> list[_Row]:
    try:
        results = json.loads(path.read_bytes())
        scenarios = results["scenarios"]
        failed = [each["scenario"] for each in scenarios if each["verdict"] != "PASS"]
        if failed:
            raise BadInput(f"{path}: {failed[0]} did not come out as declared; run again, and document what passes")
        return [_row(each) for each in scenarios]
    except FileNotFoundError:
        raise BadInput(f"{path}: there is no such file; an archive that run.py finished has it") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path}: is not what evidence/README.md describes: {type(error).__name__}: {error}") from None


def _row(scenario: Mapping[str, Any]) -> _Row:
    section, _, name = scenario["scenario"].partition("/")
    cells: tuple[object, ...] = tuple(int(scenario["counts"][each]) for each in _COUNTS)
    if scenario["exports"]:
        rows = scenario["exports"][-1]["rows"]
        cells = (*cells, int(rows["attempts"]), in_words(rows))
    return _Row(section, name, scenario["shows"], scenario["counterexample"], cells)


def _table(section: str, rows: Sequence[_Row]) -> str:
    columns = DATABASE if any(len(row.cells) > len(_COUNTS) for row in rows) else JOURNALS
    above = f"{head(columns)}\n"
    if section != GROUPED:
        return above + "".join(_line(f"`{row.name}`: {row.shows}", row) for row in rows)
    groups = groupby(rows, key=lambda row: (row.name.rpartition("_")[0], row.counterexample, row.cells))
    return above + "".join(_group(list(members)) for _same, members in groups)


def _group(rows: Sequence[_Row]) -> str:
    return _line(", ".join(f"`{row.name}`" for row in rows), rows[0])


def _line(label: str, row: _Row) -> str:
    mark = " (counterexample)" if row.counterexample else ""
    return f"| {label}{mark} | {' | '.join(str(cell) for cell in row.cells)} |\n"


def _documents(places: Sequence[Path]) -> dict[Path, str]:
    """The texts of all documents; a file that was named and has no marker is a mistake, in a folder it is not."""
    texts: dict[Path, str] = {}
    for place in places:
        folder = place.is_dir()
        for path in sorted(place.glob("*.md")) if folder else [place]:
            try:
                texts[path] = path.read_text(encoding="utf-8")
            except (OSError, ValueError) as error:
                raise BadInput(f"{path}: cannot be read as text: {error}") from error
            if not folder and not sections(texts[path]):
                raise BadInput(f"{path}: has no marker <!-- table: SECTION -->, so there is no place for a table")
    return texts


def _updated(path: Path, text: str, found: Mapping[str, str]) -> str:
    try:
        return update(text, found)
    except BadInput as error:
        raise BadInput(f"{path}, {error}") from None


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry; see the module for the exit codes."""
    parser = argparse.ArgumentParser(
        prog="python -m scenarios.report.chapters", description="Put an archive's tables into the documents that show them."
    )
    parser.add_argument("archive", type=Path, help="a finished archive, for instance evidence/study")
    parser.add_argument("documents", type=Path, nargs="+", help="Markdown files, or folders of them")
    given = parser.parse_args(argv)

    def run() -> int:
        changed = rewrite(given.archive, given.documents)
        for path in changed:
            print(f"rewritten: {path}")
        if not changed:
            print("all tables were up to date")
        return 0

    return reported("chapters", run)


if __name__ == "__main__":
    sys.exit(main())

"""`tables.md`, line by line: what readers paste must be what the archive gives, to the last word.

The file is rendered again from the plans and the counts and compared with what is there. The introductions of the sections are
prose that no other file holds; their hashes are pinned (`expectations.introductions`).
"""

from __future__ import annotations

from audit.expectations.introductions import INTRODUCTIONS
from audit.expectations.words import ROWS
from audit.findings import show
from audit.hashing import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.case import Case
    from audit.findings import Note

HEAD = ("| Scenario | Receiver effects | Receipts | Complete history records | Arrivals |", "|---|---|---|---|---|")
HEAD_OF_EXPORTS = (
    "| Scenario | Receiver effects | Receipts | Transitions | Arrivals | Attempts | Rows at the end |",
    "|---|---|---|---|---|---|---|",
)
"""The head of a section whose scenarios export the tables of a dispatch outbox."""
MOST_TOLD = 5
"""A line too many moves all behind it: the first few differences say where to look."""


def hold_lines(lines: list[str], cases: list[Case], note: Note) -> None:
    """Hold every line of the file against the one that the archive gives."""
    wanted = _rendered(cases)
    told = 0
    for number, (line, expected) in enumerate(zip(lines, wanted, strict=False), 1):
        section = expected[1:] if expected.startswith("\0") else None
        if section is None:
            good, words = line == expected, show(expected)
        else:
            good = digest(line.encode("utf-8", "surrogatepass")) == INTRODUCTIONS.get(section)
            words = f"the introduction of section {section}"
        if not good and told < MOST_TOLD:
            told += 1
            note(f"tables.md:{number}", f"is {show(line)}, expected {words}")
    if len(lines) != len(wanted):
        note("tables.md", f"has {len(lines)} lines, expected {len(wanted)}")


def _rendered(cases: list[Case]) -> list[str]:
    """The lines that the file must have; an introduction is a zero byte and the section's name."""
    lines = ["# Scenario tables", ""]
    for section in dict.fromkeys(case.plan["section"] for case in cases):
        part = [case for case in cases if case.plan["section"] == section]
        lines += [
            f"## {section.capitalize()}",
            "",
            f"\0{section}",
            "",
            *(HEAD_OF_EXPORTS if any(case.exporting for case in part) else HEAD),
            *[_row(case) for case in part],
            "",
            _sums(part),
            "",
        ]
    return [*lines, "## Altogether", "", _sums(cases), ""]


def _row(case: Case) -> str:
    mark = " (counterexample)" if case.plan["counterexample"] else ""
    return f"| `{case.plan['name']}`: {case.plan['shows']}{mark} | {' | '.join(cells_of(case))} |"


def cells_of(case: Case) -> list[str]:
    """The cells of a scenario's row behind the first: its counts, and of a dispatch outbox its attempts and its rows."""
    cells = [str(count) for count in case.counts()]
    if case.exporting:
        from audit.exports import LAST, in_words  # noqa: PLC0415 (needed by one section, so not at every start)

        rows = case.rows.get(LAST)
        cells += ["?", "?"] if rows is None else [str(rows[ROWS.index("attempts")]), in_words(rows)]
    return cells


def _sums(cases: list[Case]) -> str:
    wrong = sum(case.plan["counterexample"] for case in cases)
    processes = sum(len(case.processes) for case in cases)
    requests = sum(case.counts()[3] for case in cases)
    return f"{len(cases)} scenarios, counterexamples among them: {wrong}; {processes} child processes, {requests} requests."

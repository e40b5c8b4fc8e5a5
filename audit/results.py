"""`results.json` and `tables.md`, the conveniences: both must say what the journals say, and nothing else.

Counts, checks and totals are compared with the ones that were re-derived; sentences with the protocol; verdicts and
problems must be those of a run in which everything came out as declared. The rows of `tables.md` are read cell by
cell, so that a wrong count is told as one, and the whole file line by line (`audit.tables`).
"""

from __future__ import annotations

from audit.checkpoints import say
from audit.expectations.words import COUNTED, ROWS
from audit.findings import show
from audit.protocol import COUNTS, ROW_COUNTS
from audit.shapes import COUNT, FLAG, LIST, NAME, OBJECT, TEXT, exactly, holds, list_of, one_of
from audit.tables import cells_of, hold_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.case import Case
    from audit.findings import Note
    from audit.shapes import Shape

VERDICT = one_of("PASS", "FAIL")
RESULTS: Shape = {
    "format": exactly("halt23.results"), "format_version": exactly(1), "scenarios": LIST, "totals": OBJECT,
    "verdict": VERDICT,
}  # fmt: skip
SCENARIO: Shape = {
    "scenario": NAME, "shows": TEXT, "look_at": TEXT, "counterexample": FLAG, "expected": OBJECT, "counts": OBJECT,
    "checks": LIST, "exports": LIST, "problems": list_of(TEXT), "verdict": VERDICT,
}  # fmt: skip
CHECK: Shape = {"name": NAME, "expected": OBJECT, "counts": OBJECT}
EXPORT: Shape = {"name": NAME, "expected": OBJECT, "rows": OBJECT}
CONTROLS = bytes([*range(10), *range(11, 32), 127])
COUNTEREXAMPLES = "counterexamples among them: "
TOTALS: Shape = dict.fromkeys(("scenarios", "processes", "requests", "records"), COUNT)


def check(document: dict[str, Any], cases: list[Case], totals: dict[str, int], note: Note) -> None:
    """Hold results.json against the journals, the protocol and the totals."""
    if not holds(document, RESULTS, note, ""):
        return
    if document["verdict"] != "PASS":
        note("verdict", f"is {show(document['verdict'])}, expected 'PASS'")
    if holds(document["totals"], TOTALS, note, "totals"):
        for name, wanted in totals.items():
            if document["totals"][name] != wanted:
                note(f"totals.{name}", f"is {document['totals'][name]}, but the archive has {wanted}")
    entries = document["scenarios"]
    if len(entries) != len(cases):
        note("scenarios", f"has {len(entries)} entries, but {len(cases)} scenarios were selected")
    for number, (entry, case) in enumerate(zip(entries, cases, strict=False)):
        _entry(entry, case, note, f"scenarios[{number}]")


def _entry(entry: Any, case: Case, note: Note, place: str) -> None:
    if not holds(entry, SCENARIO, note, place):
        return
    for member, wanted in (
        ("scenario", case.name),
        ("shows", case.plan["shows"]),
        ("look_at", case.plan["look_at"]),
        ("counterexample", case.plan["counterexample"]),
        ("expected", case.plan["expected"]),
        ("problems", []),
        ("verdict", "PASS"),
    ):
        if entry[member] != wanted:
            note(f"{place}.{member}", f"is {show(entry[member])}, expected {show(wanted)}")
    holds(entry["expected"], COUNTS, note, f"{place}.expected")
    _counts(entry["counts"], case.counts(), note, f"{place}.counts")
    planned = [step for step in case.plan["steps"] if step["do"] == "check"]
    if len(entry["checks"]) != len(planned):
        note(f"{place}.checks", f"has {len(entry['checks'])} entries, but the protocol has {len(planned)} checks")
    for number, (check_entry, step) in enumerate(zip(entry["checks"], planned, strict=False)):
        where = f"{place}.checks[{number}]"
        if not holds(check_entry, CHECK, note, where):
            continue
        for member, wanted in (("name", step["name"]), ("expected", step["counts"])):
            if check_entry[member] != wanted:
                note(f"{where}.{member}", f"is {show(check_entry[member])}, but the protocol has {show(wanted)}")
        holds(check_entry["expected"], COUNTS, note, f"{where}.expected")
        _counts(check_entry["counts"], case.checkpoints.get(step["name"], (0, 0, 0, 0)), note, f"{where}.counts")
    _exports(entry["exports"], case, note, place)


def _exports(entries: list[Any], case: Case, note: Note, place: str) -> None:
    """What is told of the exports is what the protocol asks for and what the exports hold."""
    planned = [step for step in case.plan["steps"] if step["do"] == "export"]
    if len(entries) != len(planned):
        note(f"{place}.exports", f"has {len(entries)} entries, but the protocol has {len(planned)} exports")
    for number, (entry, step) in enumerate(zip(entries, planned, strict=False)):
        where = f"{place}.exports[{number}]"
        if not holds(entry, EXPORT, note, where):
            continue
        for member, wanted in (("name", step["name"]), ("expected", step["rows"])):
            if entry[member] != wanted:
                note(f"{where}.{member}", f"is {show(entry[member])}, but the protocol has {show(wanted)}")
        holds(entry["expected"], ROW_COUNTS, note, f"{where}.expected")
        if holds(entry["rows"], ROW_COUNTS, note, f"{where}.rows"):
            told, held = tuple(entry["rows"][name] for name in ROWS), case.rows.get(step["name"])
            if told != held:
                from audit.exports import say as in_words  # noqa: PLC0415 (needed by one section, so not at every start)

                words = "cannot be read" if held is None else f"holds {in_words(held)}"
                note(f"{where}.rows", f"is {in_words(told)}, but the export {words}")


def _counts(claimed: Any, derived: tuple[int, int, int, int], note: Note, place: str) -> None:
    if holds(claimed, COUNTS, note, place):
        counts = tuple(claimed[name] for name in COUNTED)
        if counts != derived:
            note(place, f"is {say(counts)}, but the journals have {say(derived)}")


def check_tables(data: bytes, cases: list[Case], note: Note) -> None:
    """Every selected scenario has its one row, in order, with the counts of the journals; a line of sums ends each table."""
    try:
        lines = data.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        note("", f"is not UTF-8 at byte {error.start + 1}")
        return
    if data.startswith(b"\xef\xbb\xbf") or data.translate(None, CONTROLS) != data or not data.endswith(b"\n"):
        note("", "has a byte order mark or a control character, or does not end with a newline")
    rows = [(number, line) for number, line in enumerate(lines, 1) if line.lstrip().startswith("|") and "`" in line]
    found: list[str] = []
    names = [case.plan["name"] for case in cases]
    for number, line in rows:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        name = cells[0].split("`")[1] if cells[0].startswith("`") else ""
        at = len(found) if names[len(found) : len(found) + 1] == [name] else names.index(name) if name in names else None
        if at is None:
            note(f"tables.md:{number}", f"is the row of {show(name)}, which is none of the selected scenarios")
            continue
        found.append(name)
        wanted = cells_of(cases[at])
        if cells[1:] != wanted:
            note(f"tables.md:{number}", f"has the counts {show(cells[1:])}, but the journals have {show(wanted)}")
        if ("counterexample" in cells[0].lower()) != cases[at].plan["counterexample"]:
            note(f"tables.md:{number}", "names a counterexample where there is none, or does not name one")
    if found != names:
        note("", f"has the rows {show(found)}, expected one for each of {show(names)}")
    _sums(
        [(number, line) for number, line in enumerate(lines, 1) if " child processes" in line and "|" not in line], cases, note
    )
    hold_lines(lines, cases, note)


def _sums(lines: list[tuple[int, str]], cases: list[Case], note: Note) -> None:
    """The sums of each section, in order, and those of all."""
    sections = list(dict.fromkeys(case.plan["section"] for case in cases))
    parts = [[case for case in cases if case.plan["section"] == section] for section in sections]
    if len(lines) != len(parts) + 1:
        note("", f"has {len(lines)} lines of sums, expected one for each of {len(parts)} sections and one for all")
    for (number, line), part in zip(lines, [*parts, cases], strict=False):
        wanted = (len(part), sum(len(case.processes) for case in part), sum(case.counts()[3] for case in part))
        for noun, count in zip((" scenarios", " child processes", " requests"), wanted, strict=True):
            if line.partition(noun)[0].split(" ")[-1] != str(count):
                note(f"tables.md:{number}", f"says {show(line)}, but the archive has {count}{noun}")
        told, wrong = line.partition(COUNTEREXAMPLES)[2], sum(case.plan["counterexample"] for case in part)
        if COUNTEREXAMPLES in line and told.partition(";")[0] != str(wrong):
            note(f"tables.md:{number}", f"says {show(line)}, but {wrong} of the scenarios are counterexamples")

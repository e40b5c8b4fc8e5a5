"""Audits a check: what `run.py check worker` or `run.py check receiver` left of somebody else's program.

Everything that follows from the lines is derived anew: effects, verdicts, windows, sums, the claims that hold, the verdict, the
table, and the hash of every file. What the lines themselves tell (who died, what arrived when, what was still stored, what was
answered) happened in programs of others and is taken on their word; the last line of the output says so.
"""

from __future__ import annotations

from audit import check_battery, check_lines, inventory
from audit.archive import Report, document
from audit.check_table import Sums
from audit.check_words import (
    CLAIMS,
    IN_DOUBT,
    KEYED,
    LOST,
    ONCE_AT_LEAST,
    ONCE_AT_MOST,
    RECEIVER,
    STUCK,
    UNCLEAR,
    UNKEYED,
    WORKER,
    fails,
)
from audit.files import Tree, Unreadable
from audit.findings import FAIL, PASS, UNKNOWN, Findings, plain, show
from audit.protocol import MOMENT
from audit.shapes import COUNT, LIST, NAME, NUMBER, OBJECT, exactly, holds, list_of, map_of, one_of, optional
from audit.shapes import SHA as HASH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.findings import Note
    from audit.inventory import Checkout
    from audit.shapes import Shape

FORMAT = "halt23.check"
MANIFEST, PLAN, TARGET, RESULTS, SUMMARY, TABLE, CASES = (
    "manifest.json",
    "plan.json",
    "target.toml",
    "results.jsonl",
    "summary.json",
    "table.md",
    "cases/",
)
KIND = one_of(WORKER, RECEIVER)
SHAPE: Shape = {
    "format": exactly(FORMAT), "format_version": exactly(1), "kind": KIND, "target": NAME,
    "verdict": one_of(PASS, FAIL, UNKNOWN), "run": OBJECT, "sources": map_of(HASH), "files": map_of(OBJECT),
}  # fmt: skip
RUN: Shape = {"started_at": MOMENT, "wall_seconds": NUMBER}
PLANNED: Shape = {
    "kind": KIND, "target": OBJECT, "options": OBJECT, "machine": OBJECT, "python": NAME, "versions": map_of(NAME),
}  # fmt: skip
CLAIM = optional(one_of(*CLAIMS))
SUMMED: Shape = {
    "kind": KIND, "target": NAME, "verdict": one_of(PASS, FAIL, UNKNOWN), "claims": CLAIM, "holds": optional(LIST),
    "cases": COUNT, "not_played": COUNT, "by_verdict": OBJECT, "wall_seconds": NUMBER, "cases_per_second": NUMBER,
    "windows": LIST, "notes": list_of(NAME),
}  # fmt: skip
MOST_TOLD = 20
WORD = {
    WORKER: "that the processes died so, that these requests arrived then, and what was still stored",
    RECEIVER: "that these were the exchanges and the counted effects, and that this was expected",
}
"""What is taken on the check's word."""


def audit_check(path: str, checkout: Checkout) -> Report:
    """Audit one check against itself and the checkout."""
    findings = Findings()
    tree = Tree(path, findings)
    manifest, plan, summary = (document(tree, name) for name in (MANIFEST, PLAN, SUMMARY))
    sums: Sums | None = None
    told: list[tuple[str, str]] = []
    note = findings.about(MANIFEST)
    if manifest is not None and plan is not None and _formed(manifest, plan, findings):
        kind, target = plan["kind"], plan["target"]
        for name, value in (("kind", kind), ("target", target["name"])):
            if manifest[name] != value:
                note(name, f"is {show(manifest[name])}, but plan.json has {show(value)}")
        _target(tree, target, findings)
        sums = Sums(kind, target["name"], target["claims"] if kind == WORKER else None)
        folders: set[str] = set()
        told = _lines(tree, plan, sums, folders, findings)
        _conclusions(tree, manifest, summary, sums, findings)
        expected = {PLAN, TARGET, RESULTS, SUMMARY, TABLE} | {name for name in tree.sizes if _is_kept(name, folders)}
        inventory.check_files(tree, manifest["files"], expected, findings)
        inventory.check_sources(checkout, manifest["sources"], findings)
    return _report(path, sums, told, findings)


def _formed(manifest: dict[str, Any], plan: dict[str, Any], findings: Findings) -> bool:
    note, planned = findings.about(MANIFEST), findings.about(PLAN)
    good = [holds(manifest, SHAPE, note, ""), holds(plan, PLANNED, planned, "")]
    if not all(good):
        return False
    holds(manifest["run"], RUN, note, "run")
    target = plan["target"]
    if not NAME.test(target.get("name")) or not CLAIM.test(target.get("claims", 0)):
        planned("target", f"has the name {show(target.get('name'))} and claims {show(target.get('claims'))}")
        return False
    if target.get(plan["kind"]) is None:
        planned("target", f"describes no {plan['kind']}, but one was checked")
    return True


def _target(tree: Tree, planned: dict[str, Any], findings: Findings) -> None:
    """The target file that was given says what the plan says of it."""
    from tomllib import TOMLDecodeError, loads  # noqa: PLC0415 (needed by checks only, so not at every start)

    data = tree.read(TARGET) if TARGET in tree.sizes else None
    if data is None:
        return
    try:
        given = loads(data.decode())
    except (TOMLDecodeError, UnicodeDecodeError) as error:
        findings.add(TARGET, "", f"is no TOML: {show(str(error))}")
        return
    _same(given, planned, "", findings.about(TARGET))


def _same(given: Any, planned: Any, place: str, note: Note) -> None:
    """What stands in the file stands in the plan; what does not has its default there, and a name or claim has none."""
    if type(given) is dict and type(planned) is dict:
        for name, value in given.items():
            _same(value, planned.get(name), f"{place}.{name}" if place else name, note)
        if not place and given.get("claims") != planned.get("claims"):
            note("claims", f"is {show(given.get('claims'))}, but plan.json has {show(planned.get('claims'))}")
    elif given != planned:
        note(place, f"is {show(given)}, but plan.json has {show(planned)}")


def _lines(tree: Tree, plan: dict[str, Any], sums: Sums, folders: set[str], findings: Findings) -> list[tuple[str, str]]:
    """Hold every line; what does not hold, and what is in doubt, each as subject and sentence."""
    note, is_worker, told = findings.about(RESULTS), sums.kind == WORKER, []
    names: set[str] = set()
    try:
        for number, (data, complete) in enumerate(tree.lines(RESULTS) if RESULTS in tree.sizes else (), 1):
            place = f"line {number}"
            line = check_lines.read(data, complete, is_worker, note, place)
            if line is None:
                continue
            name = line["case" if is_worker else "expectation"]
            if name in names:
                note(place, f"is of {show(name)} once more")
            names.add(name)
            folders.add(folder(name))
            (check_lines.hold_worker if is_worker else check_lines.hold_receiver)(line, note, place)
            if is_worker:
                check_lines.hold_to_plan(line, plan, note, place)
            else:
                check_battery.hold(line, plan, note, place)
            sums.add(line)
            told += _told(line, name, is_worker)
    except Unreadable as error:
        note("", str(error))
    budget = plan["options"].get("budget")
    if is_worker and COUNT.test(budget) and sums.cases > budget:
        note("", f"tells of {count(sums.cases)}, but the budget was {budget}")
    return told


def _told(line: dict[str, Any], name: str, is_worker: bool) -> list[tuple[str, str]]:
    if line["verdict"] in (IN_DOUBT, UNCLEAR):
        return [(UNKNOWN, f"{name}: {'; '.join(line['reasons']) if is_worker else line['seen']}")]
    if is_worker or not fails(line):
        return []
    return [(line["severity"], f"{name} ({line['source']}): expected {line['expected']}, seen {line['seen']}")]


def folder(name: str) -> str:
    """The folder of a case's files, below `cases/`; where two cases would share one, `_` is behind the later one's name."""
    made, between = "", False
    for each in name:
        kept = each.isascii() and (each.isalnum() or each in "._-")
        made += each if kept else "" if between else "_"
        between = not kept
    return made


def _is_kept(name: str, folders: set[str]) -> bool:
    parts = name.split("/")
    return len(parts) > 2 and parts[0] + "/" == CASES and (parts[1] in folders or parts[1].rstrip("_") in folders)


def _conclusions(tree: Tree, manifest: dict[str, Any], summary: dict[str, Any] | None, sums: Sums, findings: Findings) -> None:
    """What summary, table and manifest conclude follows from the lines."""
    note, seconds = findings.about(SUMMARY), manifest["run"].get("wall_seconds")
    wanted = sums.summary(seconds if NUMBER.test(seconds) else 0.0)
    left_out = 0
    if summary is not None and holds(summary, SUMMED, note, ""):
        for name, value in wanted.items():
            if summary[name] != value:
                note(name, f"is {show(summary[name])}, but the lines give {show(value)}")
            elif name == "by_verdict" and list(summary[name]) != list(value):
                note(name, "has its members in another order")
        left_out = summary["not_played"]  # how many that were is not in the lines
    if manifest["verdict"] != wanted["verdict"]:
        findings.add(MANIFEST, "verdict", f"is {manifest['verdict']}, but the lines give {wanted['verdict']}")
    data = tree.read(TABLE) if TABLE in tree.sizes else None
    if data is not None and data != sums.table(wanted, left_out).encode("utf-8", "surrogatepass"):
        findings.add(TABLE, "", "is not the table that the lines give")


def _report(path: str, sums: Sums | None, told: list[tuple[str, str]], findings: Findings) -> Report:
    disagrees = bool(findings.items)
    verdict = FAIL if disagrees or sums is None else sums.verdict
    totals = {"cases": sums.cases, **sums.counts} if sums is not None else {}
    if sums is not None and not disagrees:
        if sums.kind == WORKER and verdict != PASS:
            for window in sums.summary(0.0)["windows"][:MOST_TOLD]:
                if window["verdict"] in bad(sums):
                    findings.add(window["verdict"], window["where"], f"{count(window['cases'])}, such as {window['example']}")
        for subject, sentence in told[:MOST_TOLD]:
            findings.add(subject, "", plain(sentence))
        if not sums.cases:
            findings.add(UNKNOWN, "", "no case was played")
    report = Report(path, verdict, findings, totals, 0)
    report.checked, report.sums = _said(sums, disagrees), sums
    return report


def count(cases: int) -> str:
    """So many cases."""
    return "1 case" if cases == 1 else f"{cases} cases"


def bad(sums: Sums) -> tuple[str, ...]:
    """The verdicts of cases that go against what a worker claims; without a claim, against at-least-once with stable keys."""
    if sums.claims == ONCE_AT_MOST:
        return (KEYED, UNKEYED)
    return (LOST, STUCK) if sums.claims == ONCE_AT_LEAST else (LOST, STUCK, KEYED)


def _said(sums: Sums | None, disagrees: bool) -> str:
    """The verdict in words: false evidence is told from true evidence of a program that does not hold."""
    if sums is None:
        return "the evidence cannot be worked with"
    if disagrees:
        return "the evidence does not agree with itself"
    counts = ", ".join(f"{number} {verdict}" for verdict, number in sums.counts.items() if number) or "none"
    cases = f"the evidence agrees with itself; {sums.kind} {plain(sums.target)}: {count(sums.cases)} ({counts})"
    if sums.kind == WORKER:
        cases += f", claimed {sums.claims or 'nothing'}, holds {', '.join(sums.held.claims()) or 'none'}"
    return f"{cases}; taken on its word: {WORD[sums.kind]}"

"""`--explain`: what the audit of an archive looked at, with this archive's numbers, and what its verdict means.

The walk follows the archive from its files to its counts, one paragraph for each group of checks. A FAIL is told by the
promises that the findings break. The numbers are counted here from what was read; nothing here judges.
"""

from __future__ import annotations

import os

from audit.case import HALTED
from audit.expectations.words import ROWS, STATUSES
from audit.exports import LAST
from audit.findings import FAIL, UNKNOWN, plain
from audit.promises import broken
from audit.protocol import RUN, SERVER, SQLITE
from audit.shapes import holds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.archive import Kept, Report

WIDTH = 100
SHOWN = 5
"""As many findings of one promise are told in full."""

MEANS = (
    "every promise above was looked at, and nothing was found against any: the archive holds {held}, it agrees with itself "
    "in every record and every sum, and each of these scenarios came to the counts that were declared, by the protocol and "
    "by the audit's own table. The audit shares no code with the programs that made the archive: for both to be "
    "wrong in the same way, the same mistake must have been made twice."
)
MEANS_NOT = (
    "that nobody made it up. Whoever rebuilds a whole consistent archive, journals, checksums and manifest, is not caught "
    "by it. Against that there is only a run of your own: python run.py --out DIR, then --compare.",
    "that the run happened on the machine, at the time and at the commit that the manifest names. Those fields are volatile: "
    "they are held for their form, and pids, ports and clock readings for their order, but nothing vouches for them.",
    "that power loss would come out the same. A process died; what it had handed to the kernel was still there afterwards.",
    "that other receivers, networks or machines behave so. The receivers teach, and the network is the loopback.",
    "that a counterexample is right: there the wrong count is the declared one.",
    "that the outbox is free of faults: the declared scenarios are all that was run.",
)


def explain(report: Report) -> list[str]:
    """The explanation of the report on one archive, in lines of ASCII."""
    if report.campaign:
        from audit import campaign_explain  # noqa: PLC0415 (not needed for a study)

        return campaign_explain.explain(report)
    if report.checked:
        from audit import check_explain  # noqa: PLC0415 (as above)

        return check_explain.explain(report, report.sums)
    name = plain(os.path.normpath(report.path))
    lines = heading(f"What was checked in {name}")
    if report.kept is None:
        lines += wrapped(
            "Nothing beyond a first look: without a manifest.json in its form there is nothing to hold the rest against."
        )
    else:
        numbers = _numbers(report.kept)
        for paragraph in WALK:
            lines += wrapped(paragraph.format_map(numbers))
    return lines + _verdict(report, name)


WALK = (
    "Files. {files} with {bytes} bytes. The hashes of all were computed anew and held against the {listed} of the manifest: "
    "none may be missing, changed or surplus. {sources} of the run were held against this checkout: the code that ran must "
    "be the code that you see.",
    "Run. {run} Nothing vouches for that; it is held for its form.",
    "Plan. Protocol version {version} with {catalogue}, whose hash the audit has pinned: no plan may be changed after the "
    "fact. {scenarios} ran ({wrong} of them counterexamples), with {steps}.",
    "Processes. {processes}, each held twice, against the step that started it and against the audit's own table: name, "
    "command, fault, end. {halted} halted with code 23, at {points}; each must have been armed there, and have left its "
    "witness line. {killed} were killed, {paused} paused. Pids, ports and clock readings differ from run to run, and must "
    "still fit the order of the steps.",
    "Journals. {journals} with {records}. Each record must be in its one form, with the checksum of its bytes and of the "
    "record before: none may be changed, moved, taken out or put in. {torn}, allowed only where a fault that tears was "
    "fired last. {checks}: what was there in the middle must be the beginning of what was there at the end.",
    "Sender. {intention}, {attempt}, {outcome}, {receipt}, {history}. Each pass was played again from its journals: what "
    "the policy allows, in that order; no attempt without an intention, no receipt without its attempt, no history without "
    "its receipt. The tally that it printed and its exit code must follow.",
    "Receiver. {arrival}, {answer}, {effect}, {key}, {query}. Each answer must be the one that this kind of receiver owes "
    "to what it remembered at that moment, and each effect must have the arrival that caused it.",
    "Books. {exports} of a dispatch outbox on {database} with {rows}, {moves} and {events}. The audit kept books of its own: "
    "it played producers, scans, consumers and operators from their commands, through each pause and death, over what the "
    "receivers answered. Every member of every row, transition and event, every printed line and every exit code must be what "
    "they come to.",
    "Wire. {exchange} through a relay, {request} of bare clients. What one side sent must be what the other received: keys, "
    "fingerprints, attempts, and results by their hash. A fault on the way must have broken what it breaks, at its place, "
    "and nothing else.",
    "Counts. {effects} effects, {receipts} receipts, {completed} history records, {arrivals} arrivals, counted anew from "
    "the journals, and of a dispatch outbox from its exports, alone. Scenario by scenario they must be those of the protocol, "
    "of the audit's own table, of results.json and of the rows of tables.md.",
)
"""One paragraph for each group of checks; in braces what `_numbers` counts."""
DATABASES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
RECORDS = {
    "intention": ("intentions", "intention", "intentions"),
    "attempt": ("attempts", "attempt", "attempts"),
    "outcome": ("attempts", "outcome", "outcomes"),
    "receipt": ("receipts", "receipt", "receipts"),
    "history": ("history", "history record", "history records"),
    "arrival": ("arrivals", "arrival", "arrivals"),
    "answer": ("arrivals", "answer", "answers"),
    "effect": ("effects", "effect", "effects"),
    "key": ("keys", "key kept apart", "keys kept apart"),
    "query": ("arrivals", "status query", "status queries"),
    "exchange": ("exchanges", "exchange", "exchanges"),
    "request": ("requests", "request", "requests"),
}
"""Types of records, the journal of each, and how one and several are called."""
INTERRUPTED = (
    "manifest.json is written last, complete or not at all. Where it is missing the run was interrupted, or the archive is not "
    "whole. What lies there may be right, and is no evidence. Run again into a new directory."
)
FIRST = "Played again, each of these scenarios goes wrong at one step first"
FAILED = "An archive that fails is no evidence. One finding is enough; begin with the first, others often follow from it."


def _verdict(report: Report, name: str) -> list[str]:
    if report.verdict == UNKNOWN:
        return [*heading(f"UNKNOWN {name}"), *wrapped(INTERRUPTED)]
    if report.verdict == FAIL:
        lines = heading(f"FAIL {name}: what was found, by the promise that it breaks")
        first = [finding for finding in report.findings if finding.first_at]
        for promise, findings in [*([(FIRST, first)] if first else []), *broken(report.findings)]:
            lines += wrapped(f"{promise} ({count(len(findings), 'finding')}):")
            lines += [f"    {finding}" for finding in findings[:SHOWN]]
            if len(findings) > SHOWN:
                lines.append(f"    and {len(findings) - SHOWN} more")
        return [*lines, *wrapped(FAILED), "", "A PASS would not mean:", *_meanings()]
    held = _held(report.kept) if report.kept else "nothing"
    return [
        *heading(f"PASS {name}"),
        *wrapped(f"PASS means: {MEANS.format(held=held)}"),
        "",
        "PASS does not mean:",
        *_meanings(),
    ]


def _held(kept: Kept) -> str:
    """How much of the catalogue the archive has."""
    selection, several = kept.manifest["selection"], len(kept.manifest["selection"]["scenarios"])
    catalogue = len(kept.manifest["protocol"]["catalogue"])
    if selection["complete"]:
        of_store = "" if several == catalogue else f" that {DATABASES[selection['store']]} can run"
        return f"all {several} scenarios of the catalogue{of_store}, completely"
    return f"{several} of the {catalogue} scenarios of the catalogue (nothing is said of the others), and these completely"


def _run(run: dict[str, Any]) -> str:
    """What the manifest tells of the run, as far as it is in its form."""
    unsaid = lambda *said: None  # noqa: E731
    if not holds(run, RUN, unsaid, "") or not holds(run["sqlite"], SQLITE, unsaid, ""):
        return "Its manifest does not say in the contract's form how it was made."
    packages = ", ".join(f"{name} {version}" for name, version in run["packages"].items())
    database = f"SQLite {run['sqlite']['version']} of {run['sqlite']['package']}"
    if holds(run["postgres"], SERVER, unsaid, ""):
        database += f", PostgreSQL {run['postgres']['version']}"
    place = f"{run['platform']} (files on {run['file_system'] or 'an unknown file system'})"
    commit = f"at commit {run['commit']}" if run["commit"] else "outside a repository, so that no commit is known"
    told = f"By its manifest it was made with {run['implementation']} {run['python']}, {database} and {packages}, on {place}, "
    return plain(f"{told}{commit}.{CLEAN[run['clean']]}")


CLEAN = {
    None: "",
    True: " The tree was clean.",
    False: " The tree was not clean: it held changes that the commit does not have, and its sources, hashed here, ran.",
}


def _meanings() -> list[str]:
    return [line for sentence in MEANS_NOT for line in wrapped(f"- {sentence}", "  ")]


def _numbers(kept: Kept) -> dict[str, str | int]:
    """The numbers of one archive, by the words of `WALK` and `RECORDS`."""
    manifest, cases, sizes = kept.manifest, kept.cases, kept.tree.sizes
    tallies = [case.tally for case in cases if case.tally is not None]
    steps = [step for case in cases for step in case.plan["steps"]]
    ran = [process for case in cases for process in case.processes]
    halted = [process for process in ran if process["exit_code"] == HALTED]
    points = {process["fault"]["point"] for process in halted if process["fault"]}
    found: dict[str, str | int] = {
        "run": _run(manifest["run"]),
        "files": count(len(sizes), "file"),
        "bytes": sum(sizes.values()),
        "listed": len(manifest["files"]),
        "sources": count(len(manifest["sources"]), "source"),
        "version": manifest["protocol"]["version"],
        "catalogue": count(len(manifest["protocol"]["catalogue"]), "scenario"),
        "scenarios": count(len(cases), "scenario"),
        "wrong": sum(case.plan["counterexample"] for case in cases),
        "steps": count(len(steps), "step"),
        "processes": count(len(ran), "process", "processes"),
        "halted": len(halted),
        "points": count(len(points), "fault point"),
        "killed": sum(process["signal"] is not None for process in ran),
        "paused": sum(process["pause"] is not None for process in ran),
        "journals": count(sum(tally.journals for tally in tallies), "journal"),
        "records": count(sum(tally.lines for tally in tallies), "record"),
        "torn": count(sum(tally.torn for tally in tallies), "torn tail"),
        "database": DATABASES[manifest["selection"]["store"]],
        "exports": count(sum(len(case.rows) for case in cases), "export"),
        "rows": count(sum(sum(rows[: len(STATUSES)]) for case in cases for rows in case.rows.values()), "row"),
        "moves": count(sum(case.moves for case in cases), "transition"),
        "events": count(sum(case.rows[LAST][ROWS.index("events")] for case in cases if LAST in case.rows), "event"),
        "checks": count(sum(step["do"] == "check" for step in steps), "checkpoint"),
    }
    for word, (name, singular, plural) in RECORDS.items():
        found[word] = count(sum(tally.records.get((name, word), 0) for tally in tallies), singular, plural)
    for column, word in enumerate(("effects", "receipts", "completed", "arrivals")):
        found[word] = sum(case.counts()[column] for case in cases)
    return found


def count(number: int, noun: str, plural: str = "") -> str:
    """A number and what it is of."""
    return f"1 {noun}" if number == 1 else f"{number} {plural or noun + 's'}"


def heading(text: str) -> list[str]:
    """A line that is underlined."""
    return ["", text, "-" * min(len(text), WIDTH)]


def wrapped(text: str, indent: str = "") -> list[str]:
    """A paragraph in lines of at most WIDTH characters."""
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = indent + word
        else:
            line = f"{line} {word}" if line.strip() else line + word
    return [*lines, line]

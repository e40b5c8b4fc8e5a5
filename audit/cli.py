"""The audit's command line: which archives, in what words, with which exit code.

    python audit/audit.py DIR [DIR ...] [--json | --explain]
    python audit/audit.py DIR --compare OTHER [--json]

--explain adds what was checked, and what the verdict means and does not mean. --compare says whether two archives are equal in
everything but the volatile fields: exit code 0 equal, 1 different (`compare` documents it).

DIR is one archive, a study, a campaign or a check, or a folder of them at any depth. Exit codes: 0 PASS, 1 FAIL, 2 bad usage
or nothing to read, 3 UNKNOWN (an interrupted run). Over several archives a FAIL outweighs unreadable input, that an UNKNOWN,
that a PASS.
Everything is printed in ASCII and at once, at the end.
"""

from __future__ import annotations

import os
import sys

from audit.archive import Report, audit_archive
from audit.findings import FAIL, PASS, UNKNOWN, Findings, plain, show
from audit.inventory import CHECKOUT, Checkout, is_checkout
from audit.strict_json import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

USAGE = "usage: python audit/audit.py DIR [DIR ...] [--json | --explain], or DIR --compare OTHER [--json]"
MARKS = ("manifest.json", "processes.json", "results.json", "scenarios", "plan.json", "results.jsonl")
IGNORED = "schemas"
DEEPEST_FOLDER = 32
MOST_FOLDERS = 2000
EXIT = {PASS: 0, FAIL: 1, UNKNOWN: 3}
UNREADABLE = 2
SEVERITY = (0, 3, 2, 1)
"""Exit codes, from the mildest to the gravest."""


def main(arguments: list[str], root: str) -> int:
    """Audit what the arguments name and print what was found; the exit code."""
    if "-h" in arguments or "--help" in arguments:
        _print([__doc__ or USAGE], sys.stdout)
        return 0
    if "--compare" in arguments:
        from audit.compare import command  # noqa: PLC0415 (a start without the option is not slowed down)

        code, said, complaints = command(arguments)
        _print(complaints, sys.stderr)
        _print(said, sys.stdout)
        return code
    as_json, explaining = "--json" in arguments, "--explain" in arguments
    folders = [argument for argument in arguments if argument not in ("--json", "--explain")]
    strange = [argument for argument in folders if argument.startswith("-")]
    if strange or not folders:
        _print([f"unknown option {show(strange[0])}" if strange else "no DIR was given", USAGE], sys.stderr)
        return UNREADABLE
    if as_json and explaining:
        _print(["--explain is for reading and does not go with --json", USAGE], sys.stderr)
        return UNREADABLE
    worst = 0
    reports: list[Report] = []
    problems: list[str] = []
    checkout = Checkout(root)
    for folder in folders:
        problem = _unusable(folder)
        found = [] if problem else [_guarded(path, archive, checkout, explaining) for path, archive in archives(folder)]
        if not problem and not any(report.totals or report.verdict != UNKNOWN or _is_archive(report.path) for report in found):
            problem = "holds no archive: no manifest.json here or below"
        if problem:
            problems.append(f"{plain(folder)}: {problem}")
            found = []
        codes = [UNREADABLE if problem else 0, *[EXIT[report.verdict] for report in found]]
        worst = max([worst, *codes], key=SEVERITY.index)
        reports.extend(found)
    _print(problems, sys.stderr)
    if explaining:
        from audit.explain import explain  # noqa: PLC0415 (a start without the option is not slowed down)

        _print([line for report in reports for line in explain(report)], sys.stdout)
    _print(_as_json(reports, problems, worst) if as_json else _as_text(reports, folders, worst, explaining), sys.stdout)
    return worst


def _unusable(folder: str) -> str | None:
    try:
        if not os.path.lexists(folder):
            return "there is no such directory"
        if not os.path.isdir(folder):
            return "is not a directory"
        os.stat(os.path.join(folder, "."))  # what can be listed and not entered seems to hold nothing
        with os.scandir(folder):
            return CHECKOUT if is_checkout(folder) else None
    except (OSError, ValueError) as error:
        return f"cannot be listed and entered: {getattr(error, 'strerror', None) or 'not a path'}"


def _is_archive(folder: str) -> bool:
    return any(os.path.lexists(os.path.join(folder, mark)) for mark in MARKS)


def archives(folder: str, depth: int = 0, left: list[int] | None = None) -> Iterator[tuple[str, bool]]:
    """Every archive at or below a folder; with False, a subfolder that holds none and should, is a link, or a checkout.

    Links are never followed, and no more than MOST_FOLDERS are looked into: `left` counts them down.
    """
    left = [MOST_FOLDERS] if left is None else left
    left[0] -= 1
    if is_checkout(folder):
        yield folder, False
        return
    if _is_archive(folder) and not (depth and os.path.islink(folder)):
        yield folder, True
        return
    found = 0
    try:
        with os.scandir(folder) as entries:
            below = sorted(entry.path for entry in entries if _is_folder(entry) and entry.name != IGNORED)
    except OSError:
        below = []
    for path in below if depth < DEEPEST_FOLDER and not (depth and os.path.islink(folder)) else []:
        if left[0] <= 0:
            yield path, False  # not looked into, and not passed over in silence either
            return
        for each in archives(path, depth + 1, left):
            found += 1
            yield each
    if depth and not found:
        yield folder, False


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder, or a link to one: that is never followed, but not passed over either."""
    return entry.is_dir(follow_symlinks=False) or (entry.is_symlink() and entry.is_dir())


def _guarded(path: str, archive: bool, checkout: Checkout, keep: bool) -> Report:
    """The report on one folder; whatever the checks did not foresee in an archive is held against it, too."""
    findings = Findings()
    if not archive:
        missing = "the folder holds no archive: no manifest.json here or below"
        findings.add(".", "", CHECKOUT if is_checkout(path) else missing)
        return Report(path, UNKNOWN, findings, {}, 0)
    try:
        return audit_archive(path, checkout, keep)
    except (ArithmeticError, AttributeError, LookupError, MemoryError, OSError, RuntimeError, TypeError, ValueError) as error:
        findings.add(".", "", f"{UNFORESEEN}: {type(error).__name__}: {show(str(error))}")
        return Report(path, FAIL, findings, {}, 0)


UNFORESEEN = "the audit could not be finished, because the archive holds what no check foresaw"


def _as_text(reports: list[Report], folders: list[str], worst: int, explained: bool) -> list[str]:
    lines: list[str] = []
    for report in reports:
        name = plain(os.path.normpath(report.path))
        if not explained:
            lines.extend(f"{name}: {finding}" for finding in report.findings)
        if report.left_out:
            lines.append(f"{name}: and {report.left_out} findings more")
        lines.append(_line(report, name))
    if len(reports) != 1 or len(folders) != 1:
        verdict = {0: PASS, 1: FAIL, 3: UNKNOWN}.get(worst, "UNREADABLE")
        count = {each: sum(report.verdict == each for report in reports) for each in (PASS, FAIL, UNKNOWN)}
        tally = ", ".join(f"{number} {name}" for name, number in count.items() if number)
        if reports:
            lines.append(f"{verdict}: {_number(len(reports), 'archive')}: {tally}")
    return lines


def _line(report: Report, name: str) -> str:
    """The verdict on one archive, on a line."""
    if report.campaign:
        return _campaign(report, name)
    if report.checked:
        findings = "" if report.verdict == PASS else f"; {_number(len(report.findings) + report.left_out, 'finding')}"
        return f"{report.verdict} {name}: {report.checked}{findings}"
    if report.verdict != PASS:
        return f"{report.verdict} {name}: {_number(len(report.findings) + report.left_out, 'finding')}"
    totals = report.totals
    partial = totals["scenarios"] != report.catalogue
    of = f" ({totals['scenarios']} of {report.catalogue} scenarios)" if partial else ""
    counted = [_number(totals[f"{noun}{ending}"], noun, ending) for noun, ending in NOUNS]
    return f"{PASS}{of} {name}: {', '.join(counted)} checked"


def _campaign(report: Report, name: str) -> str:
    """The verdict on a campaign, on a line: it tells false evidence from true evidence of a case that did not hold."""
    counts = [f"{report.totals[each]} {each}" for each in ("held", "violated", "unknown", "pruned") if report.totals.get(each)]
    cases = f"{_number(report.totals.get('cases', 0), 'case')} ({', '.join(counts) or 'none held'})"
    kept = f"{report.totals.get('kept', 0)} derived from their files"
    if told := report.totals.get("cases", 0) - report.totals.get("kept", 0):
        kept += f", {told} taken on their word (--keep all keeps their files)"
    findings = "" if report.verdict == PASS else f"; {_number(len(report.findings) + report.left_out, 'finding')}"
    return f"{report.verdict} {name}: {report.campaign}: {cases}, {kept}{findings}"


NOUNS = (("scenario", "s"), ("process", "es"), ("request", "s"), ("record", "s"))


def _number(number: int, noun: str, ending: str = "s") -> str:
    return f"{number} {noun}{'' if number == 1 else ending}"


def _as_json(reports: list[Report], problems: list[str], worst: int) -> list[str]:
    document = {
        "verdict": {0: PASS, 1: FAIL, 3: UNKNOWN}.get(worst, "UNREADABLE"),
        "problems": problems,
        "archives": [
            {
                "archive": plain(report.path),
                "verdict": report.verdict,
                "totals": report.totals,
                "catalogue": report.catalogue,
                "findings": [
                    {
                        "subject": finding.subject,
                        "place": finding.place,
                        "sentence": finding.sentence,
                        "first_illegal_step": finding.first_at or None,
                    }
                    for finding in report.findings
                ],
                "findings_left_out": report.left_out,
            }
            for report in reports
        ],
    }
    return [encode(document)]


def _print(lines: list[str], stream: TextIO | None) -> None:
    """Print and flush; a closed stream, a reader who has gone away, or a full disk does not change the verdict."""
    if not lines or stream is None:
        return
    text = "\n".join(lines) + "\n"
    try:
        stream.write(text.encode("ascii", "backslashreplace").decode("ascii"))
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

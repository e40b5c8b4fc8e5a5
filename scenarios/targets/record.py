"""The track record: all shipped targets in one table, from the folders that their checks left.

Facts only. What a package documents stands beside what was found, with its source; a window in which a job is lost is no
defect of a package that promises nothing of the kind, and the page says so. What was not checked is told with the reason.

    python -m scenarios.targets.record DIR … > docs/track-record.md

makes the page of all checks below these folders: for targets that need different environments, checked one after the other.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenarios.engine.evidence import MANIFEST
from scenarios.engine.study import ROOT
from scenarios.targets import file, handed, presence, verdicts
from scenarios.targets.handed import Handed
from scenarios.targets.model import Target
from scenarios.targets.results import RECEIVER, TARGET, WORKER
from scenarios.targets.table import cell

MOST_WINDOWS = 4
INTRODUCTION = """# Track record

What `run.py check` found at the targets that are shipped in `examples/targets/`: a few lines each around a package from its
registry, at a pinned version. [How a check works](check.md) says what each word means and what is not looked at.

Read it fairly. What a package documents stands beside what was found. A duplicate at a receiver without keys is what
at-least-once means; a job that is lost where nothing was promised is no defect. A few lines of ours use each package, and other
ways to use it may come to something else. Workers were killed before executed lines (those in another language than Python at
system calls) and are held to nothing but what their target file declares. Receivers were asked what the study shows to be
needed and what the IETF's draft recommends; few of them promise all of it. The commands make each row again.
"""
WORKERS = ("Worker", "What its package documents", "Declared here", "Holds", "Cases", "Found", "Longest recovery")
RECEIVERS = (
    "Receiver",
    "What its package documents",
    "Expectations",
    "Not met: lost, duplicated, stuck",
    "Not met: unclear, style",
)
SKIPPED = ("Target", "Package", "Why it was not checked")


@dataclass(frozen=True, slots=True)
class Entry:
    """One target: its check, or the reason why there is none. `command` makes it again."""

    target: Target
    kind: str
    command: str
    check: Handed | None = None
    reason: str = ""


def render(entries: Sequence[Entry]) -> str:
    """The page, as Markdown."""
    parts = [INTRODUCTION, *_measured(entries)]
    for title, kind, columns, row in (
        ("Workers", WORKER, WORKERS, _worker),
        ("Receivers", RECEIVER, RECEIVERS, _receiver),
    ):
        checked = [entry for entry in entries if entry.kind == kind and entry.check is not None]
        if checked:
            parts += [f"\n## {title}\n", *_table(columns, map(row, checked))]
            parts += ["", "```", *(entry.command for entry in checked), "```"]
    skipped = [entry for entry in entries if entry.check is None]
    if skipped:
        parts += ["\n## Not checked\n", *_table(SKIPPED, map(_skipped, skipped))]
    return "\n".join(parts) + "\n"


def _measured(entries: Iterable[Entry]) -> Iterator[str]:
    checks = [entry.check for entry in entries if entry.check is not None]
    machines = {(check.plan["machine"]["platform"], check.plan["machine"]["cores"]) for check in checks}
    for platform, cores in sorted(machines, key=str):
        yield f"Measured on {platform}, {cores} cores."


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *(f"| {' | '.join(map(cell, row))} |" for row in rows)]


def _name(entry: Entry) -> str:
    package = entry.target.contents.package
    if package is None:
        return f"`{entry.target.name}`"
    installed = entry.check.plan["versions"].get(package.name) if entry.check is not None else None
    return f"`{entry.target.name}`: {package.name} {installed or package.version}. {entry.target.contents.about}"


def _documents(entry: Entry) -> str:
    package = entry.target.contents.package
    if package is None or not package.guarantee:
        return "nothing that we found"
    link = f" ([source]({package.source}))" if package.source.startswith("http") else f" (`{package.source}`)"
    return package.guarantee + (link if package.source else "")


def _worker(entry: Entry) -> Sequence[str]:
    assert entry.check is not None
    summary = entry.check.summary
    well = [each["seconds"] for each in summary["windows"] if each["verdict"] in (verdicts.UNKEYED, verdicts.RECOVERED)]
    return (
        _name(entry),
        _documents(entry),
        _declared(summary),
        ", ".join(summary["holds"]) or "none",
        str(summary["cases"]) + (f" of {summary['cases'] + summary['not_played']}" if summary["not_played"] else ""),
        "; ".join(_found(summary)) or "every job came after every death",
        f"{max(well):.1f} s" if well else "",
    )


def _declared(summary: Mapping[str, Any]) -> str:
    if summary["claims"] is None:
        return "nothing"
    words = {verdicts.PASS: "it holds", verdicts.FAIL: "it does not hold"}
    return f"{summary['claims']}: {words.get(summary['verdict'], 'nobody can tell')}"


def _found(summary: Mapping[str, Any]) -> Iterator[str]:
    """The windows by verdict, the worst first."""
    for verdict, count in summary["by_verdict"].items():
        if not count or verdict == verdicts.RECOVERED:
            continue
        windows = [each for each in summary["windows"] if each["verdict"] == verdict]
        places = ", ".join(f"`{each['where']}`{_in(each)}" for each in windows[:MOST_WINDOWS])
        left = len(windows) - MOST_WINDOWS
        more = f" and {left} window{'s' if left > 1 else ''} more" if left > 0 else ""
        yield f"{verdict} in {count} of {summary['cases']} cases: {places}{more}"


def _in(window: Mapping[str, Any]) -> str:
    return f" {window['function']}()" if window["function"] else ""


def _receiver(entry: Entry) -> Sequence[str]:
    assert entry.check is not None
    summary = entry.check.summary
    counts = ", ".join(f"{count} {verdict}" for verdict, count in summary["by_verdict"].items() if count)
    grave = [each for each in summary["windows"] if each["severity"] in verdicts.GRAVE]
    light = [each for each in summary["windows"] if each["severity"] not in verdicts.GRAVE]
    return (
        _name(entry),
        _documents(entry),
        counts,
        _unmet(grave),
        _unmet(light),
    )


def _unmet(windows: Sequence[Mapping[str, Any]]) -> str:
    """Expectations by severity; one that failed at several places is told once, with their number."""
    told = []
    for severity in dict.fromkeys(each["severity"] for each in windows):
        names = Counter(each["where"].partition(":")[0] for each in windows if each["severity"] == severity)
        told.append(f"{severity}: {', '.join(name if count == 1 else f'{name} ({count})' for name, count in names.items())}")
    return "; ".join(told) or "none"


def _skipped(entry: Entry) -> Sequence[str]:
    package = entry.target.contents.package
    return (f"`{entry.target.name}`", f"{package.name} {package.version}" if package is not None else "", entry.reason)


def collected(folders: Iterable[Path], shipped: Path) -> list[Entry]:
    """The checks below these folders, by name, and the shipped targets that are not among them. Raises BadInput."""
    found = {}
    for manifest in sorted(path for folder in folders for path in folder.rglob(MANIFEST)):
        check = handed.read(manifest.parent)
        found[check.summary["target"], check.summary["kind"]] = _of_check(check, shipped)
    for path in sorted(shipped.glob("*/target.toml")):
        target = file.read(path)
        kind = WORKER if target.contents.worker is not None else RECEIVER
        if (target.name, kind) not in found:
            missing = presence.look(target, sys.executable).missing
            servers = " and ".join(target.contents.services)
            reason = missing or (f"it needs {servers}: check all --set slow" if servers else "it was left out")
            found[target.name, kind] = Entry(target, kind, "", reason=reason)
    return [entry for _, entry in sorted(found.items())]


def _of_check(check: Handed, shipped: Path) -> Entry:
    name, kind, options = check.summary["target"], check.summary["kind"], check.plan["options"]
    usual = {"mode": "lines", "depth": 1}
    more = "".join(
        f"--{each} {options[each]} " for each in ("mode", "depth", "budget") if options.get(each) not in (None, usual.get(each))
    )
    place = shipped.relative_to(ROOT) if shipped.is_relative_to(ROOT) else shipped
    command = f"python run.py check {kind} {place / name / TARGET} {more}--out DIR"
    return Entry(file.read(check.folder / TARGET), kind, command, check)


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry."""
    arguments = sys.argv[1:] if argv is None else argv
    sys.stdout.write(render(collected(map(Path, arguments), ROOT / "examples" / "targets")))
    return 0


def write(entries: Sequence[Entry], path: Path) -> None:
    """Write the page. Raises OSError."""
    path.write_text(render(entries), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    sys.exit(main())

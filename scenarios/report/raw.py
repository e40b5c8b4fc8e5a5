"""The raw records of a scenario as texts: journals, exports, small files, and the processes with what they printed.

What says nothing is left out, as the page says of itself: empty members, counters that are 0, and what an early export has just
like the last one. The page is under a bound for a whole study; the files have everything.
"""

import re
from html import escape

from markupsafe import Markup

from scenarios.engine.counts import LAST_EXPORT
from scenarios.report.facts import ExportFile, JournalFile, Line, Process, ScenarioEvidence
from scenarios.report.views import FileText, ProcessRow
from scenarios.report.words import counted, label, plain, short_hashes, shown_json

MAX_LINES = 100
_ZERO = re.compile(r'(?:, )?"[a-z_]{1,40}": 0(?=[,}])')


def files(evidence: ScenarioEvidence) -> list[FileText]:
    """The journals, exports and small files of a scenario."""
    found = [_journal(journal) for journal in evidence.journals.values()]
    last = evidence.exports.get(LAST_EXPORT)
    found += [
        _export(export, None if export is last else last)
        for export in sorted(evidence.exports.values(), key=lambda each: each is last)
    ]
    for path, content in evidence.small_files.items():
        found.append(FileText(plain(path), "", Markup(escape(content, quote=False))))  # noqa: S704 - escaped
    return found


def _journal(journal: JournalFile) -> FileText:
    shown = [f"{line.number} {line.shown}" for line in journal.lines[:MAX_LINES]]
    left_out = len(journal.lines) - len(shown) + journal.left_out
    if left_out:
        shown.append(f"… {left_out} more lines")
    size = "" if shown else "no records"
    return FileText(plain(journal.path), size, Markup(escape("\n".join(shown), quote=False)))  # noqa: S704 - escaped


def _export(export: ExportFile, last: ExportFile | None) -> FileText:
    """The rows of the tables; of an export before the `last`, only what that has otherwise."""
    lines = []
    for name, table, known in (
        ("row", export.rows, last.rows if last else ()),
        ("transition", export.transitions, last.transitions if last else ()),
        ("event", export.events, last.events if last else ()),
    ):
        same = {line.number: line for line in known}
        lines += [f"{name} {line.number} {_otherwise(line, same.get(line.number))}" for line in table]
    shown = lines[:MAX_LINES]
    if len(lines) > len(shown):
        shown.append(f"… {len(lines) - len(shown)} more lines")
    counts = (("row", export.rows), ("transition", export.transitions), ("event", export.events))
    size = ", ".join(counted(len(table), name) for name, table in counts)
    return FileText(plain(export.path), size, Markup(escape("\n".join(shown), quote=False)))  # noqa: S704 - escaped


def _otherwise(line: Line, last: Line | None) -> str:
    """A line, or how it differs from that of the same number in the last export."""
    if last is None or last.id != line.id:
        return line.shown
    if last.data == line.data:
        return "as in the last export"
    changed = {name: value for name, value in line.data.items() if name not in last.data or last.data[name] != value}
    return f"as in the last export but for {shown_json(changed)}"


def process_row(process: Process) -> ProcessRow:
    """One child process, with what it printed."""
    armed = " ".join(f"{name}={value}" for name, value in process.environment.items())
    ended = process.signal or f"exit {process.exit_code}"
    by = {"itself": "", "stop": " (SIGTERM)", "kill": " (by a step)", "harness": " (by the harness)"}.get(process.ended_by, "")
    printed = [line for text in (process.stdout, process.stderr) for line in text.splitlines()[:5]]
    output = tuple(short_hashes(plain(_ZERO.sub("", line).replace("{, ", "{"), 300)) for line in printed)
    name = f"{plain(process.name, 80)}, {process.incarnation}; step {process.step}"
    command = f"{plain(armed, 200)} {plain(process.command, 1000)}".strip()
    return ProcessRow(name, command, output, f"{label(ended)}{by}")

"""What a check leaves in its folder: the plan first, a line for each case as it comes, and at the end what follows from them.

    with results.begin(out, Plan(…)) as check:
        check.add(case)                   # a WorkerCase or a ReceiverCase, in any order; it is on the disk at once
        folder = check.folder(case.name)  # for the files of a finding
        summary = check.finish()          # summary.json, table.md, and manifest.json last

A folder without a manifest is an interrupted check and no evidence: nothing is gone on with, a new one is begun. Whatever the
machine refuses meanwhile is raised as EvidenceIncomplete, an existing folder as BadInput.
"""

import contextlib
import json
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from outbox.errors import BadInput
from scenarios.engine import evidence
from scenarios.engine.directories import alone_in, fresh_directory, machine_faults
from scenarios.engine.provenance import provenance
from scenarios.engine.sources import source_hashes
from scenarios.engine.study import ROOT
from scenarios.errors import EvidenceIncomplete, Interrupted
from scenarios.targets import table, verdicts
from scenarios.targets.model import Target
from scenarios.targets.outcomes import ReceiverCase, WorkerCase
from scenarios.targets.windows import Unmet, Window, Windows, unmet

FORMAT, FORMAT_VERSION = "halt23.check", 1
WORKER, RECEIVER = "worker", "receiver"
PLAN, TARGET, RESULTS, SUMMARY, TABLE, CASES = (
    "plan.json",
    "target.toml",
    "results.jsonl",
    "summary.json",
    "table.md",
    "cases",
)
GO_ON = "begin the check again in a new folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is checked, how, and with what. `options` are those of the command line that change cases; `python` is the target's
    interpreter, `versions` what it says of the target's packages."""

    kind: str
    target: Target
    options: Mapping[str, Any]
    python: str
    versions: Mapping[str, str] = field(default_factory=dict)

    def data(self, machine: Mapping[str, Any]) -> dict[str, Any]:
        """As the JSON value that is archived."""
        return {
            "kind": self.kind,
            "target": json.loads(json.dumps(asdict(self.target.contents))),
            "options": dict(self.options),
            "machine": dict(machine),
            "python": self.python,
            "versions": dict(sorted(self.versions.items())),
        }


class Check:
    """One check while it is being written; `begin` makes it."""

    def __init__(self, out: Path, plan: Plan) -> None:
        self.out, self.plan = out, plan
        self._sources = source_hashes(ROOT)
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._clock = time.monotonic()
        self._windows = Windows()
        self._lines: list[dict[str, Any]] = []
        self._folders: dict[str, str] = {}
        # Cases that the budget left out, and what was seen of the target itself: whoever checks adds to them.
        self.not_played = 0
        self.notes: list[str] = []
        shutil.copyfile(plan.target.file, out / TARGET)
        evidence.write_last(out / PLAN, plan.data(provenance(ROOT, out)))
        self._file = (out / RESULTS).open("xb")

    @property
    def seconds(self) -> float:
        """How long it has been going on."""
        return time.monotonic() - self._clock

    @property
    def cases(self) -> int:
        """How many cases there are so far."""
        return len(self._lines)

    def add(self, case: WorkerCase | ReceiverCase) -> None:
        """Append the line of a case."""
        line = case.data()
        self._file.write(json.dumps(line, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode() + b"\n")
        self._file.flush()
        if self.plan.kind == WORKER:
            self._windows.add(line)
            # What a summary needs: a long check does not hold its exchanges in memory.
            line = {name: line[name] for name in ("case", "verdict", "effects")}
        else:
            line.pop("exchanges")
        self._lines.append(line)

    def folder(self, case: str) -> Path:
        """The new folder for the files of a case that found something."""
        name = folder_name(case)
        while name in self._folders.values() and self._folders.get(case) != name:
            name += "_"
        self._folders[case] = name
        path = self.out / CASES / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def finish(self) -> dict[str, Any]:
        """Write what follows from the lines, and the manifest last; the summary. Raises EvidenceIncomplete where the sources of
        this program changed meanwhile."""
        seconds = round(self.seconds, 3)
        self._file.close()
        if source_hashes(ROOT) != self._sources:
            raise EvidenceIncomplete(f"the sources in {ROOT} changed while the check ran; {GO_ON}")
        summary = self.summary(seconds)
        evidence.write_last(self.out / SUMMARY, summary)
        is_worker = self.plan.kind == WORKER
        text = table.of_worker(summary) if is_worker else table.of_receiver(summary, self._lines)
        (self.out / TABLE).write_text(text, encoding="utf-8", newline="\n")
        _remove_empty(self.out)
        manifest = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "kind": self.plan.kind,
            "target": self.plan.target.name,
            "verdict": summary["verdict"],
            "run": {"started_at": self._started_at, "wall_seconds": seconds},
            "sources": dict(self._sources),
            "files": evidence.files(self.out),
        }
        evidence.write_last(self.out / evidence.MANIFEST, manifest)
        return summary

    def summary(self, seconds: float) -> dict[str, Any]:
        """What follows from the lines so far."""
        is_worker = self.plan.kind == WORKER
        words = verdicts.WORKER_VERDICTS if is_worker else verdicts.RECEIVER_VERDICTS
        by_verdict = {word: sum(line["verdict"] == word for line in self._lines) for word in words}
        claims = self.plan.target.contents.claims if is_worker else None
        holds = verdicts.holding(self._lines) if is_worker else None
        verdict = (
            verdicts.of_worker_check(by_verdict, holds, claims)
            if holds is not None
            else verdicts.of_receiver_check(self._lines)
        )
        return {
            "kind": self.plan.kind,
            "target": self.plan.target.name,
            "verdict": verdict,
            "claims": claims,
            "holds": holds,
            "cases": len(self._lines),
            "not_played": self.not_played,
            "by_verdict": by_verdict,
            "wall_seconds": seconds,
            "cases_per_second": round(len(self._lines) / seconds, 2) if seconds else 0.0,
            "windows": [each.data() for each in (self._windows.all() if is_worker else unmet(self._lines))],
            "notes": list(self.notes),
        }

    def close(self) -> None:
        """Close the file of the results. What is there stays."""
        self._file.close()


@contextlib.contextmanager
def begin(out: Path, plan: Plan) -> Iterator[Check]:
    """Make the new folder `out`, keep others out of it meanwhile, and write the plan."""
    fresh_directory(out, CASES)
    with alone_in(out), machine_faults(out, go_on=GO_ON):
        check = Check(out, plan)
        try:
            yield check
        except BadInput:
            # What cannot be checked leaves nothing behind: once it is mended the same command works.
            if not check.cases:
                shutil.rmtree(out, ignore_errors=True)
            raise
        finally:
            check.close()


def folder_name(case: str) -> str:
    """The name of the folder of a case's files, unless another case has it already."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", case)


def interrupted(out: Path, by: str | None) -> Interrupted:
    """What is raised where somebody stopped a check."""
    return Interrupted(
        f"stopped by {by or 'cancellation'}: {out} holds an incomplete check, which audits as UNKNOWN; all processes were "
        f"ended. To have a whole one, {GO_ON}"
    )


def number(count: int, noun: str) -> str:
    """A number and what it is of."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def told(summary: Mapping[str, Any], out: Path) -> list[str]:
    """What is printed at the end: each finding, what was claimed and holds, and the verdict."""
    lines = [*findings(summary), *(f"note: {note}" for note in summary["notes"])]
    if summary["kind"] == WORKER:
        claims = f"claimed: {summary['claims']}" if summary["claims"] else "no claim: judged as at-least-once with stable keys"
        lines.append(f"{claims}; holds: {', '.join(summary['holds']) or 'none'}")
    counts = ", ".join(f"{count} {verdict}" for verdict, count in summary["by_verdict"].items() if count)
    rate = f", {summary['cases_per_second']:.1f} cases a second" if summary["kind"] == WORKER else ""
    noun = "case" if summary["cases"] == 1 and not summary["not_played"] else "cases"
    left_out = f" of {summary['cases'] + summary['not_played']}" if summary["not_played"] else ""
    cases = f"{summary['cases']}{left_out} {noun} ({counts or 'none'})"
    lines.append(f"{summary['verdict']} {out}: {cases}; {summary['wall_seconds']:.1f} s{rate}")
    return [*lines, f"Now let the audit judge: python audit/audit.py {out}"]


def findings(summary: Mapping[str, Any]) -> Sequence[str]:
    """A line for each window in which something was found."""
    if summary["kind"] == WORKER:
        return [str(Window(**each)) for each in summary["windows"] if each["verdict"] != verdicts.RECOVERED]
    return [str(Unmet(**each)) for each in summary["windows"]]


def _remove_empty(out: Path) -> None:
    """An archive has no empty folder."""
    for path in sorted((out / CASES).rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            with contextlib.suppress(OSError):
                path.rmdir()
    with contextlib.suppress(OSError):
        (out / CASES).rmdir()


__all__ = [
    "RECEIVER",
    "WORKER",
    "Check",
    "Plan",
    "ReceiverCase",
    "WorkerCase",
    "begin",
    "findings",
    "interrupted",
    "told",
]

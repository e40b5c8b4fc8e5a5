"""A small study of the dispatch outbox, run once, whose scenarios' books can be edited and held one at a time.

`Books` is one scenario as values: plan, processes, exports. `findings` holds them with the journals that the run left, after an
edit of these where one is given; nothing else of the audit is asked.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from audit import books
from audit.case import Case, gather
from audit.expectations import POSTGRES, SQLITE
from audit.files import Tree
from audit.findings import Findings

SCENARIOS = (
    "ack_loses_to_claim",
    "disk_full_at_claim",
    "disk_full_at_enqueue",
    "disk_full_at_outcome",
    "expired_though_applied",
    "forced_retry_is_fenced",
    "poison_row",
    "producers_race_for_a_key",
    "purge_frees_the_key",
    "purge_is_audited",
    "recorded_error_then_death",
    "recorded_late_finaliser",
    "recorded_slow_scan",
    "recorded_status_then_death",
    "revival_over_restart",
    "storage_is_acknowledged",
    "success_is_not_storage",
)
ON_POSTGRES = (
    "ack_meets_an_open_outcome",
    "key_is_taken_meanwhile",
    "producers_race_for_a_key",
    "purge_races_claim",
    "recorded_late_finaliser",
    "scan_meets_an_open_claim",
    "server_dies_in_outcome",
)
"""Scenarios in which two processes write, or whose server dies, to be run on PostgreSQL."""
Row = dict[str, Any]
Rows = list[Row]


class Books:
    """One scenario, free to be edited."""

    def __init__(self, folder: Path, plan: Row, processes: Rows, exports: dict[str, Row], store: str = SQLITE) -> None:
        self.folder, self.plan, self.processes, self.exports = folder, plan, processes, exports
        self.store = store

    def copy(self) -> Books:
        return Books(self.folder, deepcopy(self.plan), deepcopy(self.processes), deepcopy(self.exports), self.store)

    def rows(self, export: str = "end") -> Rows:
        found: Rows = self.exports[export]["dispatch_outbox"]
        return found

    def moves(self, export: str = "end") -> Rows:
        found: Rows = self.exports[export]["status_transitions"]
        return found

    def events(self) -> Rows:
        found: Rows = self.exports["end"]["admin_events"]
        return found

    def process(self, name: str, incarnation: int = 1) -> Row:
        return next(p for p in self.processes if (p["process"], p["incarnation"]) == (name, incarnation))

    def step(self, process: str, at: int = 1) -> Row:
        """The `at`-th step that starts the process."""
        found: Rows = [step for step in self.plan["steps"] if step.get("process") == process and "module" in step]
        return found[at - 1]

    def case(self) -> Case:
        case = Case(self.plan, None, self.processes, Tree(str(self.folder), Findings()))
        gather(case)
        assert not case.tree.findings.items
        return case

    def findings(self, edit: Callable[[Case], object] = lambda _case: None) -> list[str]:
        case = self.case()
        edit(case)
        books.hold(case, self.exports, self.store)
        case.first.tell()
        return [str(finding) for finding in case.tree.findings.items]


def run(checkout: Path, out: Path, store: str = SQLITE) -> Study:
    """A fresh run of the scenarios above by the run.py of a checkout."""
    only = [f"dispatch/{name}" for name in (ON_POSTGRES if store == POSTGRES else SCENARIOS)]
    command = [sys.executable, str(checkout / "run.py"), "--out", str(out), "--store", store, "--only", *only]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return Study(out)


class Study:
    """A run of some scenarios."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        manifest = json.loads((folder / "manifest.json").read_text())
        self._store = manifest["selection"]["store"]
        self._plans = {plan["name"]: plan for plan in manifest["protocol"]["scenarios"]}
        self._processes = json.loads((folder / "processes.json").read_text())["processes"]
        self.names = list(self._plans)

    def books(self, name: str) -> Books:
        plan = self._plans[name]
        below = self.folder / "scenarios" / plan["section"] / name / "exports"
        exports = {
            step["name"]: json.loads((below / f"{step['name']}.json").read_text())
            for step in plan["steps"]
            if step["do"] == "export"
        }
        mine = [each for each in self._processes if each["scenario"] == f"{plan['section']}/{name}"]
        return Books(self.folder, plan, mine, exports, self._store).copy()

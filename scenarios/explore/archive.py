"""What a campaign leaves: `manifest.json`, written last, beside the results and the files of the cases that are kept.

The formats are those of evidence/README.md. Whoever audits it derives the verdict of every kept case from its files, and counts
the others.
"""

import contextlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from outbox import faults
from scenarios.engine import evidence
from scenarios.engine.sources import one_hash
from scenarios.explore.campaign import CASES, Plan, Totals
from scenarios.explore.derive import Derived
from scenarios.explore.model import RANDOM, Subject
from scenarios.explore.readers import unfinished_statuses
from scenarios.power.recording import Recording

FORMAT, FORMAT_VERSION = "halt23.campaign", 1
PLAN = "plan.json"


def plan_data(plan: Plan, store: str, sources: Mapping[str, str]) -> dict[str, Any]:
    """The plan as the JSON value that is archived; a campaign that goes on must have the same, with the same sources."""
    return {
        "mode": plan.mode,
        "depth": plan.depth,
        "budget": plan.budget,
        "keep": plan.keep,
        # Where no subject has a database none was used.
        "store": store if any(subject.uses_database for subject in plan.subjects) else None,
        "sources": one_hash(sources),
        "subjects": [subject_data(subject) for subject in plan.subjects],
        **({"seed": plan.seed} if plan.mode == RANDOM else {}),
    }


def subject_data(subject: Subject) -> dict[str, Any]:
    """A subject as the JSON value that is archived."""
    return {
        "name": subject.name,
        "roles": [
            {
                "process": role.process,
                "module": role.program.module,
                "arguments": list(role.program.arguments),
                "server": role.server,
                "once": role.once,
                "done": sorted(role.done),
                "owns": list(role.owns),
                "stoppable": role.stoppable,
                "after": role.after,
                "lease_seconds": role.lease_seconds,
            }
            for role in subject.roles
        ],
        "operations": list(subject.operations),
        "allowed": {**asdict(subject.allowed), "may_end": list(subject.allowed.may_end)},
        "unfinished": unfinished_statuses(subject.read) if subject.uses_database else None,
        "round_seconds": subject.round_seconds,
        "pause_seconds": subject.pause_seconds,
    }


def derived_data(derived: Sequence[Derived]) -> list[dict[str, Any]]:
    """What the runs without faults gave."""
    return [
        {
            "subject": each.subject.name,
            "points": [{process: dict(points) for process, points in reached.items()} for reached in each.reached],
            "digest": each.state.digest,
            "doubts": list(each.doubts),
            **_recorded_data(each.recording),
        }
        for each in derived
    ]


def _recorded_data(recording: Recording | None) -> dict[str, Any]:
    if recording is None:
        return {}
    counts = {"calls": len(recording.events), "images": recording.images, "judged": len(recording.places)}
    return {"recorded": counts}


@dataclass(frozen=True, slots=True)
class Facts:
    """What a manifest tells beside the outcome: the plan, where and when it was carried out, and the sources' hashes."""

    plan: Mapping[str, Any]
    run: Mapping[str, Any]
    sources: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Begun:
    """What a campaign is begun with: the plan as it is archived, the sources' hashes, and what is to be told of the machine."""

    plan: Mapping[str, Any]
    sources: Mapping[str, str]
    machine: Mapping[str, Any]
    started_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    clock: float = field(default_factory=time.monotonic)

    def note(self, out: Path) -> None:
        """Write the plan into `out`. Raises OSError."""
        (out / PLAN).write_text(json.dumps(self.plan, indent=1) + "\n", encoding="ascii")

    @property
    def seconds(self) -> float:
        """How long it has been going on."""
        return time.monotonic() - self.clock

    def facts(self, spawn: str, jobs: int, **more: Any) -> Facts:
        """What its manifest tells, once it has ended."""
        run = {"spawn": spawn, "jobs": jobs, "started_at": self.started_at, "wall_seconds": round(self.seconds, 3)}
        return Facts(self.plan, {**run, **self.machine, **more}, self.sources)


def verdict(derived: Sequence[Derived], totals: Totals) -> str:
    """PASS, FAIL or UNKNOWN; a doubt outweighs a violation."""
    if any(each.doubts for each in derived) or totals.unknown or not totals.cases:
        return "UNKNOWN"
    return "FAIL" if totals.violated else "PASS"


def write(out: Path, facts: Facts, derived: Sequence[Derived], totals: Totals) -> None:
    """Write the manifest of a finished campaign. Raises OSError."""
    with contextlib.suppress(OSError):
        (out / CASES).rmdir()  # no case was kept
    evidence.write_last(
        out / evidence.MANIFEST,
        {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "plan": dict(facts.plan),
            "derived": derived_data(derived),
            "declared": sorted(faults.declared()),
            "totals": {**asdict(totals), "fired": sorted(totals.fired)},
            "verdict": verdict(derived, totals),
            "run": dict(facts.run),
            "sources": dict(facts.sources),
            "files": evidence.files(out),
        },
    )

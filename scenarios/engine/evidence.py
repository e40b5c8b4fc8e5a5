"""Writes what a run leaves: `processes.json`, `results.json`, `tables.md`, `report.html`, and `manifest.json` last.

The formats are those of evidence/README.md. A manifest appears complete or not at all: it is written under another name, synced
and renamed, so that a run that dies before leaves a directory that nobody can take for evidence.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scenarios.catalogue import PROTOCOL_VERSION, SCENARIOS, SECTIONS
from scenarios.engine.processes import Process
from scenarios.engine.runner import ScenarioResult
from scenarios.model import Scenario, catalogue_data, protocol_sha256
from scenarios.report import archive, tables
from scenarios.selection import runnable

FORMAT_VERSION = 1
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What differs from run to run and is told all the same. Times are seconds; `started_at` is UTC in ISO 8601."""

    spawn: str
    jobs: int
    started_at: str
    wall_seconds: float
    clock_zero: float
    provenance: Mapping[str, Any]
    store: str


def write(
    out: Path,
    results: Sequence[ScenarioResult],
    selected: Sequence[Scenario],
    sources: Mapping[str, str],
    facts: RunFacts,
) -> str | None:
    """Write everything beside the scenarios' own files into `out`. Raises OSError where the machine does not let it.

    The page for people is no evidence: where it cannot be made the archive is whole without it, and the answer says why.
    """
    _write_json(out / "processes.json", _processes(results, facts.clock_zero))
    _write_json(out / "results.json", _results(results))
    (out / "tables.md").write_text(tables.render(results, dict(SECTIONS)), encoding="utf-8", newline="\n")
    manifest = _manifest(selected, sources, facts)
    problem = _draw(out, manifest)
    write_last(out / MANIFEST, {**manifest, "files": files(out)})
    return problem


def _draw(out: Path, manifest: Mapping[str, Any]) -> str | None:
    """Write the page; what was in the way, or None."""
    at = out / archive.PAGE
    partial = at.with_name(f".{at.name}.partial")
    try:
        from scenarios.report import page  # noqa: PLC0415 - a template engine that cannot be loaded must not cost the evidence

        partial.write_bytes(page.render(archive.read(out, manifest), at))
        partial.rename(at)
    except Exception as error:  # whatever it is, the run that is being archived has happened
        partial.unlink(missing_ok=True)
        told = f"{type(error).__name__}: {error}"
        return f"{at} could not be made ({told}); the evidence is whole without it. Try: python run.py report {out} --out FILE"
    return None


def write_processes(directory: Path, processes: Sequence[Process], clock_zero: float) -> None:
    """Write `processes.json` of one run alone. Raises OSError."""
    _write_json(directory / "processes.json", _document(process.data(clock_zero) for process in processes))


def _processes(results: Sequence[ScenarioResult], clock_zero: float) -> dict[str, Any]:
    return _document(process.data(clock_zero) for result in results for process in result.processes)


def _document(processes: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {"format": "halt23.processes", "format_version": FORMAT_VERSION, "processes": list(processes)}


def _results(results: Sequence[ScenarioResult]) -> dict[str, Any]:
    totals = {
        "scenarios": len(results),
        "processes": sum(len(result.processes) for result in results),
        "requests": sum(result.counts.arrivals for result in results if result.counts),
        "records": sum(result.records for result in results),
    }
    return {
        "format": "halt23.results",
        "format_version": FORMAT_VERSION,
        "scenarios": [_result(result) for result in results],
        "totals": totals,
        "verdict": _verdict(any(result.problems for result in results)),
    }


def _result(result: ScenarioResult) -> dict[str, Any]:
    scenario = result.scenario
    return {
        "scenario": scenario.path,
        "shows": scenario.shows,
        "look_at": scenario.look_at,
        "counterexample": scenario.counterexample,
        "expected": asdict(scenario.expected),
        "counts": asdict(result.counts) if result.counts else None,
        "checks": [asdict(check) for check in result.checks],
        "exports": [asdict(export) for export in result.exports],
        "problems": result.problems,
        "verdict": _verdict(bool(result.problems)),
    }


def _verdict(failed: bool) -> str:
    return "FAIL" if failed else "PASS"


def _manifest(selected: Sequence[Scenario], sources: Mapping[str, str], facts: RunFacts) -> dict[str, Any]:
    return {
        "format": "halt23.evidence",
        "format_version": FORMAT_VERSION,
        "protocol": {
            "version": PROTOCOL_VERSION,
            "sha256": protocol_sha256(SCENARIOS),
            "catalogue": catalogue_data(SCENARIOS),
            "scenarios": [scenario.data() for scenario in selected],
        },
        "selection": {
            "scenarios": [scenario.path for scenario in selected],
            "store": facts.store,
            "complete": len(selected) == len(runnable(SCENARIOS, facts.store)),
        },
        "run": {
            "spawn": facts.spawn,
            "jobs": facts.jobs,
            "started_at": facts.started_at,
            "wall_seconds": facts.wall_seconds,
            **facts.provenance,
        },
        "sources": dict(sources),
    }


def files(out: Path) -> dict[str, Any]:
    """Size and SHA-256 of every file below `out`, by its path."""
    return {path.relative_to(out).as_posix(): _file(path) for path in sorted(out.rglob("*")) if path.is_file()}


def _file(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _json_bytes(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=True, allow_nan=False, indent=1).encode() + b"\n"


def _write_json(path: Path, value: object) -> None:
    path.write_bytes(_json_bytes(value))


def write_last(path: Path, value: object) -> None:
    """Write a JSON file so that it appears complete or not at all. Raises OSError."""
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("xb") as file:
        file.write(_json_bytes(value))
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)

"""`run.py check receiver`: what somebody else's receiver does with keys, and what it loses, applies twice, or leaves stuck.

Exit codes: 0 nothing lost, duplicated or stuck; 1 something is; 2 the target file or the target cannot be used; 3 interrupted,
or nothing could be tried.
"""

import asyncio
import json
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from outbox.errors import BadInput, say
from scenarios.engine.directories import alone_in, fresh_directory, machine_faults
from scenarios.engine.interrupts import stoppable
from scenarios.engine.study import ROOT
from scenarios.engine.supervisor import Supervisor
from scenarios.errors import Interrupted
from scenarios.targets import receiver_check
from scenarios.targets.battery import FAILING
from scenarios.targets.battery_model import Expectation
from scenarios.targets.file import read
from scenarios.targets.model import Target
from scenarios.targets.receiver_stand import Site
from scenarios.targets.receiver_trial import MET, SKIPPED, UNCLEAR, VIOLATED, Seen

CASES, RESULTS, SUMMARY = "cases", "results.jsonl", "summary.json"
PASS, FAIL, UNKNOWN = "PASS", "FAIL", "UNKNOWN"
EXIT_CODES = {PASS: 0, FAIL: 1, UNKNOWN: 3}
CROWD_MODULE = "scenarios.targets.receiver_crowd"
GO_ON = "begin again in a new directory"


@dataclass(frozen=True, slots=True)
class Asked:
    """What `run.py check receiver` was asked for."""

    file: Path
    out: Path
    only: str | None = None
    python: str = sys.executable


def check(asked: Asked, stream: TextIO) -> int:
    """Try the receiver; prints what a person wants to know, leaves the results in `out`, returns the exit code."""
    target = read(asked.file)
    if target.contents.receiver is None:
        raise BadInput(f"{asked.file}: it describes no receiver: add a table [receiver]")
    missing = _missing(target, asked.python)
    if missing is not None:
        raise BadInput(f"{asked.file}: {missing}")
    chosen = receiver_check.choose(asked.only)
    fresh_directory(asked.out, CASES)
    began = time.monotonic()
    with alone_in(asked.out), machine_faults(asked.out, go_on=GO_ON):
        lines = asyncio.run(_played(asked, target, chosen, stream))
        seconds = time.monotonic() - began
        summary = summed(target, lines, seconds)
        _write(asked.out, lines, summary)
    _report(asked.out, lines, summary)
    return EXIT_CODES[summary["verdict"]]


def _missing(target: Target, python: str) -> str | None:
    """Why the target cannot run on this machine."""
    if shutil.which(python) is None:
        return f"there is no interpreter {python}"
    return None


async def _played(asked: Asked, target: Target, chosen: Sequence[Expectation], stream: TextIO) -> list[dict[str, Any]]:
    place = asked.out.resolve() / CASES

    def told(expectation: Expectation, seen: Sequence[Seen]) -> None:
        verdicts = [each.verdict for each in seen]
        worst = next((word for word in (VIOLATED, UNCLEAR, SKIPPED, MET) if word in verdicts), MET)
        say(f"  {expectation.name}: {worst}", stream)

    with stoppable() as stopped_by:
        try:
            async with Supervisor(ROOT, "fork", (CROWD_MODULE,)) as supervisor:
                scratch = place / "scratch"
                scratch.mkdir()
                site = Site(target, supervisor, asked.python, {}, scratch)
                try:
                    return await receiver_check.play(site, place, chosen, told)
                finally:
                    receiver_check.tidy(place)
                    shutil.rmtree(scratch, ignore_errors=True)
        except asyncio.CancelledError:
            raise Interrupted(
                f"stopped by {stopped_by() or 'cancellation'}: {asked.out} holds no results; all processes were ended"
            ) from None


def verdict(lines: Sequence[Mapping[str, Any]]) -> str:
    """The verdict over all lines."""
    if any(each["verdict"] == VIOLATED and each["severity"] in FAILING for each in lines):
        return FAIL
    return PASS if any(each["verdict"] in (MET, VIOLATED) for each in lines) else UNKNOWN


def summed(target: Target, lines: Sequence[Mapping[str, Any]], seconds: float) -> dict[str, Any]:
    """What stands in summary.json."""
    counts: dict[str, int] = {}
    for each in lines:
        word = each["severity"] if each["verdict"] == VIOLATED else each["verdict"]
        counts[word] = counts.get(word, 0) + 1
    return {
        "kind": "receiver",
        "target": target.name,
        "verdict": verdict(lines),
        "cases": len(lines),
        "by_verdict": counts,
        "wall_seconds": round(seconds, 3),
        "cases_per_second": round(len(lines) / seconds, 2),
    }


def _write(out: Path, lines: Sequence[Mapping[str, Any]], summary: Mapping[str, Any]) -> None:
    (out / RESULTS).write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in lines), "utf-8")
    (out / SUMMARY).write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _report(out: Path, lines: Sequence[Mapping[str, Any]], summary: Mapping[str, Any]) -> None:
    for each in lines:
        if each["verdict"] == MET:
            continue
        fault = f" at {each['fault']['where']}" if each["fault"] else ""
        if each["verdict"] == VIOLATED:
            print(f"{each['severity'].upper()} {each['expectation']}{fault} ({each['source']}): {each['seen']}")
            print(f"  expected: {each['expected']}")
        else:
            print(f"{each['verdict']} {each['expectation']}{fault}: {each['seen']}")
    counts = ", ".join(f"{number} {word}" for word, number in sorted(summary["by_verdict"].items()))
    print(f"{summary['verdict']} {out}: {summary['target']}: {counts}; {summary['wall_seconds']:.1f} s")

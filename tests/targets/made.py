"""Lines of a check, made by hand: a worker that dies at a line, and an expectation of a receiver."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from scenarios.targets import file, results, verdicts
from scenarios.targets.model import Target
from scenarios.targets.outcomes import Arrival, Effect, Ended, Exchange, Fault, ReceiverCase, Sent, WorkerCase

JOB, CANARY = "halt23-job-1", "halt23-canary-1"
WORKER_FILE = """name = "toy-worker"
about = "a queue in a table"
claims = "at-least-once"

[package]
name = "toy"
version = "1.0"
install = "pip install toy==1.0"
guarantee = "a job that was accepted is done"
source = "https://toy.example/guarantee"

[worker]
enqueue = ["{python}", "{target}/worker.py", "enqueue", "{job}", "{url}"]
work = ["{python}", "{target}/worker.py", "work"]
"""
RECEIVER_FILE = """name = "toy-receiver"

[receiver]
command = ["{python}", "{target}/app.py", "{port}"]
[receiver.operation]
path = "/operations"
[receiver.effects]
url = "/effects"
"""


def target(folder: Path, text: str = WORKER_FILE) -> Target:
    """A target that is read from a file in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "target.toml"
    path.write_text(text)
    return file.read(path)


def plan(folder: Path, text: str = WORKER_FILE) -> results.Plan:
    """What a check of it begins with."""
    made = target(folder, text)
    kind = results.RECEIVER if made.contents.worker is None else results.WORKER
    return results.Plan(kind=kind, target=made, options={"mode": "lines"}, python="/usr/bin/python3", versions={"toy": "1.0"})


def worker_case(line: int, *keys: str, occurrence: int = 1, stored: bool | None = None, **more: object) -> WorkerCase:
    """A death before line `line` of `worker.py`, after which the job arrived under each of `keys`."""
    arrivals = [
        Arrival(job=JOB, key=key, status=200, applied=True, after_restart=True, seconds=0.6 + number)
        for number, key in enumerate(keys)
    ]
    arrivals.append(Arrival(job=CANARY, key="canary", status=200, applied=True, after_restart=True, seconds=2.0))
    effects = {JOB: Effect(keyed=len(set(keys)), unkeyed=len(keys)), CANARY: Effect(keyed=1, unkeyed=1)}
    verdict = verdicts.of_worker(fired=True, doubts=(), effects=effects, canary=CANARY, stored=stored)
    delivered = verdict not in (verdicts.LOST, verdicts.STUCK)
    made = WorkerCase(
        case=f"work:worker.py:{line}#{occurrence}",
        fault=Fault(role="work", kind="line", where=f"worker.py:{line}", function="work", occurrence=occurrence),
        ended=Ended(exit_code=23),
        fired=True,
        arrivals=tuple(arrivals),
        effects=effects,
        canary=CANARY,
        verdict=verdict,
        stored=stored,
        stored_by=None if stored is None else "bytes",
        recovered_seconds=0.5 if delivered else None,
        watched_seconds=2.0,
        reasons=() if delivered else (f"{JOB} was not delivered",),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def receiver_case(expectation: str, verdict: str = verdicts.MET, severity: str = "duplicated", **more: object) -> ReceiverCase:
    """An expectation that was held against a request that was sent twice."""
    sent = Sent(method="POST", path="/operations", headers=(("Idempotency-Key", "key-1"),), body='{"amount": 5}')
    made = ReceiverCase(
        expectation=expectation,
        source="study",
        severity=severity,
        verdict=verdict,
        expected="one effect",
        seen="one effect" if verdict == verdicts.MET else "two effects",
        exchanges=(Exchange(request=sent, status=200, body="{}", seconds=0.01),) * 2,
        before=0,
        after=1 if verdict == verdicts.MET else 2,
    )
    return replace(made, **more)  # type: ignore[arg-type]


CASES = (
    worker_case(10, "k1"),
    worker_case(11),
    worker_case(12, "k1", "k1"),
    worker_case(13, "k1", "k1"),
    worker_case(13, "k1", occurrence=2),
    worker_case(14, stored=False),
)


def checked(folder: Path, *cases: WorkerCase | ReceiverCase) -> Path:
    """A whole check in `folder`; of a worker if there are no cases of a receiver."""
    text = RECEIVER_FILE if cases and isinstance(cases[0], ReceiverCase) else WORKER_FILE
    out = folder / "out"
    with results.begin(out, plan(folder / "target", text)) as check:
        for case in cases or CASES:
            check.add(case)
            if case.verdict not in (verdicts.RECOVERED, verdicts.UNKEYED, verdicts.MET, verdicts.SKIPPED):
                (check.folder(case.name) / "work.txt").write_text("halt(23)\n")
        check.finish()
    return out

"""Records a run of a subject without faults, with all that it asks of the kernel, and keeps it beside the baseline.

It is recorded twice, for the names of cases are places in the recording: both must have made the same calls. What the calls
give, all of them applied, must be what the run left.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from outbox.errors import BadInput
from scenarios.engine.processes import Process
from scenarios.engine.stage import Stage, StepFailed
from scenarios.explore import strace
from scenarios.explore.derive import Derived
from scenarios.explore.launcher import at_round
from scenarios.explore.model import Case, Subject
from scenarios.explore.power import DATABASE, check, views
from scenarios.explore.rounds import SPARE_ROUNDS, Room
from scenarios.explore.state import Place, Unreadable
from scenarios.model import SQLITE
from scenarios.power import events, log, recorder
from scenarios.power.log import Unmodelled
from scenarios.power.recording import Recording

CALLS, VIEWS = "calls.jsonl", "views.jsonl"
CANNOT = (StepFailed, Unmodelled, Unreadable, LookupError)


def can_record(subjects: Sequence[Subject], store: str) -> None:
    """Raise BadInput where the runs of these subjects cannot be recorded, saying why."""
    if (why := strace.why_not()) is not None:
        raise BadInput(f"mode power records system calls, and {why}")
    if store != SQLITE and any(subject.uses_database for subject in subjects):
        raise BadInput(f"mode power derives images of files of ours; what a {store} server does to its own it cannot judge")


async def recorded(derived: Derived, room: Room, base: Path) -> Derived:
    """The same with a recorded run, kept in `base`; with a doubt where none can be had. Raises HarnessBug and OSError."""
    subject = derived.subject
    try:
        first, second = [await record(subject, room, base / f"recorded-{number}") for number in (1, 2)]
    except CANNOT as sentence:
        return replace(derived, doubts=(f"{subject.name} cannot be recorded: {sentence}",))
    if first.shape() != second.shape():
        return replace(derived, doubts=(f"{subject.name}: two recorded runs made other calls, so no case has a stable name",))
    events.write(base / CALLS, first.events)
    told = [json.dumps(each.data(), ensure_ascii=True, separators=(",", ":")) for each in first.views]
    (base / VIEWS).write_text("".join(f"{each}\n" for each in told), encoding="ascii")
    return replace(derived, recording=first)


async def record_for(case: Case, room: Room, out: Path) -> Room:
    """The room with what the case needs: a recorded run, where it begins with a loss of power. Raises BadInput."""
    if case.power is None:
        return room
    try:
        return replace(room, recording=await record(case.subject, room, out / "recorded"))
    except CANNOT as sentence:
        raise BadInput(f"{case.subject.name} cannot be recorded: {sentence}") from None


async def record(subject: Subject, room: Room, directory: Path) -> Recording:
    """Record one run in the new `directory`, which is removed. Raises StepFailed, Unmodelled, HarnessBug and OSError."""
    directory.mkdir(parents=True)
    traced = directory.with_name(f"{directory.name}.log")
    try:
        async with room.supervisor.another(recorder.command(traced)) as supervisor:
            processes = await _run(subject, replace(room, supervisor=supervisor), directory)
        with traced.open(encoding="ascii", errors="replace") as lines:
            found = log.read(lines, str(directory), {each.child.pid: each.name for each in processes})
        check(found, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        traced.unlink(missing_ok=True)
    return Recording(
        found,
        views(subject, found),
        frozenset(role.process for role in subject.roles if role.server),
        {role.process: role.done for role in subject.roles if role.once},
    )


async def _run(subject: Subject, room: Room, directory: Path) -> list[Process]:
    """Play the subject without faults, until nothing is left to do."""
    stage = room.stage(f"{subject.name}/recorded", directory)
    done: set[str] = set()
    try:
        for number in range(1, SPARE_ROUNDS + 1):
            if await _round(subject, stage, number, done) and not subject.read(_place(subject, directory)).unfinished:
                return stage.processes
        raise StepFailed("a run without faults does not come to its end")
    finally:
        for process in stage.processes:
            if process.child.running:
                await stage.end(process)
        stage.leave()  # what the database left is compared with what was recorded


async def _round(subject: Subject, stage: Stage, number: int, done: set[str]) -> bool:
    settled = True
    for role in subject.roles:
        living = stage.living(role.process) is not None
        if role.process in done or living or (role.after is not None and role.after not in done):
            continue
        process = await stage.launch(number, at_round(role.program, subject, number), {})
        if role.server:
            await stage.ready(process)
            continue
        ending = await stage.ended(process, stage.bounds.run_seconds)
        ended_well = ending.exit_code in role.done
        settled &= ended_well
        if ended_well and role.once:
            done.add(role.process)
    return settled


def _place(subject: Subject, directory: Path) -> Place:
    return Place(directory, str(directory / DATABASE) if subject.uses_database else None)

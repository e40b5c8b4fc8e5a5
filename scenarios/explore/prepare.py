"""The files that a subject's preparing programs leave, made once: a case whose faults strike none of them begins with a copy.

It saves the time of programs that would do the same in every case. Cases that strike them run them all the same.
"""

from pathlib import Path

from scenarios.engine.stores import SqliteStore
from scenarios.explore.launcher import at_round
from scenarios.explore.model import Subject
from scenarios.explore.rounds import Room


def can_prepare(subject: Subject, room: Room) -> bool:
    """Whether all that the preparing programs leave is in files: what is in a server's database is not copied with them."""
    return not subject.uses_database or isinstance(room.store, SqliteStore)


async def prepare(subject: Subject, room: Room, directory: Path) -> None:
    """Run the roles of `subject` that run once, in the new `directory`. Raises StepFailed where one does not end as it
    should."""
    directory.mkdir(parents=True)
    stage = room.stage(f"{subject.name}/prepared", directory)
    try:
        for role in subject.roles:
            if role.once:
                process = await stage.launch(1, at_round(role.program, subject, 1), {})
                await stage.expect(process, role.done)
    finally:
        stage.leave()  # the database is part of what is prepared

"""Mode `power`: one run without faults is recorded, and each disk that a power cut could have left of it is recovered from.

What may be on a disk is in `scenarios.power.disk`, which of it is derived in `scenarios.power.images`. Here a subject is
recorded, the images become cases, and what is found on one is held against what had been told before
(`scenarios.power.promises`).
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from outbox.errors import BadInput
from scenarios.engine.stage import StepFailed
from scenarios.explore.model import Case, Power, Subject
from scenarios.explore.state import Place, State, Unreadable, unread
from scenarios.explore.verdicts import LOST, PHANTOM, Violation
from scenarios.power import disk, recording
from scenarios.power.disk import Disk, Image
from scenarios.power.events import Event
from scenarios.power.log import VOLATILE
from scenarios.power.promises import View, view
from scenarios.power.recording import Recording

if TYPE_CHECKING:
    from scenarios.explore.derive import Derived

DATABASE = "state/dispatch.db"


def power_cases(derived: "Derived") -> Iterator[Case]:
    """One case for each image that differs from all others."""
    if derived.recording is not None:
        for call, image in derived.recording.places:
            yield Case(derived.subject, ((Power(call, image),),))


def left_by(subject: Subject, recorded: Recording, power: Power, directory: Path) -> tuple[State, tuple[Violation, ...]]:
    """Build the image of a case in `directory`; what is on it, and what is wrong with that. Raises BadInput where there is no
    such image."""
    image = recorded.image((power.call, power.image))
    if image is None:
        raise BadInput(
            f"power:{power.call}.{power.image}: the recorded run has {len(recorded.events)} calls, and no image of this number "
            "after that one; derive again"
        )
    recording.build(image, directory)
    try:
        found = look(subject, image)
    except Unreadable as error:
        return unread(), (Violation(LOST, f"when the power was back this could not be read: {error}"),)
    return found, _wrong(subject, recorded, power, found)


def look(subject: Subject, image: Image) -> State:
    """What is on an image. It is looked at elsewhere: whoever opens a database changes its files. Raises Unreadable."""
    with tempfile.TemporaryDirectory(prefix="halt23-image-") as scratch:
        recording.build(image, Path(scratch))
        return subject.read(Place(Path(scratch), str(Path(scratch) / DATABASE) if subject.uses_database else None))


def _wrong(subject: Subject, recorded: Recording, power: Power, found: State) -> tuple[Violation, ...]:
    """What had been told and is gone, and what has no cause."""
    wrong = [Violation(LOST, sentence) for sentence in recorded.broken(power.call, view(found))]
    if not subject.uses_database:
        gone = [key for key in found.history if not found.receipts.get(key)]
        wrong += [Violation(LOST, f"{key} had a history record and no receipt when the power was back") for key in gone]
    wrong += [Violation(PHANTOM, f"when the power was back: {sentence}") for sentence in found.uncaused]
    return tuple(wrong)


def views(subject: Subject, events: tuple[Event, ...]) -> tuple[View, ...]:
    """What stood in the files after each number of events."""
    found: list[View] = []
    after, before = Disk(), None
    for count in range(len(events) + 1):
        if count:
            after.apply(events[count - 1])
        image = after.whole()
        if image != before:
            found.append(view(look(subject, image)))
        else:
            found.append(found[-1])
        before = image
    return tuple(found)


def check(events: tuple[Event, ...], directory: Path) -> None:
    """Raises StepFailed unless the recorded calls, all of them applied, give the files that the run left."""
    whole = disk.after(events, len(events)).whole()
    for path, content in whole.items():
        real = directory / path
        if (real.is_dir() if content is None else real.is_file() and real.read_bytes() == content) is False:
            raise StepFailed(f"the recorded calls do not give {path} as the run left it; nothing can be derived from them")
    # SQLite's shared memory is no state, and directories without a file may be the harness's.
    left = {path.relative_to(directory).as_posix() for path in directory.rglob("*")}
    left = {path for path in left if not path.endswith(VOLATILE) and not (directory / path).is_dir()}
    if unknown := sorted(left - whole.keys()):
        raise StepFailed(f"the recorded calls do not give {unknown[0]}, which the run left; nothing can be derived from them")

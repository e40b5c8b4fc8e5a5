"""One recorded run, and what follows from it: the cases, their images, and what each of them must hold.

A case is a moment and one of the images that are legal then (`scenarios.power.images`), numbered from 1. The same image may be
legal at many moments. It is judged once, at the last of them, where the most had been told; where another program has ended in
between, it is another case, for recovery starts other programs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from scenarios.power import disk, images, promises
from scenarios.power.disk import Disk, Image
from scenarios.power.events import END, Event
from scenarios.power.promises import View

Place = tuple[int, int]


@dataclass(frozen=True)
class Recording:
    """What a run did (`events`), what stood in its files after each number of events (`views`), who serves, and with which exit
    codes each program that runs once is done."""

    events: tuple[Event, ...]
    views: tuple[View, ...]
    servers: frozenset[str]
    once: Mapping[str, frozenset[int]]
    _after: Callable[[int], Disk] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_after", lru_cache(maxsize=4)(lambda count: disk.after(self.events, count)))

    def __reduce__(self) -> tuple[object, ...]:
        """To another process go the facts; what was worked out of them is worked out there."""
        return Recording, (self.events, self.views, self.servers, dict(self.once))

    @cached_property
    def _distinct(self) -> tuple[tuple[Place, ...], int]:
        return distinct(self)

    @property
    def places(self) -> tuple[Place, ...]:
        """The moments and numbers of the images that are judged, in order."""
        return self._distinct[0]

    @property
    def images(self) -> int:
        """How many images there are, before those that are equal are taken together."""
        return self._distinct[1]

    def shape(self) -> list[tuple[str, str, str, str, int, int]]:
        """What two recorded runs must have in common: everything but the bytes, some of which a database takes by chance."""
        return [(each.kind, each.process, each.path, each.to, each.number, len(each.data)) for each in self.events]

    def done(self, call: int) -> frozenset[str]:
        """The programs that run once and had ended well after the first `call` events."""
        return frozenset(
            event.process
            for event in self.events[:call]
            if event.kind == END and event.number in self.once.get(event.process, ())
        )

    def image(self, place: Place) -> Image | None:
        """The image of this moment and number; None where there is none."""
        call, number = place
        if call > len(self.events):
            return None
        after = self._after(call)
        for at, choice in enumerate(images.choices(after.units), 1):
            if at == number:
                return after.image(choice)
        return None

    def broken(self, call: int, found: View) -> list[str]:
        """What was told by then and is not in what was found on a disk."""
        return [*promises.broken(self.events, self.views, call, found, self.servers.__contains__)]


def distinct(recording: Recording) -> tuple[tuple[Place, ...], int]:
    """The moments and numbers of all images that differ, in order, and how many there were before those that are equal were
    counted once."""
    found: dict[tuple[str, frozenset[str]], Place] = {}
    count = 0
    for call, digest, number in _digests(recording.events):
        found[digest, recording.done(call)] = (call, number)
        count += 1
    return tuple(sorted(found.values())), count


def _digests(events: Sequence[Event]) -> Iterator[tuple[int, str, int]]:
    after = Disk()
    for call in range(len(events) + 1):
        if call:
            after.apply(events[call - 1])
        for number, choice in enumerate(images.choices(after.units), 1):
            yield call, disk.digest(after.image(choice)), number


def build(image: Image, directory: Path) -> None:
    """Write an image into `directory`, which is there. Raises OSError."""
    for path, content in image.items():
        if content is None:
            (directory / path).mkdir()
        else:
            (directory / path).write_bytes(content)

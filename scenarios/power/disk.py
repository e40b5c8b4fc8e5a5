"""A file system that may lose its power: what is durable, what is not yet, and what a disk may hold of it.

The model, which promises no more than POSIX and a journaling file system do together:

* A sync of a file makes its content and its size durable, as they were when the sync began. It says nothing of its name.
* A sync of a directory makes durable what was done to its names: creations, renames, removals. A name that was made without it
  may be gone, one that was removed may be back, a file that was replaced by a rename may be the old one.
* A rename is atomic: after a loss of power it was done or it was not; it is durable when either directory is synced.
* Of what was not synced any part may be there, whatever its order, in one file and among several. Only one thing done to a name
  follows another one to the same name.
* A write is there or not, or torn: its beginning is there, up to a multiple of 512 bytes in the file. Its size may be there
  without its bytes, which are zeros then, as they are in any gap.

So it is harsher than ext4, which makes a new file's name durable with the file's sync. It is milder than a disk that lies about
a sync, that tears a sector, or that loses what was durable.

What was there before anything was recorded is durable.
"""

import hashlib
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from scenarios.power.events import DIRECTORY, WRITE, Event

SECTOR_BYTES = 512
ROOT = ""
# What is at a path of an image: the bytes of a file, or None for a directory.
Image = Mapping[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Unit:
    """Something that was done and is not durable: to the content of `node` (`names` is empty then), or to names.

    A name is the node of its directory and its text. A unit of names removes all of them, and then sets the last one to `node`,
    unless that is None. `at` is its event's place in the run.
    """

    at: int
    node: int | None
    offset: int = 0
    data: bytes | None = None  # None: the file was cut or grown to the size `offset`
    names: tuple[tuple[int, str], ...] = ()

    @property
    def end(self) -> int:
        """The size that the file has at least when a write is done."""
        return self.offset + len(self.data or b"")


@dataclass(frozen=True, slots=True)
class Part:
    """How much of a unit is on a disk: the first `kept` bytes of a write, and with `sized` its size."""

    kept: int
    sized: bool


NOTHING, ALL = Part(0, sized=False), Part(1 << 62, sized=True)
Choice = tuple[Part, ...]


@dataclass(slots=True)
class Disk:
    """The files of one run. `live` is what processes see, `durable` what no loss of power takes, `units` the rest, in order.

    Nodes are numbers; 0 is the folder of the run. `content` is the durable content of each file; a directory has none.
    """

    live: dict[tuple[int, str], int] = field(default_factory=dict)
    durable: dict[tuple[int, str], int] = field(default_factory=dict)
    content: dict[int, bytes | None] = field(default_factory=lambda: {0: None})
    units: list[Unit] = field(default_factory=list)
    done: int = 0

    def apply(self, event: Event) -> None:
        """Let one event happen. Raises LookupError for a file that is not there: the recording is not whole then."""
        at, self.done = self.done, self.done + 1
        match event.kind:
            case "directory" | "create":
                node = len(self.content)
                self.content[node] = None if event.kind == DIRECTORY else b""
                self._named(at, node, self._name(event.path))
            case "write" | "truncate":
                node = self._node(event.path)
                self.units.append(Unit(at, node, event.number, event.data if event.kind == WRITE else None))
            case "rename":
                self._named(at, self._node(event.path), self._name(event.path), self._name(event.to))
            case "remove":
                self._node(event.path)
                self._named(at, None, self._name(event.path))
            case "sync":
                self._sync(self._node(event.path), event.number)

    def _named(self, at: int, node: int | None, *names: tuple[int, str]) -> None:
        unit = Unit(at, node, names=names)
        _name(self.live, unit)
        self.units.append(unit)

    def _sync(self, node: int, before: int) -> None:
        chosen = {at for at, unit in enumerate(self.units) if unit.at < before and self._concerns(unit, node)}
        chosen = closed(self.units, chosen)
        for at in sorted(chosen):
            unit = self.units[at]
            if unit.names:
                _name(self.durable, unit)
            else:
                assert unit.node is not None
                self.content[unit.node] = applied(self.content[unit.node] or b"", unit, ALL)
        self.units = [unit for at, unit in enumerate(self.units) if at not in chosen]

    def _concerns(self, unit: Unit, node: int) -> bool:
        return any(directory == node for directory, _name in unit.names) if unit.names else unit.node == node

    def _name(self, path: str) -> tuple[int, str]:
        directory, name = posixpath.split(path)
        return self._directory(directory), name

    def _directory(self, path: str) -> int:
        """The node of a directory. One that nobody was seen to make was there before."""
        if path == ROOT:
            return 0
        name = self._name(path)
        if name not in self.live:
            node = len(self.content)
            self.content[node] = None
            self.live[name] = self.durable[name] = node
        return self.live[name]

    def _node(self, path: str) -> int:
        if path == ROOT:
            return 0
        name = self._name(path)
        if name not in self.live:
            raise LookupError(f"{path} was not seen to be made")
        return self.live[name]

    def image(self, choice: Choice) -> Image:
        """What the disk holds if of each unit this part is on it."""
        names = dict(self.durable)
        for unit, part in zip(self.units, choice, strict=True):
            if unit.names and part == ALL:
                _name(names, unit)
        contents = self._contents(choice)
        below: dict[int, list[tuple[str, int]]] = {}
        for (directory, name), node in names.items():
            below.setdefault(directory, []).append((name, node))
        return dict(sorted(_walk(below, contents, 0, ROOT)))

    def _contents(self, choice: Choice) -> Mapping[int, bytes | None]:
        contents = dict(self.content)
        for unit, part in zip(self.units, choice, strict=True):
            if not unit.names and part != NOTHING:
                assert unit.node is not None
                contents[unit.node] = applied(contents[unit.node] or b"", unit, part)
        return contents

    def whole(self) -> Image:
        """What the processes see."""
        return self.image((ALL,) * len(self.units))


def after(events: Sequence[Event], count: int) -> Disk:
    """The disk after the first `count` events."""
    disk = Disk()
    for event in events[:count]:
        disk.apply(event)
    return disk


def applied(content: bytes, unit: Unit, part: Part) -> bytes:
    """A file's content when `part` of a unit has come to it."""
    if unit.data is None:
        return content[: unit.offset].ljust(unit.offset, b"\0")
    kept = unit.data[: part.kept]
    size = unit.end if part.sized else unit.offset + len(kept) if kept else 0
    content = content.ljust(max(size, len(content)), b"\0")
    return content[: unit.offset] + kept + content[unit.offset + len(kept) :] if kept else content


def needs(units: Sequence[Unit], at: int) -> set[int]:
    """The units that must have come before unit `at` can: what was done before to one of its names."""
    return {other for other in range(at) if set(units[other].names) & set(units[at].names)}


def closed(units: Sequence[Unit], chosen: set[int]) -> set[int]:
    """The same units, and all that must have come before."""
    found = set(chosen)
    for at in sorted(chosen, reverse=True):
        found |= closed(units, needs(units, at) - found)
    return found


def digest(image: Image) -> str:
    """One hash over an image."""
    whole = hashlib.sha256()
    for path, content in sorted(image.items()):
        whole.update(f"{path} {'directory' if content is None else len(content)}\n".encode())
        whole.update(content or b"")
    return whole.hexdigest()


def _name(tree: dict[tuple[int, str], int], unit: Unit) -> None:
    for name in unit.names:
        tree.pop(name, None)
    if unit.node is not None:
        tree[unit.names[-1]] = unit.node


def _walk(
    below: Mapping[int, Sequence[tuple[str, int]]], contents: Mapping[int, bytes | None], directory: int, path: str
) -> Iterator[tuple[str, bytes | None]]:
    for name, node in below.get(directory, ()):
        yield posixpath.join(path, name), contents[node]
        yield from _walk(below, contents, node, posixpath.join(path, name))

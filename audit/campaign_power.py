"""Mode `power`, derived anew: the disks that a power cut may leave of a recorded run, by the audit's own model.

The recording (`baseline/SUBJECT/calls.jsonl`) tells what was asked of the kernel. What was not synced may be there or not, in
any order but that of one name; a write may be torn at 512 bytes, or only its size be there. From that follow the cases, the
disk of each, who need not run again, and what had been told to somebody and must be found. That the recording is what the
kernel was asked for cannot be seen from it; that all of its calls give what the run without faults left, can.
"""

from __future__ import annotations

from audit.campaign_state import RECEIVER, SENDER, State, of_bytes
from audit.findings import show
from audit.hashing import sha256
from audit.shapes import OBJECT, TEXT, Kind, holds, one_of
from audit.strict_json import Malformed, compact, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from audit.campaign_plan import Case, Subject
    from audit.files import Tree
    from audit.findings import Note
    from audit.shapes import Shape

    Event = dict[str, Any]
    Image = dict[str, bytes | None]
    # What is on the disk of each thing that was not synced: how many of its bytes, and whether its size.
    Choice = tuple[tuple[int, bool], ...]

UNREADABLE = "when the power was back this could not be read"
CALLS, VIEWS = "calls.jsonl", "views.jsonl"
KINDS = ("directory", "create", "write", "truncate", "sync", "rename", "remove", "tell", "end")
EVENT: Shape = {
    "kind": one_of(*KINDS), "process": TEXT, "path": TEXT, "to": TEXT,
    "number": Kind("a number", lambda value: type(value) is int and value >= -1), "data": TEXT,
}  # fmt: skip
MEMBERS = ("effects", "intended", "receipts", "history", "attempts")
VIEW: Shape = dict.fromkeys(MEMBERS, OBJECT)
SECTOR, WHOLE, CUTS = 512, 6, 3
GONE, THERE = (0, False), (1 << 62, True)
NOUNS = {"effects": "effect", "intended": "intention", "receipts": "receipt", "history": "history record"}


class Unit:
    """Something that was done and not synced: to a file's content (`names` is empty), or to names."""

    __slots__ = ("at", "data", "names", "node", "offset")

    def __init__(self, at: int, node: int, names: list[tuple[int, str]], offset: int = 0, data: bytes | None = None) -> None:
        self.at, self.node, self.names, self.offset, self.data = at, node, names, offset, data


class Disk:
    """A disk while a recording is played on it. Node 0 is the folder of the run; a removal's node is -1."""

    def __init__(self) -> None:
        self.seen: dict[tuple[int, str], int] = {}
        self.safe: dict[tuple[int, str], int] = {}
        self.content: list[bytes | None] = [None]
        self.units: list[Unit] = []
        self.events = 0

    def play(self, event: Event) -> None:
        """One event. Raises KeyError for a file that nobody made."""
        at, self.events = self.events, self.events + 1
        kind, path = event["kind"], event["path"]
        if kind in ("directory", "create"):
            self.content.append(None if kind == "directory" else b"")
            self._rename(at, len(self.content) - 1, [self._name(path)])
        elif kind == "rename":
            self._rename(at, self._node(path), [self._name(path), self._name(event["to"])])
        elif kind == "remove":
            self._node(path)
            self._rename(at, -1, [self._name(path)])
        elif kind in ("write", "truncate"):
            data = event["data"].encode("latin-1") if kind == "write" else None
            self.units.append(Unit(at, self._node(path), [], event["number"], data))
        elif kind == "sync":
            self._sync(self._node(path), event["number"])

    def _rename(self, at: int, node: int, names: list[tuple[int, str]]) -> None:
        self.units.append(Unit(at, node, names))
        _name(self.seen, self.units[-1])

    def _sync(self, node: int, before: int) -> None:
        own = [at for at, unit in enumerate(self.units) if unit.at < before and _touches(unit, node)]
        chosen = with_needed(self.units, set(own))
        for at in sorted(chosen):
            unit = self.units[at]
            if unit.names:
                _name(self.safe, unit)
            else:
                self.content[unit.node] = _with(self.content[unit.node] or b"", unit, THERE)
        self.units = [unit for at, unit in enumerate(self.units) if at not in chosen]

    def _name(self, path: str) -> tuple[int, str]:
        directory, _, name = path.rpartition("/")
        node = 0
        for part in directory.split("/") if directory else []:
            if (node, part) not in self.seen:  # the harness made it before
                self.content.append(None)
                self.seen[node, part] = self.safe[node, part] = len(self.content) - 1
            node = self.seen[node, part]
        return node, name

    def _node(self, path: str) -> int:
        return self.seen[self._name(path)] if path else 0

    def image(self, choice: Choice) -> Image:
        """The files and directories, if this much of each unit is there."""
        names, content = dict(self.safe), list(self.content)
        for unit, part in zip(self.units, choice, strict=True):
            if unit.names and part == THERE:
                _name(names, unit)
            elif not unit.names and part != GONE:
                content[unit.node] = _with(content[unit.node] or b"", unit, part)
        found: Image = {}
        _collect(names, content, 0, "", found)
        return found


def _collect(names: dict[tuple[int, str], int], content: list[bytes | None], directory: int, path: str, found: Image) -> None:
    for (holder, name), node in names.items():
        if holder == directory:
            found[path + name] = content[node]
            if content[node] is None:
                _collect(names, content, node, f"{path}{name}/", found)


def _name(tree: dict[tuple[int, str], int], unit: Unit) -> None:
    for name in unit.names:
        tree.pop(name, None)
    if unit.node >= 0:
        tree[unit.names[-1]] = unit.node


def _touches(unit: Unit, node: int) -> bool:
    return any([directory == node for directory, _ in unit.names]) if unit.names else unit.node == node


def _with(content: bytes, unit: Unit, part: tuple[int, bool]) -> bytes:
    if unit.data is None:
        return content[: unit.offset].ljust(unit.offset, b"\0")
    kept, sized = unit.data[: part[0]], part[1]
    end = unit.offset + (len(unit.data) if sized else len(kept))
    if not kept:
        return content.ljust(end, b"\0") if sized else content
    content = content.ljust(end, b"\0")
    return content[: unit.offset] + kept + content[unit.offset + len(kept) :]


def _needed(units: list[Unit], at: int) -> set[int]:
    return {other for other in range(at) if set(units[other].names) & set(units[at].names)}


def with_needed(units: list[Unit], chosen: set[int]) -> set[int]:
    """The same, with all that was done before to the same names."""
    found, todo = set(chosen), list(chosen)
    while todo:
        more = _needed(units, todo.pop()) - found
        found |= more
        todo += more
    return found


def choices(units: list[Unit]) -> Iterator[Choice]:
    """What is derived for one moment, each once, in order."""
    everything, met = range(len(units)), set()
    for chosen in _sets(units):
        choice = tuple([THERE if at in chosen else GONE for at in everything])
        if choice not in met:
            met.add(choice)
            yield choice
    for at, unit in enumerate(units):
        for part in _torn(unit) if unit.data is not None else []:
            for base in (set(range(at)), _without(units, at)):
                choice = tuple([part if each == at else THERE if each in base else GONE for each in everything])
                if choice not in met:
                    met.add(choice)
                    yield choice


def _sets(units: list[Unit]) -> Iterator[set[int]]:
    count = len(units)
    if count <= WHOLE:
        for number in range(2**count):
            chosen = {at for at in range(count) if number & (1 << at)}
            if with_needed(units, chosen) == chosen:
                yield chosen
        return
    for end in range(count + 1):
        yield set(range(end))
    for at in range(count):
        yield _without(units, at)
    for at in range(count):
        yield with_needed(units, {at})


def _without(units: list[Unit], at: int) -> set[int]:
    return {each for each in range(len(units)) if at not in with_needed(units, {each})}


def _torn(unit: Unit) -> list[tuple[int, bool]]:
    data = unit.data or b""
    places = [place for place in range(1, len(data)) if (unit.offset + place) % SECTOR == 0]
    if len(places) > CUTS:
        places = [places[0], places[len(places) // 2], places[-1]]
    return [(0, True), *[(place, sized) for place in places for sized in (False, True)]]


class Recorded:
    """The recording of one subject, and what follows from it."""

    def __init__(self, subject: Subject, events: list[Event], views: list[dict[str, Any]]) -> None:
        self.subject, self.events, self.views = subject, events, views
        self.images = 0
        self._disk: tuple[int, Disk] = (0, Disk())
        self._servers = {role["process"] for role in subject.roles if role["server"]}
        self._once = {role["process"]: role["done"] for role in subject.roles if role["once"]}
        self.judged = self._places()

    def _places(self) -> list[tuple[int, int]]:
        """Moment and number of every image that is judged: of those that are equal the last, unless somebody ended between."""
        found: dict[tuple[str, tuple[str, ...]], tuple[int, int]] = {}
        disk = Disk()
        for call in range(len(self.events) + 1):
            if call:
                disk.play(self.events[call - 1])
            done = tuple(sorted(self.done(call)))
            for number, choice in enumerate(choices(disk.units), 1):
                found[_hash(disk.image(choice)), done] = (call, number)
                self.images += 1
        return sorted(found.values())

    def done(self, call: int) -> set[str]:
        """Who runs once and had ended well."""
        ended = [event for event in self.events[:call] if event["kind"] == "end"]
        return {event["process"] for event in ended if event["number"] in self._once.get(event["process"], [])}

    def image(self, call: int, number: int) -> Image:
        """The files of one image."""
        if self._disk[0] != call or not self._disk[1].events:
            self._disk = (call, _after(self.events[:call]))
        disk = self._disk[1]
        return next((disk.image(each) for at, each in enumerate(choices(disk.units), 1) if at == number), {})

    def broken(self, call: int, state: State) -> list[str]:
        """`KIND: SENTENCE` for what was told and is not there, and for what is there without a cause."""
        found, met = [], set()
        there = view_of(state)
        for at, event in enumerate(self.events[:call]):
            if event["kind"] != "tell":
                continue
            for what in ("effects",) if event["process"] in self._servers else ("intended", "attempts", "receipts", "history"):
                for key, count in self.views[at][what].items():
                    wanted, has = min(count, self.views[call][what].get(key, 0)), there[what].get(key, 0)
                    if has < wanted and (what, key) not in met:
                        met.add((what, key))
                        found.append(f"lost: {_said(event, at + 1, (what, key), (wanted, has))}")
        if not self.subject.database:
            lone = [key for key in state.history if not state.receipts.get(key)]
            found += [f"lost: {key} had a history record and no receipt when the power was back" for key in lone]
        return found + [f"phantom: when the power was back: {sentence}" for sentence in state.uncaused]


def hold_line(line: dict[str, Any], case: Case, recorded: Recorded, note: Note) -> None:
    """Hold what a line says of its image against the recording, whether the case was kept or not. What is in a database cannot
    be read from the bytes of its file here, and damage is told in the words of who read it."""
    power = case.power
    if (
        power is None
        or "image" not in line
        or recorded.subject.database
        or any(UNREADABLE in each for each in line["violations"])
    ):
        return
    state = of_bytes(recorded.image(int(power.what), power.number), recorded.subject)
    for member, value in (("left", state.told), ("digest", state.digest)):
        if line["image"][member] != value:
            note(f"image {member}", f"is {show(line['image'][member])}, but the recorded calls leave {show(value)}")
    for sentence in recorded.broken(int(power.what), state):
        if sentence not in line["violations"] and not line["doubts"]:
            note("violations", f"do not have {show(sentence)}, which follows from the recorded calls")


def _said(event: Event, number: int, which: tuple[str, str], counts: tuple[int, int]) -> str:
    (what, key), (wanted, has) = which, counts
    many = "" if wanted == 1 else "s"
    first = f"attempts recorded: {wanted}" if what == "attempts" else f"{key} had {wanted} {NOUNS[what]}{many}"
    return f"{first} when {event['process']} told so (call {number}, {event['path']}), and {has} when the power was back"


def view_of(state: State) -> dict[str, dict[str, int]]:
    """What matters of a state here."""
    return {
        "effects": dict(state.effects), "intended": dict.fromkeys(state.intended, 1), "receipts": dict(state.receipts),
        "history": dict(state.history), "attempts": {"": state.attempts},
    }  # fmt: skip


def _after(events: list[Event]) -> Disk:
    disk = Disk()
    for event in events:
        disk.play(event)
    return disk


def _hash(image: Image) -> str:
    whole = sha256()
    for path, content in sorted(image.items()):
        whole.update(f"{path} {'-' if content is None else len(content)}\n".encode())
        whole.update(content or b"")
    return str(whole.hexdigest())


def read(tree: Tree, subject: Subject, first: str, note: Note) -> Recorded | None:
    """The recording beside the runs without faults, of which `first` is the folder of one; None, with findings, where it
    cannot be worked with."""
    path = f"baseline/{subject.name}/"
    events, views = _lines(tree, path + CALLS, EVENT, note), _lines(tree, path + VIEWS, VIEW, note)
    if events is None or views is None:
        return None
    if len(views) != len(events) + 1:
        note(path + VIEWS, f"has {len(views)} views, expected one more than the {len(events)} calls")
        return None
    try:
        _hold(tree, subject, (events, views), (path, first), note)
    except (KeyError, IndexError) as error:
        note(path + CALLS, f"does something to a file that nobody made: {error}")
        return None
    return Recorded(subject, events, views)


def _lines(tree: Tree, path: str, shape: Shape, note: Note) -> list[dict[str, Any]] | None:
    """The objects that a file has in its lines; None, with findings, where it cannot be worked with."""
    if path not in tree.sizes:
        note(path, "is missing: cases follow from what was recorded")
        return None
    found = []
    for at, (data, complete) in enumerate(tree.lines(path), 1):
        try:
            each = parse(data)
        except Malformed as problem:
            note(path, f"line {at}: {problem}")
            return None
        if type(each) is not dict or not holds(each, shape, note, f"{path} line {at} "):
            return None
        if not complete or compact(each).encode("ascii") != data:
            note(path, f"line {at} is not in the one form that it has")
        found.append(each)
    return found


def _hold(
    tree: Tree, subject: Subject, told: tuple[list[Event], list[dict[str, Any]]], where: tuple[str, str], note: Note
) -> None:
    """All calls together give the journals of the run without faults, and the views are what stood in the files then."""
    events, views = told
    path, first = where
    disk = Disk()
    for call in range(len(events) + 1):
        if call:
            disk.play(events[call - 1])
        image = disk.image((THERE,) * len(disk.units))
        state = of_bytes(image, subject)
        for member in ("effects",) if subject.database else MEMBERS:
            given, kept = view_of(state)[member], views[call][member]
            # Whose effects they are is told by the database, too; how many there are is not.
            if sum(given.values()) != sum(kept.values()) or not (subject.database or given == kept):
                note(path + VIEWS, f"tells of {show(kept)} {member} after {call} calls, which give {show(given)}")
                return
    for name in (*SENDER, *RECEIVER):
        real = tree.read(first + name) if first + name in tree.sizes else None
        if real != image.get(name):
            note(path + CALLS, f"does not give {name} as {first} has it")

"""Edits that put something legal in place of what is there: the value of another record, the same value in another spelling.

A word that stands nowhere else gives itself away; these do not. For each leaf: values that the archive has elsewhere at the
same place (same journal, type and member; same member of a document), null where null occurs there; the equal number of another
type; white space around a text; another JSON spelling of a text. For each object, and each JSON line that a program printed:
its members in another order.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.audit.real import Whole
from tests.audit.sweep import Path_, leaves
from tests.tamper.draft import ESCAPED, FIRST, MANIFEST, PROCESSES, Draft, parsed
from tests.tamper.edits import COMMON, Edit, apart_of, pattern, putting, value_at
from tests.tamper.ground import Base

MOST_VALUES = 6
"""How many of the other values of a place are tried at most for one leaf."""
SUMS = ("sha256", "previous", "sequence")
"""Members of a line that a careful forger makes anew."""


class Pool:
    """The values that a whole archive has at each place."""

    def __init__(self, whole: Whole) -> None:
        self._values: dict[tuple[str, str], dict[str, Any]] = {}
        for path in sorted(whole.folder.rglob("*.json*")):
            name = path.relative_to(whole.folder).as_posix()
            for record, _ in _records(name, parsed(name, path.read_bytes())):
                for place in leaves(record):
                    value = _value(record, place)
                    self._values.setdefault(_sort(name, record, place), {}).setdefault(json.dumps(value), value)

    def others(self, path: str, record: Any, place: Path_) -> list[Any]:
        """What else stands at the place of a leaf anywhere."""
        mine = json.dumps(_value(record, place))
        return [value for text, value in self._values[_sort(path, record, place)].items() if text != mine]


def _records(path: str, value: Any) -> Iterator[tuple[Any, Path_]]:
    """What a file holds: a journal's lines, or the one document."""
    if path.endswith(".jsonl"):
        yield from ((line, (number,)) for number, line in enumerate(value))
    else:
        yield value, ()


def _value(root: Any, place: Path_) -> Any:
    for name in place:
        root = root[name]
    return root


def _sort(path: str, record: Any, place: Path_) -> tuple[str, str]:
    kind = f"{record['type']} " if path.endswith(".jsonl") else ""
    names = ["*" if place[:1] in (("files",), ("sources",)) and number == 1 else name for number, name in enumerate(place)]
    return Path(path).stem, kind + pattern(tuple(names))


def legal_edits(base: Base, pool: Pool, chance: random.Random, first: bool) -> Iterator[Edit]:
    """Every legal edit of a base; with `first`, also of what all parts have in common."""
    for path, data in base.files.items():
        if not path.endswith((".json", ".jsonl")):
            continue
        for record, before in _records(path, parsed(path, data)):
            for below in leaves(record):
                place = (*before, *below)
                common = path == MANIFEST and not first and any(name in COMMON for name in place[:2])
                if common or (before and below[0] in SUMS):
                    continue
                for way, apply in _of_leaf(path, place, _value(record, below), pool.others(path, record, below), chance):
                    yield Edit(f"legal: {way}", path, pattern(place), apply, base.names, apart_of(path, place))
            yield from _orders(base, path, record, before)


def _of_leaf(
    path: str, place: Path_, value: Any, others: list[Any], chance: random.Random
) -> Iterator[tuple[str, Callable[[Draft], None]]]:
    for new in chance.sample(others, min(MOST_VALUES, len(others))):
        yield "null, as elsewhere" if new is None else "a value of the same place", putting(path, place, new)
    if isinstance(value, bool):
        yield "an equal value of another type", putting(path, place, int(value))
    elif isinstance(value, int | float):
        twins = [int(value) if isinstance(value, float) and value.is_integer() else float(value)]
        twins += [-0.0] if value == 0 else []
        twins += [bool(value)] if value in (0, 1) else []
        for twin in twins:
            if json.dumps(twin) != json.dumps(value):
                yield "an equal value of another type", putting(path, place, twin)
    elif isinstance(value, str):
        for new in (f" {value}", f"{value} ", f"{value}\n", f"\t{value}"):
            yield "white space around a text", putting(path, place, new)
        if value:
            middle = len(value) // 2
            for new in (ESCAPED + value, value[:middle] + ESCAPED + value[middle:]):
                yield "another spelling of a text", putting(path, place, new)
        if path == PROCESSES and place[-1] == "stdout" and value.startswith("{"):
            for new in _printed(value):
                yield "a printed line in another form", putting(path, place, new)


def _printed(line: str) -> Iterator[str]:
    """A printed JSON line with its members in another order, with other blanks, with a number of another type."""
    members = list(json.loads(line).items())
    yield json.dumps(dict(members[::-1])) + "\n"
    yield json.dumps(dict([members[1], members[0], *members[2:]])) + "\n"
    yield json.dumps(dict([*members[1:], members[0]])) + "\n"
    yield json.dumps(dict(members), separators=(",", ":")) + "\n"
    yield json.dumps({name: float(each) if type(each) is int else each for name, each in members}) + "\n"
    twins = {name: int(each) if type(each) is bool else bool(each) if each in (0, 1) else each for name, each in members}
    yield json.dumps(twins) + "\n"


def _orders(base: Base, path: str, record: Any, before: Path_) -> Iterator[Edit]:
    """Each object with its last member first, and with two neighbours swapped."""
    for below in _objects(record):
        place = (*before, *below)
        names = list(_value(record, below))
        if len(names) < 2 or (path == MANIFEST and place[:1] == ("run",)):
            continue
        apart = apart_of(path, place) if place else ""
        sorted_ = len(before) == 1 and below[:1] == ("data",)
        for order in ([names[-1], *names[:-1]], [names[1], names[0], *names[2:]], [*names[:-2], names[-1], names[-2]]):
            yield Edit(
                "legal: members in another order", path, pattern(place) or ".", _ordering(path, place, order, sorted_),
                base.names, apart,
            )  # fmt: skip


def _objects(value: Any, place: Path_ = ()) -> Iterator[Path_]:
    if isinstance(value, dict):
        yield place
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in items:
        yield from _objects(each, (*place, name))


def _ordering(path: str, place: Path_, order: list[str], marked: bool) -> Callable[[Draft], None]:
    def apply(draft: Draft) -> None:
        value = value_at(draft, path, place)
        # The writer sorts what stands inside a record: marks before the names keep another order.
        marks = [FIRST * (len(order) - number) if marked else "" for number in range(len(order))]
        members = {mark + name: value[name] for mark, name in zip(marks, order, strict=True)}
        value.clear()
        value.update(members)

    return apply

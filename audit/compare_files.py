"""Two files of one name in two archives: where they differ, said so that a reader finds the place.

One function for each kind of file: JSON documents, journals, tables, and any other bytes. All report to `Sides`, which
knows the two archives, which scenarios both have, and how many differences are told in full before the rest is only counted.
"""

from __future__ import annotations

from audit.findings import Finding, plain, show
from audit.strict_json import Malformed, parse
from audit.unlike import DIFFER, FIRST_ONLY, ORDER, Item, unlike, words
from audit.volatile import DERIVED, VOLATILE, VOLATILE_HASHES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from audit.files import Tree
    from audit.unlike import Difference, Path

MOST_DIFFERENCES = 200
SUMS = ("sha256", "previous")


class Sides:
    """Two archives side by side, and the differences found so far."""

    def __init__(self, paths: tuple[str, str], trees: tuple[Tree, Tree], first: list[str], second: list[str]) -> None:
        self.paths = paths
        self.trees = trees
        held = set(first), set(second)
        self.common = {name: None for name in first if name in held[1]}
        self.alone = [name for name in first if name not in held[1]], [name for name in second if name not in held[0]]
        self.unequal: set[str] = set()
        self.findings: list[Finding] = []
        self.count = 0
        self.partial = bool(self.alone[0] or self.alone[1])
        self._alone = {*self.alone[0], *self.alone[1]}

    def name(self, side: int) -> str:
        """How sentences name a side."""
        return plain(self.paths[side])

    def add(self, subject: str, place: str, sentence: str) -> None:
        """Tell one difference; beyond the bound it is only counted."""
        self.count += 1
        if len(self.findings) < MOST_DIFFERENCES:
            self.findings.append(Finding(plain(subject), plain(place), sentence))

    def differ(self, subject: str, place: str, first: Any, second: Any) -> None:
        """Tell that a value differs."""
        self.add(subject, place, f"is {show(first)} in {self.name(0)}, but {show(second)} in {self.name(1)}")

    def split(self, path: str) -> tuple[str, str]:
        """A file's scenario and its path there; for a file of no scenario, the file and nothing."""
        parts = path.split("/", 3)
        if len(parts) == 4 and parts[0] == "scenarios":
            return f"{parts[1]}/{parts[2]}", parts[3]
        return path, ""

    def has_alone(self, scenario: str) -> bool:
        """Whether a scenario was already said to be on one side only."""
        return scenario in self._alone

    def of_one_side(self, path: str) -> bool:
        """Whether a file belongs to a scenario that was already said to be on one side only."""
        return self.has_alone(self.split(path)[0])


def documents(sides: Sides, name: str, first: dict[str, Any], second: dict[str, Any]) -> None:
    """Two JSON documents, all but their volatile members."""
    if name == "manifest.json":
        first, second = _listing_evidence(first), _listing_evidence(second)
        if sides.partial:
            first, second = _common(first, sides), _common(second, sides)
    for each in unlike(first, second, _passed_over(name, sides)):
        path = each.path
        item = next((part for part in path if isinstance(part, Item)), None)
        if item is not None and sides.has_alone(item.scenario):
            continue
        if path[:1] == ("files",) and len(path) == 2 and sides.of_one_side(str(path[1])):
            continue
        if path[:1] == ("files",) and len(path) == 2 and path[1] in sides.unequal and each.how != DIFFER:
            continue
        place = words(path)
        if item is not None:
            place = f"{name} {words(path[path.index(item) :]).strip().removeprefix('.')}".strip()
        _tell(sides, each, item.scenario if item is not None else name, place)


def _tell(sides: Sides, each: Difference, subject: str, place: str) -> None:
    if each.how == DIFFER:
        sides.differ(subject, place, each.first, each.second)
    elif each.how == ORDER:
        names = [[words((name,)) if not isinstance(name, Item) else f"{name.scenario} {name.name}".strip() for name in side]
                 for side in (each.first, each.second)]  # fmt: skip
        at = next(n for n, (one, other) in enumerate(zip(*names, strict=True)) if one != other)
        sides.add(
            subject,
            place,
            f"stands in another order: {show(names[0][at])} in {sides.name(0)} where {sides.name(1)} has {show(names[1][at])}",
        )
    else:
        side, value = (0, each.first) if each.how == FIRST_ONLY else (1, each.second)
        sides.add(subject, place, f"is only in {sides.name(side)}: {show(value)}")


def _listing_evidence(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest without its entries of derived files, which one archive may have and another not."""
    files = manifest.get("files")
    if type(files) is not dict:
        return manifest
    return {**manifest, "files": {name: value for name, value in files.items() if name not in DERIVED}}


def _common(manifest: dict[str, Any], sides: Sides) -> dict[str, Any]:
    """A manifest whose selection names the common scenarios only: the others were told already."""
    selection = manifest.get("selection")
    if type(selection) is not dict or type(selection.get("scenarios")) is not list:
        return manifest
    names = [name for name in selection["scenarios"] if name in sides.common]
    return {**manifest, "selection": {**selection, "scenarios": names}}


def _passed_over(name: str, sides: Sides) -> Callable[[Path], bool]:
    """Which values of a document may differ: the volatile ones, and those that follow from what was told."""
    members = VOLATILE.get(name, ())
    if name == "processes.json":
        return lambda path: len(path) == 3 and path[0] == "processes" and path[2] in members
    if name == "results.json":
        return lambda path: sides.partial and path == ("totals",)

    def of_manifest(path: Path) -> bool:
        if len(path) == 1:
            return path[0] in members
        return (
            path[0] == "files"
            and len(path) == 2
            and (path[1] in VOLATILE_HASHES or path[1] in sides.unequal or _derived(path[1]))
        )

    def _derived(file: Any) -> bool:
        return sides.partial and file in ("results.json", "tables.md")

    return of_manifest


def exports(sides: Sides, name: str, first: dict[str, Any], second: dict[str, Any]) -> None:
    """Two exports of tables, value by value."""
    scenario, place = sides.split(name)
    for each in unlike(first, second, lambda path: False):
        _tell(sides, each, scenario, f"{place} {words(each.path)}".strip())


def journals(sides: Sides, name: str, first: bytes, second: bytes) -> None:
    """Two journals, record by record: which record, by its line, type and id, and which member."""
    scenario, place = sides.split(name)
    one, other = _records(first), _records(second)
    if one is None or other is None:
        _lines(sides, scenario, place, first, second)
        return
    for side, mine, theirs in ((0, one, other), (1, other, one)):
        for key in mine:
            if key not in theirs:
                sides.add(scenario, _place(place, mine[key][0], key), f"the record is only in {sides.name(side)}")
    common = [key for key in one if key in other]
    moved = len(one) != len(common) or len(other) != len(common)
    ordered = [key for key in other if key in one]
    if common != ordered:
        at = next(n for n, key in enumerate(common) if key != ordered[n])
        sides.add(
            scenario,
            f"{place}:{one[common[at]][0]}",
            f"the order differs: {_key(common[at])} in {sides.name(0)} where {sides.name(1)} has {_key(ordered[at])}",
        )
        moved = True
    sums: tuple[Any, Any] = ("", "")
    for key in common:
        line, record = one[key]
        opposite = other[key][1]
        told = False
        for each in unlike(record, opposite, lambda path: len(path) == 1 and path[0] in SUMS):
            if each.path == ("sequence",) and moved:
                continue
            told = True
            _tell(sides, each, scenario, f"{_place(place, line, key)} {words(each.path)}".strip())
        if moved:
            continue
        if record.get("previous") != opposite.get("previous") and sums[0] == sums[1]:
            sides.differ(scenario, f"{_place(place, line, key)} previous", record.get("previous"), opposite.get("previous"))
        alike = not told and record.get("previous") == opposite.get("previous")
        sums = record.get("sha256"), opposite.get("sha256")
        if sums[0] != sums[1] and alike:
            sides.differ(scenario, f"{_place(place, line, key)} sha256", *sums)


def _records(data: bytes) -> dict[tuple[str, str], tuple[int, dict[str, Any]]] | None:
    """The records of a journal by type and id, each with its line; None where the lines are not such records."""
    lines = data.split(b"\n")
    if lines.pop():
        return None
    found: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}
    for number, line in enumerate(lines, 1):
        try:
            record = parse(line)
        except Malformed:
            return None
        kind, identifier = record.get("type"), record.get("id")
        if type(kind) is not str or type(identifier) is not str or (kind, identifier) in found:
            return None
        found[kind, identifier] = number, record
    return found


def _key(key: tuple[str, str]) -> str:
    return f"{plain(key[0])} {show(key[1])}"


def _place(place: str, line: int, key: tuple[str, str]) -> str:
    return f"{place}:{line} ({_key(key)})"


def _lines(sides: Sides, subject: str, place: str, first: bytes, second: bytes) -> None:
    """Two texts, line by line."""
    one, other = first.split(b"\n"), second.split(b"\n")
    for number in range(max(len(one), len(other))):
        pair = [lines[number].decode("latin-1") if number < len(lines) else None for lines in (one, other)]
        if pair[0] != pair[1]:
            sides.differ(subject, f"{place}:{number + 1}" if place else f"line {number + 1}", *pair)


def tables(sides: Sides, name: str, first: bytes, second: bytes) -> None:
    """Two `tables.md`: every line; with another selection, the rows of the common scenarios."""
    if not sides.partial:
        _lines(sides, name, "", first, second)
        return
    names = {scenario.partition("/")[2]: scenario for scenario in sides.common}
    rows = [{cell: line for line in data.split(b"\n") if (cell := _row(line)) in names} for data in (first, second)]
    for cell, scenario in names.items():
        pair = [side.get(cell, b"").decode("latin-1") for side in rows]
        if pair[0] != pair[1]:
            sides.differ(scenario, name, *pair)


def _row(line: bytes) -> str:
    """The scenario of a table's row; empty for any other line."""
    parts = line.decode("latin-1").split("`")
    return parts[1] if len(parts) > 2 and parts[0] == "| " else ""


def others(sides: Sides, name: str, first: bytes, second: bytes) -> None:
    """Any other bytes: the first that differs."""
    at = next(
        (n for n, (one, other) in enumerate(zip(first, second, strict=False)) if one != other), min(len(first), len(second))
    )
    subject, place = sides.split(name)
    sides.add(
        subject,
        place,
        f"differs from byte {at + 1} on ({len(first)} bytes in {sides.name(0)}, {len(second)} in {sides.name(1)})",
    )

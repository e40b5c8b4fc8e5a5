"""Every single edit of the files of one scenario: of each leaf, of each item and record, of each file.

An `Edit` names its kind (a row of the printed table), the file and the place, and changes a draft. `edits_of` finds them in
whatever the base holds; it knows only which fields are volatile, as `evidence/README.md` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.audit.real import Whole
from tests.audit.sweep import VOLATILE, Path_, leaves, other
from tests.tamper.draft import EXPORTS, MANIFEST, PROCESSES, TWICE, Draft, parsed
from tests.tamper.ground import Base

ENDINGS = (b"\0", b'{"sha256":"', b" ")
"""Bytes without a newline, put behind the end of a file."""
COMMON = ("sources", "catalogue")
"""Members of the manifest that are the same in every part: edited in the first one only."""


@dataclass(frozen=True)
class Edit:
    """One edit; `names` are the scenarios that the draft has to hold, `apart` says why it is counted apart: volatile."""

    kind: str
    file: str
    place: str
    apply: Callable[[Draft], None]
    names: tuple[str, ...]
    apart: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.file} {self.place}".rstrip()


def edits_of(base: Base, first: bool) -> Iterator[Edit]:
    """Every edit of a base of one scenario; with `first`, also of what all parts have in common."""
    for path, data in base.files.items():
        yield from _of_file(base, path)
        if path.endswith(".jsonl"):
            lines = parsed(path, data)
            for number in range(len(lines)):
                yield from _of_leaves(base, path, lines[number], (number,))
                yield from _of_item(base, path, (number,), len(lines), "record")
                yield from _moved(base, path, number)
        elif path.endswith(".json"):
            yield from _of_document(base, path, parsed(path, data), first)
    yield from _of_tables(base, base.files["tables.md"])
    yield from _extra(base)


def edits_of_documents(base: Base, tables: bytes) -> Iterator[Edit]:
    """Every edit of the documents of a whole archive, and of its tables as the study wrote them."""
    for path in (MANIFEST, PROCESSES, "results.json"):
        yield from _of_document(base, path, parsed(path, base.files[path]), True)
    yield from _of_tables(base, tables)


def _of_document(base: Base, path: str, document: Any, first: bool) -> Iterator[Edit]:
    def wanted(place: Path_) -> bool:
        return path != MANIFEST or first or not any(name in COMMON for name in place[:2])

    yield from (edit for edit in _of_leaves(base, path, document, (), wanted))
    for place, length in _arrays(document):
        for number in range(length if wanted(place) else 0):
            yield from _of_item(base, path, (*place, number), length, "item")


def _arrays(value: Any, place: Path_ = ()) -> Iterator[tuple[Path_, int]]:
    if isinstance(value, list):
        yield place, len(value)
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in items:
        yield from _arrays(each, (*place, name))


def pattern(place: Path_) -> str:
    """A place with the numbers left out."""
    return ".".join("*" if isinstance(name, int) else name for name in place)


def apart_of(path: str, place: Path_) -> str:
    inside = path == PROCESSES and len(place) > 2 and place[2] in VOLATILE
    return "volatile" if inside or (path == MANIFEST and place[0] == "run") else ""


def value_at(draft: Draft, path: str, place: Path_) -> Any:
    value = draft.open(path)
    for name in place:
        value = value[name]
    return value


def _of_leaves(
    base: Base, path: str, root: Any, before: Path_, wanted: Callable[[Path_], bool] = lambda place: True
) -> Iterator[Edit]:
    family = "journal" if path.endswith(".jsonl") else "export" if EXPORTS in path else Path(path).stem
    for below in leaves(root):
        place, value = (*before, *below), root
        if not wanted(place):
            continue
        for name in below:
            value = value[name]
        for way, apply in _ways(path, place, value):
            yield Edit(f"{family} leaf {way}", path, pattern(place), apply, base.names, apart_of(path, place))


def _ways(path: str, place: Path_, value: Any) -> Iterator[tuple[str, Callable[[Draft], None]]]:
    values = [other(value)]
    if isinstance(value, int | float) and not isinstance(value, bool):
        values.append(value - 1)
    for new in values:
        yield "changed", putting(path, place, new)
    if isinstance(value, int):
        yield "of another type", putting(path, place, int(value) if isinstance(value, bool) else float(value))
    if value is not None:
        yield "made null", putting(path, place, None)
    yield "removed", lambda draft: value_at(draft, path, place[:-1]).__delitem__(place[-1])
    if isinstance(place[-1], str):
        yield "duplicated", putting(path, (*place[:-1], place[-1] + TWICE), value)


def putting(path: str, place: Path_, value: Any) -> Callable[[Draft], None]:
    def apply(draft: Draft) -> None:
        value_at(draft, path, place[:-1])[place[-1]] = value
        draft.keeps_sequence = path.endswith(".jsonl") and place[1:] == ("sequence",)

    return apply


def _of_item(base: Base, path: str, place: Path_, length: int, noun: str) -> Iterator[Edit]:
    number = int(place[-1])

    def remove(draft: Draft) -> None:
        del value_at(draft, path, place[:-1])[number]

    def duplicate(draft: Draft) -> None:
        items = value_at(draft, path, place[:-1])
        items.insert(number, items[number])

    def swap(draft: Draft) -> None:
        items = value_at(draft, path, place[:-1])
        items[number], items[number + 1] = items[number + 1], items[number]

    apart = apart_of(path, place)
    for way, apply in (("removed", remove), ("duplicated", duplicate), ("swapped with its neighbour", swap)):
        if number + 1 < length or way[0] != "s":
            yield Edit(f"{noun} {way}", path, pattern(place), apply, base.names, apart)


def _partner(base: Base, path: str) -> tuple[str, str] | None:
    """Another scenario with a file of the same place that has other bytes."""
    name = base.names[0]
    whole: Whole = base.whole
    at = whole.names.index(name)
    for candidate in [*whole.names[at + 1 :], *whole.names[:at]]:
        twin = path.replace(f"scenarios/{name}/", f"scenarios/{candidate}/", 1)
        if (whole.folder / twin).is_file() and (whole.folder / twin).read_bytes() != base.files[path]:
            return candidate, twin
    return None


def _moved(base: Base, path: str, number: int) -> Iterator[Edit]:
    partner = _partner(base, path) if number == 0 else None
    if partner is not None:
        candidate, twin = partner
        names = tuple(name for name in base.whole.names if name in (*base.names, candidate))

        def move(draft: Draft) -> None:
            draft.open(twin).append(draft.open(path).pop(number))

        yield Edit("record moved to another scenario's journal", path, "*", move, names)
    for each in sorted(base.files):
        if each != path and each.endswith("/" + Path(path).name):

            def send(draft: Draft, other_path: str = each) -> None:
                draft.open(other_path).append(draft.open(path).pop(number))

            yield Edit("record moved to another journal of its kind", path, "*", send, base.names)


def _raw(path: str, new: bytes | None) -> Callable[[Draft], None]:
    return lambda draft: draft.raw.__setitem__(path, new)


def _of_file(base: Base, path: str) -> Iterator[Edit]:
    data = base.files[path]

    cut = data[: len(data) // 2]
    ways: list[tuple[str, bytes | None]] = [("removed", None), ("emptied", b""), ("cut at half", cut)]
    ways += [("cut at a line", b"".join(data.splitlines(keepends=True)[:-1])), ("doubled", data * 2)]
    ways += [("with bytes behind its end", data + ending) for ending in ENDINGS]
    ways += [("with CR LF", data.replace(b"\n", b"\r\n"))]
    partner = _partner(base, path) if path.startswith("scenarios/") else None
    if partner is not None:
        ways.append(("replaced by another scenario's", (base.whole.folder / partner[1]).read_bytes()))
    for way, new in ways:
        if new != data:
            yield Edit(f"file {way}", path, "", _raw(path, new), base.names)


def _extra(base: Base) -> Iterator[Edit]:
    folders = {str(Path(path).parent) for path in base.files}
    for folder in sorted(folders):
        for name in ("extra", "extra.jsonl", ".hidden", "copy/effects.jsonl"):
            path = str(Path(folder) / name)
            yield Edit("file added", path, "", _raw(path, b""), base.names)


def _of_tables(base: Base, tables: bytes) -> Iterator[Edit]:
    """Each word of `tables.md` another one, each line removed, duplicated, swapped with the next."""
    path = "tables.md"
    lines = tables.decode().split("\n")[:-1]

    def writing(new: list[str]) -> Callable[[Draft], None]:
        return lambda draft: draft.raw.__setitem__(path, "".join(line + "\n" for line in new).encode())

    for at, line in enumerate(lines):
        words = line.split(" ")
        for place, word in enumerate(words):
            digits = word.rstrip(";")
            new = str(int(digits) + 1) + word[len(digits) :] if digits.isdigit() else word + "x"
            changed = [*lines[:at], " ".join([*words[:place], new, *words[place + 1 :]]), *lines[at + 1 :]]
            what = "number" if digits.isdigit() else "word"
            yield Edit(f"tables {what} changed", path, what, writing(changed), base.names)
        kind = "row" if line.startswith("| `") else "sums" if " child processes" in line else "line"
        yield Edit("tables line removed", path, kind, writing([*lines[:at], *lines[at + 1 :]]), base.names)
        yield Edit("tables line duplicated", path, kind, writing([*lines[: at + 1], *lines[at:]]), base.names)

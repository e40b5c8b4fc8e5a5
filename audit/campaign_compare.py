"""Two campaigns side by side: equal in everything but what differs from run to run.

Every byte of plan.json and results.jsonl is compared, and of the kept journals, exports and lists of points. Volatile are the
manifest's `run`, the volatile members of processes, and the sizes of a relay's messages; files that have such are compared
without them.
"""

from __future__ import annotations

from itertools import zip_longest

from audit.compare_files import documents, others
from audit.files import Unreadable
from audit.findings import show
from audit.processes import PROCESS
from audit.shapes import holds
from audit.strict_json import Malformed, encode, parse
from audit.volatile import VOLATILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.compare_files import Sides

MANIFEST, RESULTS, PROCESSES, EXCHANGES = "manifest.json", "results.jsonl", "processes.json", "exchanges.jsonl"
SUMS = ("sha256", "previous")


def compare(sides: Sides, manifests: list[dict[str, Any]]) -> tuple[int, int]:
    """Tell every difference; how many cases and files were compared."""
    first, second = (tree.sizes for tree in sides.trees)
    cases = files = 0
    for name in sorted({*first, *second} - {MANIFEST}):
        if name not in first or name not in second:
            sides.add(name, "", f"the file is only in {sides.name(0 if name in first else 1)}")
            sides.unequal.add(name)
            continue
        files += 1
        if name == RESULTS:
            cases = _results(sides)
        elif (kind := name.rpartition("/")[2]) in (PROCESSES, EXCHANGES):
            _without_volatile(sides, name, _records if kind == PROCESSES else _exchanges)
        else:
            contents = [tree.read(name) or b"" for tree in sides.trees]
            if contents[0] != contents[1]:
                sides.unequal.add(name)
                others(sides, name, contents[0], contents[1])
    told = [{name: value for name, value in manifest.items() if name != "run"} for manifest in manifests]
    for manifest in told:
        if type(manifest.get("files")) is dict:
            manifest["files"] = {name: each for name, each in manifest["files"].items() if not _is_volatile(name)}
    documents(sides, MANIFEST, told[0], told[1])
    return cases, files


def _is_volatile(name: str) -> bool:
    return name.rpartition("/")[2] in (PROCESSES, EXCHANGES)


def _results(sides: Sides) -> int:
    """Compare the results line by line; how many there are."""
    count = 0
    try:
        for one, other in zip_longest(*[tree.lines(RESULTS) for tree in sides.trees]):
            count += 1
            if one == other:
                continue
            sides.unequal.add(RESULTS)
            if one is None or other is None:
                sides.add(RESULTS, f"line {count}", f"is the first that only {sides.name(0 if other is None else 1)} has")
                return count
            _line(sides, count, one[0], other[0])
    except Unreadable as error:
        sides.add(RESULTS, "", str(error))
    return count


def _line(sides: Sides, number: int, one: bytes, other: bytes) -> None:
    try:
        values = parse(one), parse(other)
    except Malformed:
        sides.add(RESULTS, f"line {number}", "differs, and is not a result on both sides")
        return
    case = str(values[0].get("case"))
    names = [name for name in {**values[0], **values[1]} if values[0].get(name) != values[1].get(name)]
    for name in names:
        sides.differ(case, f"line {number} {name}", values[0].get(name), values[1].get(name))
    if not names:
        sides.add(case, f"line {number}", "has its members in another order, or is written in another form")


def _without_volatile(sides: Sides, name: str, parts: Any) -> None:
    """Compare a file part by part, each without its volatile members."""
    try:
        told = [parts(sides, side, name) for side in (0, 1)]
    except (Malformed, Unreadable, KeyError, TypeError, AttributeError) as error:
        sides.add(name, "", f"cannot be compared: {show(str(error))}")
        return
    for number, (one, other) in enumerate(zip_longest(*told), 1):
        if one != other:
            sides.differ(name, f"record {number}", one, other)


def _records(sides: Sides, side: int, name: str) -> list[str]:
    """The process records; the volatile members are held to their kind."""
    document = parse((sides.trees[side].read(name) or b"").rstrip(b"\n"))
    found = []
    for number, record in enumerate(document["processes"], 1):
        _kinds(sides, f"{name} record {number}", record)
        found.append(encode({member: value for member, value in record.items() if member not in VOLATILE[PROCESSES]}))
    return [encode({**document, "processes": len(found)}), *found]


def _exchanges(sides: Sides, side: int, name: str) -> list[str]:
    """The records of a relay's journal without sums and sizes."""
    found = []
    for line, _ in sides.trees[side].lines(name):
        record = {member: value for member, value in parse(line).items() if member not in SUMS}
        record["data"] = {member: value for member, value in record["data"].items() if not member.endswith("_bytes")}
        found.append(encode(record))
    return found


def _kinds(sides: Sides, subject: str, record: dict[str, Any]) -> None:
    def note(place: str, sentence: str) -> None:
        sides.add(subject, place, sentence)

    holds(record, PROCESS, note, "")

"""`--compare OTHER`: whether two archives are equal, or which scenario, file and field differ.

Both are read, neither is judged: two archives may be equal and false, and the output says so. Compared is everything but the
volatile fields (`volatile.VOLATILE`); those must be there on both sides, and of their kind. A difference that only follows from
another one is not told again: the checksum of a record whose data differ, the `previous` of the record behind it, the hash of a
file that differs. Scenarios that one side alone has are a difference each, and the common ones are compared all the same.

Exit codes: 0 equal, 1 different, 2 bad usage or unreadable input, 3 one of the two has no manifest. A difference outweighs
unreadable input.
"""

from __future__ import annotations

import os

from audit import compare_volatile
from audit.archive import is_campaign, is_check
from audit.compare_files import Sides, documents, exports, journals, others, tables
from audit.files import Tree
from audit.findings import Findings, plain, show
from audit.inventory import CHECKOUT, is_checkout
from audit.strict_json import Malformed, encode, parse_laid_out
from audit.volatile import DERIVED, VOLATILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Document = tuple[dict[str, Any], bool]

MANIFEST, PROCESSES, RESULTS, TABLES = "manifest.json", "processes.json", "results.json", "tables.md"
EQUAL, DIFFERENT, UNKNOWN, UNREADABLE = "equal", "different", "UNKNOWN", "unreadable"
MARKS = (MANIFEST, "scenarios", "plan.json", "results.jsonl")
EXIT = {EQUAL: 0, DIFFERENT: 1, UNREADABLE: 2, UNKNOWN: 3}
USAGE = "usage: python audit/audit.py DIR --compare OTHER [--json]"
NOT_JUDGED = "neither of them was judged: two false archives can be equal; audit.py DIR says whether one passes"
UNFORESEEN = (ArithmeticError, AttributeError, LookupError, MemoryError, OSError, RuntimeError, TypeError, ValueError)


class Comparison:
    """What there is to say about two archives."""

    def __init__(self, first: str, second: str) -> None:
        self.paths = (first, second)
        self.problems: list[str] = []
        self.interrupted: list[str] = []
        self.sides: Sides | None = None
        self.scenarios = 0
        self.noun = "scenarios"
        self.files = 0

    @property
    def verdict(self) -> str:
        """`equal`, `different`, `UNKNOWN` or `unreadable`."""
        if self.sides is not None and self.sides.count:
            return DIFFERENT
        if self.problems:
            return UNREADABLE
        return UNKNOWN if self.interrupted else EQUAL


def command(arguments: list[str]) -> tuple[int, list[str], list[str]]:
    """Carry out `DIR --compare OTHER [--json]`: exit code, lines of output, lines of complaint."""
    words = [argument for argument in arguments if argument != "--json"]
    at = words.index("--compare")
    others_ = words[at + 1 : at + 2]
    folders = words[:at] + words[at + 2 :]
    strange = [word for word in (*folders, *others_) if word.startswith("-")]
    if strange or len(folders) != 1 or not others_:
        said = (
            f"--compare does not go with {show(strange[0])}"
            if strange
            else "--compare takes one DIR before or behind, and one OTHER"
        )
        return 2, [], [said, USAGE]
    found = compare(folders[0], others_[0])
    return EXIT[found.verdict], _as_json(found) if "--json" in arguments else _as_text(found), found.problems


def compare(first: str, second: str) -> Comparison:
    """Compare two archives; nothing that they hold raises."""
    found = Comparison(first, second)
    try:
        _compare(found)
    except UNFORESEEN as error:
        found.problems.append(f"the comparison could not be finished: {type(error).__name__}: {show(str(error))}")
    return found


def _compare(found: Comparison) -> None:
    for path in found.paths:
        problem = _unusable(path)
        if problem:
            found.problems.append(f"{plain(path)}: {problem}")
        elif not os.path.lexists(os.path.join(path, MANIFEST)):
            found.interrupted.append(path)
        elif is_check(path):
            found.problems.append(f"{plain(path)}: is a check; what it measured differs from run to run, so none is compared")
    if found.problems or found.interrupted:
        return
    trees = Tree(found.paths[0], Findings()), Tree(found.paths[1], Findings())
    manifests = [_document(tree, MANIFEST) for tree in trees]
    campaigns = [is_campaign(path) for path in found.paths]
    if None not in manifests and any(campaigns):
        found.sides, found.noun = Sides(found.paths, trees, [], []), "cases"
        if not all(campaigns):
            found.sides.add(MANIFEST, "format", "one of them is a campaign, and the other one is none")
        else:
            from audit import campaign_compare  # noqa: PLC0415 (not needed for studies)

            found.scenarios, found.files = campaign_compare.compare(found.sides, [each[0] for each in manifests if each])
            _laid_out(found.sides, MANIFEST, [each for each in manifests if each])
            compare_volatile.run(found.sides, [each[0] for each in manifests if each])
    elif None not in manifests:
        found.sides = Sides(found.paths, trees, *[_selected(each[0] if each else None) for each in manifests])
        _each_file(found, found.sides, [each for each in manifests if each is not None])
    for path, tree in zip(found.paths, trees, strict=True):
        found.problems.extend(f"{plain(path)}: {finding}" for finding in tree.findings.items)


def _unusable(path: str) -> str | None:
    try:
        if not os.path.lexists(path):
            return "there is no such directory"
        if not os.path.isdir(path):
            return "is not a directory"
        names = os.listdir(path)
        os.stat(os.path.join(path, "."))  # what can be listed and not entered seems to hold nothing
    except (OSError, ValueError) as error:
        return f"cannot be listed and entered: {getattr(error, 'strerror', None) or 'not a path'}"
    if is_checkout(path):
        return CHECKOUT
    if not {*MARKS, PROCESSES, RESULTS}.intersection(names):
        return "is no archive: it holds neither a manifest.json nor anything else of one"
    return None


def _document(tree: Tree, name: str) -> Document | None:
    """A JSON file's value, and whether it is laid out; None, and a problem, where it cannot be read."""
    data = tree.read(name) if name in tree.sizes else None
    try:
        return parse_laid_out(data) if data is not None else None
    except Malformed as problem:
        tree.findings.add(name, "", f"cannot be read: {problem}")
        return None


def _selected(manifest: dict[str, Any] | None) -> list[str]:
    """The scenarios that an archive says it holds."""
    selection = (manifest or {}).get("selection")
    names = selection.get("scenarios") if type(selection) is dict else None
    return names if type(names) is list and all(type(name) is str for name in names) else []


def _each_file(found: Comparison, sides: Sides, manifests: list[Document]) -> None:
    _alone(sides)
    found.scenarios = len(sides.common)
    first, second = (tree.sizes for tree in sides.trees)
    for name in sorted({*first, *second}):
        if sides.of_one_side(name) or name in DERIVED:
            continue
        if name not in first or name not in second:
            sides.add(*sides.split(name), f"the file is only in {sides.name(0 if name in first else 1)}")
            sides.unequal.add(name)
            continue
        found.files += 1
        if name in VOLATILE:
            continue
        contents = (sides.trees[0].read(name) or b"", sides.trees[1].read(name) or b"")
        if contents[0] == contents[1] or any(name not in tree.digests for tree in sides.trees):
            continue
        sides.unequal.add(name)
        told = sides.count
        if name == RESULTS:
            _documents(sides, name)
        elif name == TABLES:
            tables(sides, name, *contents)
        elif "/exports/" in name:
            _documents(sides, name)
        elif name.endswith(".jsonl"):
            journals(sides, name, *contents)
        if sides.count == told and not (name in (RESULTS, TABLES) and sides.partial):
            others(sides, name, *contents)
    if PROCESSES in first and PROCESSES in second:
        _documents(sides, PROCESSES)
    _laid_out(sides, MANIFEST, manifests)
    documents(sides, MANIFEST, manifests[0][0], manifests[1][0])
    compare_volatile.run(sides, [manifest for manifest, _ in manifests])


def _alone(sides: Sides) -> None:
    """Tell the scenarios of one side; those of a section that the other side lacks altogether are told at once."""
    common = {name.partition("/")[0] for name in sides.common}
    for side in (0, 1):
        sections: dict[str, list[str]] = {}
        for name in sides.alone[side]:
            sections.setdefault(name.partition("/")[0], []).append(name)
        opposite = {name.partition("/")[0] for name in sides.alone[1 - side]} | common
        for section, names in sections.items():
            if section not in opposite and len(names) > 1:
                sides.add(section, "", f"the section, {len(names)} scenarios, is only in {sides.name(side)}")
                continue
            for name in names:
                sides.add(name, "", f"the scenario is only in {sides.name(side)}")


def _documents(sides: Sides, name: str) -> None:
    both = [each for tree in sides.trees if (each := _document(tree, name)) is not None]
    if len(both) == len(sides.trees):
        _laid_out(sides, name, both)
        if "/exports/" in name:
            exports(sides, name, both[0][0], both[1][0])
            return
        documents(sides, name, both[0][0], both[1][0])
        if name == PROCESSES:
            compare_volatile.processes(sides, (both[0][0], both[1][0]))


def _laid_out(sides: Sides, name: str, both: list[Document]) -> None:
    """Values may be equal and their text another: documents have one layout."""
    for side, (_, good) in enumerate(both):
        if not good:
            sides.add(name, "", f"is not in the study's layout in {sides.name(side)}")


def _as_text(found: Comparison) -> list[str]:
    lines = [f"{UNKNOWN} {plain(path)}: manifest.json is missing: the run was interrupted" for path in found.interrupted]
    names = f"{plain(found.paths[0])} and {plain(found.paths[1])}"
    if found.sides is not None:
        lines.extend(str(finding) for finding in found.sides.findings)
        if found.sides.count > len(found.sides.findings):
            lines.append(f"and {found.sides.count - len(found.sides.findings)} differences more")
    if found.verdict == EQUAL:
        same = " (it is the same directory)" if _same(found.paths) else ""
        lines.append(f"equal: {names}{same}: {found.scenarios} {found.noun}, {found.files} files, all but the volatile fields")
        lines.append(NOT_JUDGED)
    elif found.verdict == DIFFERENT and found.sides is not None:
        lines.append(f"different: {names}: {found.sides.count} difference{'s' if found.sides.count > 1 else ''}")
    return lines


def _same(paths: tuple[str, str]) -> bool:
    try:
        return os.path.samefile(*paths)
    except (OSError, ValueError):
        return False


def _as_json(found: Comparison) -> list[str]:
    told = found.sides.findings if found.sides is not None else []
    count = found.sides.count if found.sides is not None else 0
    document = {
        "verdict": found.verdict,
        "judged": False,
        "archives": [plain(path) for path in found.paths],
        "same_directory": _same(found.paths),
        "interrupted": [plain(path) for path in found.interrupted],
        "problems": found.problems,
        found.noun: found.scenarios,
        "files": found.files,
        "volatile": {name: list(members) for name, members in VOLATILE.items()},
        "differences": [{"subject": each.subject, "place": each.place, "sentence": each.sentence} for each in told],
        "differences_left_out": count - len(told),
    }
    return [encode(document)]

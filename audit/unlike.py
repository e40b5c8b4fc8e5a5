"""Where two JSON values differ: every place, in the order of the first value.

`unlike` walks both values at once. Items of an array that name themselves (a process, a scenario) are held against the item
of that name; other items against the one at the same place. Values are equal only where their types are, so that 1, 1.0
and true differ. The walk keeps its own stack: no nesting of a hostile file can exhaust the interpreter's. Nothing here knows
which members may differ; the caller's `passed_over` says so.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Path = tuple["str | int | Item", ...]

DIFFER, FIRST_ONLY, SECOND_ONLY, ORDER = "differ", "first only", "second only", "order"


class Item:
    """An array's item that names itself: the scenario it belongs to, and its name within it."""

    __slots__ = ("name", "scenario")

    def __init__(self, scenario: str, name: str) -> None:
        self.scenario = scenario
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Item) and (self.scenario, self.name) == (other.scenario, other.name)

    def __hash__(self) -> int:
        return hash((self.scenario, self.name))


class Difference:
    """One place where two values differ: how (`DIFFER` ...), and the values that are there."""

    __slots__ = ("first", "how", "path", "second")

    def __init__(self, path: Path, how: str, first: Any = None, second: Any = None) -> None:
        self.path = path
        self.how = how
        self.first = first
        self.second = second


def unlike(first: Any, second: Any, passed_over: Callable[[Path], bool]) -> Iterator[Difference]:
    """Every difference of two values; what `passed_over` names may differ, if only both have it."""
    waiting: list[Difference] = [Difference((), DIFFER, first, second)]
    while waiting:
        here = waiting.pop()
        if here.how != DIFFER or type(here.first) is not type(here.second):
            yield here
        elif type(here.first) is dict:
            waiting.extend(reversed(_members(here, dict(here.first), dict(here.second), passed_over)))
        elif type(here.first) is list:
            named = _named(here.first), _named(here.second)
            if named[0] is not None and named[1] is not None:
                waiting.extend(reversed(_members(here, named[0], named[1], passed_over)))
            else:
                numbered = dict(enumerate(here.first)), dict(enumerate(here.second))
                waiting.extend(reversed(_members(here, *numbered, passed_over)))
        elif here.first != here.second:
            yield here


def _members(
    here: Difference, first: dict[Any, Any], second: dict[Any, Any], passed_over: Callable[[Path], bool]
) -> list[Difference]:
    """What is to be looked at below a place, and what only one side has."""
    found: list[Difference] = []
    for name, value in first.items():
        path = (*here.path, name)
        if name not in second:
            found.append(Difference(path, FIRST_ONLY, value))
        elif not passed_over(path):
            found.append(Difference(path, DIFFER, value, second[name]))
    found.extend(
        Difference((*here.path, name), SECOND_ONLY, None, value) for name, value in second.items() if name not in first
    )
    common = [name for name in first if name in second], [name for name in second if name in first]
    if common[0] != common[1]:
        found.append(Difference(here.path, ORDER, common[0], common[1]))
    return found


def _named(items: list[Any]) -> dict[Any, Any] | None:
    """The items by their names; None where one has none, or two have the same."""
    found = {_name(item): item for item in items}
    return None if None in found or len(found) != len(items) else found


def _name(item: Any) -> Item | None:
    """The name of an item: a process of a scenario, or a scenario."""
    if type(item) is not dict:
        return None
    scenario, process = item.get("scenario"), item.get("process")
    section, name = item.get("section"), item.get("name")
    if type(section) is str and type(name) is str:
        return Item(f"{section}/{name}", "")
    if type(scenario) is not str:
        return None
    if type(process) is str and type(item.get("incarnation")) is int:
        return Item(scenario, f"{process} (incarnation {item['incarnation']})")
    return None if "process" in item else Item(scenario, "")


def words(path: Path) -> str:
    """A place as it is written: `processes[3].exit_code`; a scenario that an item belongs to is left out."""
    text = ""
    for number, part in enumerate(path):
        if type(part) is int:
            text += f"[{part}]"
        elif isinstance(part, Item):
            text += f" {part.name}" if part.name else ""
        elif type(part) is str and part.replace("_", "").isalnum() and part.isascii():
            text += f".{part}" if number else part
        else:
            text += f"[{part!a}]"
    return text

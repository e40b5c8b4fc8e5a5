"""Which members a JSON object has and of which kind each is.

A shape maps member names, in their order, to kinds; a kind is a test and the words for what it asks. `holds` reports every
missing, surplus and ill-typed member, and members that stand in another order. Kinds look at one value alone; what values mean
together is the business of the checks.
"""

from __future__ import annotations

from audit.findings import show
from audit.hashing import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from audit.findings import Note

    Shape = dict[str, "Kind"]

LARGEST_INTEGER = 2**53
LONGEST_NUMBER = 15


class Kind:
    """A kind of value: a test, and the words for what it asks."""

    __slots__ = ("test", "words")

    def __init__(self, words: str, test: Callable[[Any], bool]) -> None:
        self.words = words
        self.test = test


def holds(value: Any, shape: Shape, note: Note, place: str) -> bool:
    """Whether the value is an object with exactly these members, each of its kind; every deviation is noted.

    An object in another order is one to be worked with, so that alone does not make it False.
    """
    if type(value) is not dict:
        note(place, f"is {show(value)}, expected an object")
        return False
    if list(value) == list(shape):
        for kind, item in zip(shape.values(), value.values(), strict=True):
            if not kind.test(item):
                break
        else:
            return True
    good = True
    dot = f"{place}." if place and not place.endswith(" ") else place
    for name, kind in shape.items():
        if name not in value:
            note(dot + name, "the member is missing")
            good = False
        elif not kind.test(value[name]):
            note(dot + name, f"is {show(value[name])}, expected {kind.words}")
            good = False
    if len(value) != len(shape):
        for name in value:
            if name not in shape:
                note(dot + show(name)[1:-1], "is a member that the contract does not have")
                good = False
    if good:
        in_order(value, list(shape), note, place)
    return good


def in_order(value: dict[str, Any], names: list[str], note: Note, place: str) -> None:
    """Hold the order of an object's members, which are these."""
    if list(value) != names and value.keys() == set(names):
        at, wanted = next((at, name) for at, name in enumerate(names) if list(value)[at] != name)
        note(place, f"has its members in another order: {show(list(value)[at])} stands where {show(wanted)} belongs")


def optional(kind: Kind) -> Kind:
    """The kind, or null."""
    return Kind(f"{kind.words} or null", lambda value: value is None or kind.test(value))


def one_of(*words: str) -> Kind:
    """One of some fixed strings."""
    return Kind("one of " + ", ".join(words), lambda value: type(value) is str and value in words)


def exactly(fixed: Any) -> Kind:
    """One fixed value."""
    return Kind(show(fixed), lambda value: type(value) is type(fixed) and value == fixed)


def list_of(kind: Kind) -> Kind:
    """An array whose items are all of one kind."""
    return Kind(f"an array, each item {kind.words}", lambda value: type(value) is list and all(map(kind.test, value)))


def map_of(kind: Kind) -> Kind:
    """An object with any member names, whose values are all of one kind."""
    return Kind(
        f"an object, each value {kind.words}",
        lambda value: type(value) is dict and all(map(kind.test, value.values())),
    )


def number_in(text: str | None) -> float | None:
    """The plain decimal number that a text is, as options and clock files have it; None where it is none."""
    plain = text is not None and len(text) <= LONGEST_NUMBER and text.isascii() and text.replace(".", "", 1).isdigit()
    return float(text) if text is not None and plain else None


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_INTEGER


def is_hex(text: str) -> bool:
    """Whether a text is nothing but lower-case hex digits, an even number of them."""
    try:
        return len(bytes.fromhex(text)) * 2 == len(text) and text == text.lower()  # `fromhex` passes over blanks
    except ValueError:
        return False


def _is_sha(value: Any) -> bool:
    return type(value) is str and len(value) == 64 and is_hex(value)


def _is_time(value: Any) -> bool:
    return type(value) is float and 0 <= value < LARGEST_INTEGER and str(value)[0] != "-"


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < LARGEST_INTEGER


def payload_bytes(value: Any) -> bytes | None:
    """The bytes that a payload keeps; None where it is not a payload in its one form."""
    if type(value) is not dict or len(value) != 2:
        return None
    content, encoding = value.get("content"), value.get("encoding")
    if type(content) is not str:
        return None
    try:
        if encoding == "utf-8":
            return content.encode()
        if encoding == "base64":
            return _from_base64(content)
    except ValueError:
        pass
    return None


def _from_base64(content: str) -> bytes | None:
    from binascii import a2b_base64, b2a_base64  # noqa: PLC0415 (needed by few archives, so not at every start)

    data = a2b_base64(content.encode("ascii"))
    if b2a_base64(data, newline=False).decode("ascii") != content:
        return None
    try:
        data.decode()
    except UnicodeDecodeError:
        return data
    return None


def payload_digest(value: Any) -> str:
    """The SHA-256 of a payload's bytes."""
    return digest(payload_bytes(value) or b"")


TEXT = Kind("a string", _is_text)
NAME = Kind("a string that is not empty", lambda value: type(value) is str and value != "")
FLAG = Kind("true or false", lambda value: type(value) is bool)
COUNT = Kind("an integer from 0", _is_count)
POSITIVE = Kind("an integer from 1", lambda value: _is_count(value) and value > 0)
NUMBER = Kind("a number from 0", _is_number)
TIME = Kind("a time in seconds, written with a fraction", _is_time)
SHA = Kind("64 lower-case hex digits", _is_sha)
PAYLOAD = Kind("a payload in its one form", lambda value: payload_bytes(value) is not None)
ROUTE = Kind("a path", lambda value: type(value) is str and value.startswith("/"))
STATUS = Kind("an HTTP status", lambda value: _is_count(value) and 100 <= value <= 599)
SUCCESS = Kind("a status of success, 200 to 299", lambda value: _is_count(value) and 200 <= value <= 299)
LIST = Kind("an array", lambda value: type(value) is list)
OBJECT = Kind("an object", lambda value: type(value) is dict)
ANYTHING = Kind("anything", lambda value: True)

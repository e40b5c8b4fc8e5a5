"""Text from evidence as people may look at it: never invisible, never endless, never out of its place.

Evidence may hold anything: control characters, marks that turn the direction of writing, values of a hundred thousand
characters. `plain` shows what cannot be seen as an escape and cuts what is too long, with its length told. What it returns is
text, not markup: whoever puts it into a page escapes it for the page.
"""

import json
import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

MAX_TEXT = 400
MAX_LABEL = 46
MAX_LINE = 2000
_LONG_HASH = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")
_ZEROS = re.compile(r"\b0{28}([0-9a-f]{4})\b")  # an id of the study's own
_FIRST_STRONG_ISOLATE, _POP_ISOLATE = "\u2068", "\u2069"


def plain(value: object, limit: int = MAX_TEXT) -> str:
    """`value` as visible text of at most about `limit` characters; a cut is marked with the whole length."""
    text = value if isinstance(value, str) else str(value)
    cut = "" if len(text) <= limit else f"… [{len(text):,} characters]"
    text = text[:limit]
    if not text.isprintable():
        text = "".join(character if character.isprintable() else _escape(character) for character in text)
    return text + cut


def label(value: object, limit: int = MAX_LABEL) -> str:
    """`plain`, short enough for a picture: a cut is marked by an ellipsis alone."""
    text = plain(value, limit + 1)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _escape(character: str) -> str:
    number = ord(character)
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character)
    return named or (f"\\x{number:02x}" if number < 256 else f"\\u{{{number:x}}}")


def isolated(text: str) -> str:
    """`text` kept from turning its surroundings round, for places where no markup can do it (SVG)."""
    return f"{_FIRST_STRONG_ISOLATE}{text}{_POP_ISOLATE}" if turns(text) else text


def turns(text: str) -> bool:
    """Whether something in `text` is written from right to left. Marks that only turn are no text: `plain` shows them."""
    return not text.isascii() and any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in text)


def short_hashes(text: str) -> str:
    """`text` with every SHA-256 cut to its first twelve digits, and an id that begins with 28 zeros to its last four."""
    return _ZEROS.sub(r"…\1", _LONG_HASH.sub(r"\1…", text))


def shown_json(value: object) -> str:
    """A JSON value in one line, long texts in it cut with their length, and the line as well."""
    return short_hashes(plain(json.dumps(_bounded(value), ensure_ascii=False, separators=(",", ":")), MAX_LINE))


def _bounded(value: object, levels: int = 12) -> object:
    if isinstance(value, str):
        return plain(value, MAX_TEXT)
    if levels == 0:
        return "…"
    if isinstance(value, Mapping):
        return {plain(name): _bounded(each, levels - 1) for name, each in list(value.items())[:200]}
    if isinstance(value, list | tuple):
        return [_bounded(each, levels - 1) for each in value[:200]]
    return value


def ordinal(number: int) -> str:
    """`2nd` for 2."""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 effect`, `2 effects`."""
    return f"{number} {noun}" if number == 1 else f"{figure(number)} {plural or noun + 's'}"


def figure(number: int | None) -> str:
    """A number of the evidence; one that nobody counted up to is told by its order of magnitude."""
    if number is None:
        return "?"
    if abs(number) < 10**15:
        return str(number)
    return f"about {'-' if number < 0 else ''}10^{math.floor(number.bit_length() * math.log10(2))}"


def tallied(values: tuple[int, int, int, int], *, tables: bool = False) -> str:
    """The four counts in words; `tables` where the history is that of a dispatch outbox."""
    effects, receipts, history, arrivals = values
    record = "transition" if tables else "complete history record"
    return (
        f"{counted(effects, 'effect')}, {counted(receipts, 'receipt')}, {counted(history, record)}, "
        f"{counted(arrivals, 'arrival')}"
    )


def text_of(data: Mapping[str, Any], name: str) -> str:
    """A member that should be text; anything else is shown as what it is."""
    value = data.get(name)
    return value if isinstance(value, str) else "" if value is None else plain(value)


def number_of(data: Mapping[str, Any], name: str) -> int | None:
    """A member that should be an integer, or None."""
    value = data.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None

"""What an argument of the outbox has to be: each function gives the value back, or raises BadValue with the argument's name.

A caller's mistake is told before anything is read or written, and never as an error of Python's or of a driver's.
"""

import sys
import time
from typing import TypeGuard

from outbox.dispatch.errors import BadValue

MAX_INTEGER = 2**31 - 1  # what an INTEGER column holds everywhere
MAX_KEY_BYTES = 2000  # what an index takes everywhere; PostgreSQL's refuse a little more
MAX_ACTOR_CHARACTERS = 200
MAX_BATCH_ROWS = 10_000  # a statement can name so many ids on every database
_SHOWN_CHARACTERS = 500


def text(name: str, value: object) -> str:
    """A text that is not empty, and that every database and every command line takes."""
    if not isinstance(value, str):
        raise BadValue(f"{name} is {type(value).__name__}; expected text")
    if not value:
        raise BadValue(f"{name} is empty")
    if "\0" in value:
        raise BadValue(f"{name} {shown(value)} holds a NUL character, which no command line and no database takes")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise BadValue(f"{name} {shown(value)} is not text: {error.reason}") from error
    return value


def key(name: str, value: object) -> str:
    """A text that an index takes."""
    found = text(name, value)
    if len(found.encode()) > MAX_KEY_BYTES:
        raise BadValue(
            f"{name} is {len(found.encode())} bytes long; expected at most {MAX_KEY_BYTES}, to which an index is bound"
        )
    return found


def hexadecimal(name: str, value: object) -> str:
    """An id or a token: 32 hexadecimal digits."""
    found = text(name, value)
    if len(found) != 32 or set(found) - set("0123456789abcdef"):
        raise BadValue(f"{name} {shown(found)} is not 32 hexadecimal digits in small letters")
    return found


def identity(value: object) -> str:
    """An id to look for. Any text may be asked for, also one that no row can have."""
    if not isinstance(value, str):
        raise BadValue(f"dispatch_id is {type(value).__name__}; expected text")
    return value


def actor(value: object) -> str:
    """Who did it, for the history and the events."""
    found = text("actor", value)
    if len(found) > MAX_ACTOR_CHARACTERS:
        raise BadValue(f"actor is {len(found)} characters long; expected at most {MAX_ACTOR_CHARACTERS}")
    return found


def moment(value: object) -> float:
    """The argument `now`; the clock's time where it is None."""
    return time.time() if value is None else seconds("now", value, "seconds since the epoch")


def seconds(name: str, value: object, expected: str = "seconds") -> float:
    """Any finite number."""
    if not _is_finite(value):
        raise BadValue(f"{name} is {shown(value)}; expected {expected}")
    return float(value)


def age(name: str, value: object) -> float:
    """A finite number that is not negative."""
    if not _is_finite(value) or value < 0:
        raise BadValue(f"{name} is {shown(value)}; expected a number of seconds, not negative")
    return float(value)


def number(name: str, value: object, low: float, high: float) -> float:
    """A number from `low` to `high`."""
    if not _is_finite(value) or not low <= value <= high:
        raise BadValue(f"{name} is {shown(value)}; expected a number from {low:g} to {high:g}")
    return float(value)


def whole(name: str, value: object, low: int, high: int) -> int:
    """A whole number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BadValue(f"{name} is {shown(value)}; expected a whole number from {low} to {high}")
    return value


def positive(name: str, value: object) -> int:
    """A whole number from 1 to what a column holds."""
    return whole(name, value, 1, MAX_INTEGER)


def batch_rows(name: str, value: object) -> int:
    """How many rows one transaction may delete."""
    return whole(name, value, 1, MAX_BATCH_ROWS)


def flag(name: str, value: object) -> bool:
    """True or False, and nothing that merely counts as one of them."""
    if not isinstance(value, bool):
        raise BadValue(f"{name} is {shown(value)}; expected true or false")
    return value


def shown(value: object) -> str:
    """`value` for a message, whatever it is: Python refuses to print a whole number of more than 4,300 digits."""
    try:
        told = repr(value)
    except Exception:
        return f"a value of type {type(value).__name__}"
    return told if len(told) <= _SHOWN_CHARACTERS else f"{told[:_SHOWN_CHARACTERS]}… ({len(told)} characters)"


def _is_finite(value: object) -> TypeGuard[int | float]:
    # Compared, not converted: an int may be larger than any float.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max

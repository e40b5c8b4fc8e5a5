"""The texts that a dispatch outbox makes: JSON as it stores it, and the command lines of its programs.

Stored JSON keeps the order of its members and every character that is not ASCII, which is another form than that of journals
(`strict_json`). A command line is read as far as the audit knows it: an option that it does not know is `Unknown`.
"""

from __future__ import annotations

from audit.findings import show
from audit.shapes import is_hex, number_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ESCAPES = {code: f"\\u{code:04x}" for code in range(0x20)} | str.maketrans(
    {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f", "\b": "\\b"}
)


class Unknown(Exception):
    """The scenario does what the audit cannot follow; the message says what."""


def text_of(value: Any, comma: str = ",", colon: str = ":") -> str:
    """The JSON text of a value, members as they stand."""
    if value is None:
        return "null"
    kind = type(value)
    if kind is str:
        return f'"{value.translate(_ESCAPES)}"'
    if kind is bool:
        return "true" if value else "false"
    if kind is dict:
        members = [f"{text_of(name)}{colon}{text_of(each, comma, colon)}" for name, each in value.items()]
        return f"{{{comma.join(members)}}}"
    if kind is list:
        return f"[{comma.join([text_of(each, comma, colon) for each in value])}]"
    return repr(value)


def is_identity(text: str) -> bool:
    """Whether a text is what an id or a token has to be."""
    return len(text) == 32 and is_hex(text)


class Arguments:
    """A command line: the last value of each option, all values of those in `many`, the flags, and what stands beside."""

    __slots__ = ("_flags", "_values", "rest")

    def __init__(self, given: list[str], options: tuple[str, ...], flags: tuple[str, ...] = ()) -> None:
        self._values: dict[str, list[str]] = {}
        self._flags: set[str] = set()
        self.rest: list[str] = []
        waiting = iter(given)
        for each in waiting:
            if each in options:
                value = next(waiting, None)
                if value is None:
                    raise Unknown(f"the option {show(each)} has no value")
                self._values.setdefault(each, []).append(value)
            elif each in flags:
                self._flags.add(each)
            elif each.startswith("-"):
                raise Unknown(f"the option {show(each)} is one that the audit does not know")
            else:
                self.rest.append(each)

    def has(self, flag: str) -> bool:
        """Whether a flag was given."""
        return flag in self._flags

    def get(self, name: str) -> str | None:
        """The value of an option."""
        return self.all(name)[-1] if name in self._values else None

    def all(self, name: str) -> list[str]:
        """The values of an option that may be given again."""
        return self._values.get(name, [])

    def number(self, name: str) -> float | None:
        """The value of an option that is a number."""
        text = self.get(name)
        value = number_in(text)
        if text is not None and value is None:
            raise Unknown(f"{name} {show(text)} is no plain number")
        return value

    def moment(self, name: str) -> float:
        """The value of an option that must be there: without it a program has a clock that the archive does not tell."""
        value = self.number(name)
        if value is None:
            raise Unknown(f"without {name} the time is the machine's, which the archive does not tell")
        return value

"""The forms that schemas are made of: objects, arrays, words, numbers, patterns, and the few values that many records have."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

LARGEST = 2**53


def exact(members: dict[str, Schema], *, left_out: tuple[str, ...] = (), ways: tuple[dict[str, Schema], ...] = ()) -> Schema:
    """An object with these members and no others; those of `left_out` may be missing, `ways` say which values go together."""
    required = [name for name in members if name not in left_out]
    found: Schema = {"type": "object", "properties": members, "required": required, "additionalProperties": False}
    return {**found, "oneOf": [{"properties": way} for way in ways]} if ways else found


def array(items: Schema) -> Schema:
    """An array of one kind of items."""
    return {"type": "array", "items": items}


def named(values: Schema) -> Schema:
    """An object with any names that are not empty, and one kind of values."""
    return {"type": "object", "propertyNames": {"minLength": 1}, "additionalProperties": values}


def one_of(*words: str) -> Schema:
    """One of some words."""
    return {"type": "string", "enum": list(words)}


def or_null(schema: Schema) -> Schema:
    """The same, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def matching(pattern: str) -> Schema:
    """A string that a pattern describes as a whole. Some dialects let `$` stand before a last newline: there is none at all."""
    return {"type": "string", "pattern": f"^{pattern}$", "not": {"pattern": "\n"}}


def exactly(value: object) -> Schema:
    """One value."""
    return {"const": value}


def integer(least: int, largest: int = LARGEST) -> Schema:
    """An integer in a range."""
    return {"type": "integer", "minimum": least, "maximum": largest}


TEXT: Schema = {"type": "string"}
NAME: Schema = {"type": "string", "minLength": 1}
FLAG: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number", "minimum": 0, "exclusiveMaximum": LARGEST}
COUNT, POSITIVE, STATUS, SUCCESS = integer(0), integer(1), integer(100, 599), integer(200, 299)
SHA = matching("[0-9a-f]{64}")
BASE64 = matching("([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
MOMENT = matching("[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(Z|[+]00:00)")
PAYLOAD = exact(
    {"content": TEXT, "encoding": one_of("utf-8", "base64")},
    ways=({"encoding": exactly("utf-8")}, {"encoding": exactly("base64"), "content": BASE64}),
)

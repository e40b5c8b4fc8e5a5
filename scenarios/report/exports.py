"""Reads the exports of a scenario's dispatch outbox for those who look at it: each row of each table a line, whatever it holds.

A file that is none is not read here at all; it is shown as the text that it is. What a row says is taken as it comes.
"""

import json
from collections.abc import Mapping
from typing import Any

from outbox.dispatch.claim import ACTOR
from scenarios.engine.exports import FORMAT
from scenarios.model import Rows
from scenarios.report.facts import ExportFile, ExportFound, Line
from scenarios.report.words import number_of, plain, short_hashes, shown_json, text_of

MAX_ROWS = 20_000
ROW, TRANSITION, EVENT = "row", "transition", "event"
# What says nothing is not shown: a dispatch's row has a dozen columns that most dispatches do without, and most transitions are
# made by a scan.
_SAYS_NOTHING = (None, "[]", "{}", "")
_AS_EVER = (("entity_type", "dispatch"), ("source", "system"), ("actor", ACTOR))


def export(path: str, content: bytes) -> ExportFile | None:
    """The export in `content`; None where that is none."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        return None
    return ExportFile(
        path,
        _lines(value.get("dispatch_outbox"), ROW, "id"),
        _lines(value.get("status_transitions"), TRANSITION, "reason_code"),
        _lines(value.get("admin_events"), EVENT, "action"),
    )


def _lines(value: object, kind: str, identity: str) -> tuple[Line, ...]:
    rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
    return tuple(_line(number, kind, row, identity) for number, row in enumerate(rows[:MAX_ROWS], 1))


def _line(number: int, kind: str, row: Mapping[str, Any], identity: str) -> Line:
    told = {name: value for name, value in row.items() if value not in _SAYS_NOTHING and (name, value) not in _AS_EVER}
    name = text_of(row, identity)
    if name:
        told.pop(identity, None)
    return Line(number, kind, name, row, short_hashes(f"{plain(name)} {shown_json(told)}".strip()))


def found(told: Mapping[str, Any]) -> ExportFound:
    """What results.json says of one export."""
    return ExportFound(text_of(told, "name"), counted_rows(told.get("rows")))


def counted_rows(value: object) -> Mapping[str, int] | None:
    """Counts of rows, if that is what `value` is."""
    if not isinstance(value, dict):
        return None
    numbers = {name: number_of(value, name) for name in Rows.__dataclass_fields__}
    return None if None in numbers.values() else {name: number or 0 for name, number in numbers.items()}

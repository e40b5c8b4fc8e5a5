"""The tables of a scenario's dispatch outbox as one JSON file: what the database held, for whoever has no database.

Rows stand in the order of their keys and members in the order of the columns, with every value as it is stored: the payload is
the text that is sent. The numbers of transitions and events are left out; their order is what they say.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, select

from outbox.dispatch import StateDB
from outbox.dispatch.schema import admin_events, dispatch_outbox, status_transitions

EXPORTS = "exports"
FORMAT = "halt23.dispatch"
FORMAT_VERSION = 1
# Columns that number rows: databases differ in whether a number is used again after a rollback.
_NUMBERS = ("status_transitions.id", "admin_events.id")


async def export(url: str, path: Path) -> None:
    """Write the tables of the database at `url` to the new file `path`.

    Raises FileExistsError, other OSErrors where the machine refuses, and what opening and reading a StateDB raise.
    """
    async with StateDB(url) as db:
        tables = await db.read(_tables, "exporting the tables")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_tables(tables, path)


def write_tables(tables: Mapping[str, Any], path: Path) -> None:
    """Write tables as an export to the new file `path`. Raises FileExistsError, and other OSErrors."""
    text = json.dumps({"format": FORMAT, "format_version": FORMAT_VERSION, **tables}, ensure_ascii=True, indent=1)
    with path.open("x", encoding="ascii", newline="\n") as file:
        file.write(text + "\n")


def _tables(connection: Connection) -> dict[str, Any]:
    return {table.name: _rows(connection, table) for table in (dispatch_outbox, status_transitions, admin_events)}


def _rows(connection: Connection, table: Table) -> list[dict[str, Any]]:
    columns = [column for column in table.columns if str(column) not in _NUMBERS]
    (key,) = table.primary_key.columns
    rows = connection.execute(select(*columns).order_by(key))
    return [dict(row._mapping) for row in rows]

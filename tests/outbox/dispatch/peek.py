"""What tests do beside the library: read and write the tables by hand, without the library's own readers.

rows = await peek(db, "SELECT status, attempt FROM dispatch_outbox")
"""

from typing import Any

from sqlalchemy import Connection, text

from outbox.dispatch import StateDB


async def peek(db: StateDB, query: str, **parameters: Any) -> list[dict[str, Any]]:
    """The rows of a query, as dictionaries."""

    def work(connection: Connection) -> list[dict[str, Any]]:
        return [dict(row) for row in connection.execute(text(query), parameters).mappings()]

    return await db.read(work, "a test's query")


async def poke(db: StateDB, statement: str, **parameters: Any) -> int:
    """Change something by hand; how many rows it was."""
    return await db.write(lambda connection: connection.execute(text(statement), parameters).rowcount, "a test's change")


async def one(db: StateDB, dispatch_id: str) -> dict[str, Any]:
    """The whole row of a dispatch."""
    (row,) = await peek(db, "SELECT * FROM dispatch_outbox WHERE id = :id", id=dispatch_id)
    return row


async def moves(db: StateDB, dispatch_id: str) -> list[tuple[str | None, str, str]]:
    """The history of a dispatch: previous status, status, reason code; the oldest first."""
    rows = await peek(
        db,
        "SELECT previous_status, status, reason_code FROM status_transitions WHERE entity_id = :id ORDER BY id",
        id=dispatch_id,
    )
    return [(row["previous_status"], row["status"], row["reason_code"]) for row in rows]


async def everything(db: StateDB) -> tuple[list[dict[str, Any]], ...]:
    """All rows that an act could change: dispatches, their history, the admin events."""
    return (
        await peek(db, "SELECT * FROM dispatch_outbox ORDER BY id"),
        await peek(db, "SELECT * FROM status_transitions ORDER BY id"),
        await peek(db, "SELECT * FROM admin_events ORDER BY id"),
    )

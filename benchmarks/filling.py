"""Many rows at once, by two statements, in the outbox's own tables: a store after a long life, or before a long day.

Ids are spread evenly over all that an id can be, so that a row with an id of chance lands anywhere among them, as it would
where all ids are of chance. Each row has as many history records as the outbox would have written for it.
"""

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Connection, Insert, cast, func, insert, literal, null, select, text, union_all
from sqlalchemy.sql.selectable import CTE

from benchmarks.peers.jobs import KIND, jobs
from outbox.dispatch import StateDB
from outbox.dispatch.address import SQLITE
from outbox.dispatch.enqueue import destination
from outbox.dispatch.schema import dispatch_outbox, status_transitions

ID_SPACE = 2**32
LONG_AGO = 1_700_000_000.0
STATUSES = ("pending", "delivering", "delivered")


def _numbers(number: int) -> CTE:
    """0, 1, … below `number`, as the column `i`."""
    first = select(cast(literal(0), BigInteger).label("i")).cte("n", recursive=True)
    return first.union_all(select(first.c.i + 1).where(first.c.i + 1 < number))


def _identity(i: ColumnElement[Any], number: int, dialect: str) -> ColumnElement[str]:
    """32 hexadecimal digits, growing with `i`."""
    spread = i * (ID_SPACE // number)
    if dialect == SQLITE:
        return func.printf("%08x%024x", spread, i)
    return func.lpad(func.to_hex(spread), 8, "0").op("||")(func.lpad(func.to_hex(i), 24, "0"))


def _rows(number: int, url: str, last: int, dialect: str) -> Insert:
    n = _numbers(number)
    attempt = min(last, 1)
    columns: dict[str, ColumnElement[Any]] = {
        "id": _identity(n.c.i, number, dialect),
        "kind": literal(KIND),
        "deliver_to": literal(url),
        "destination": literal(destination(url)),
        "payload": literal(jobs(url, 1)[0].body, dispatch_outbox.c.payload.type),
        "status": literal(STATUSES[last]),
        "attempt": literal(attempt),
        "claim_number": literal(attempt),
        **dict.fromkeys(("next_attempt_at", "created_at", "updated_at"), literal(LONG_AGO)),
    }
    return insert(dispatch_outbox).from_select(list(columns), select(*columns.values()).select_from(n))


def _history(number: int, last: int, dialect: str) -> Insert:
    n = _numbers(number)
    moves = union_all(
        *(
            select(
                literal(each).label("step"),
                (literal(STATUSES[each - 1]) if each else null()).label("previous"),
                literal(STATUSES[each]).label("status"),
            )
            for each in range(last + 1)
        )
    ).subquery("moves")
    json = status_transitions.c.metadata.type
    columns: dict[str, ColumnElement[Any]] = {
        "entity_type": literal("dispatch"),
        "entity_id": _identity(n.c.i, number, dialect),
        "previous_status": moves.c.previous,
        "status": moves.c.status,
        "reason_code": literal("transport_ok"),
        "reason_summary": literal("the transport reported success"),
        "source": literal("system"),
        "actor": literal("bench"),
        "evidence_refs": literal("[]", json),
        "metadata": literal('{"attempt":1,"claim_number":1,"outcome":"happened"}', json),
        "created_at": literal(LONG_AGO),
    }
    chosen = select(*columns.values()).select_from(n).join(moves, literal(True)).order_by(n.c.i, moves.c.step)
    return insert(status_transitions).from_select(list(columns), chosen)


async def fill(db: StateDB, number: int, url: str, status: str = "delivered") -> None:
    """Write so many rows of that status, due since long, in one transaction."""
    last = STATUSES.index(status)

    def work(connection: Connection) -> None:
        if number:
            connection.execute(_rows(number, url, last, db.dialect))
            connection.execute(_history(number, last, db.dialect))
        if db.dialect != SQLITE:  # what its autovacuum would do in time
            connection.execute(text("ANALYZE"))

    await db.write(work, "filling")

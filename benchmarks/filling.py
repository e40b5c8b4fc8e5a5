"""Many rows at once, by SQL, in the outbox's own tables: what a store looks like after a long life, or before a long day.

Ids are spread evenly over all that an id can be, so that a row with an id of chance lands anywhere among them, as it would
where all ids are of chance. Each row has the history that the outbox would have written for it.
"""

from dataclasses import dataclass

from sqlalchemy import Connection

from benchmarks.peers.jobs import KIND, jobs
from outbox.dispatch import StateDB
from outbox.dispatch.address import SQLITE
from outbox.dispatch.enqueue import destination

ID_SPACE = 2**32
LONG_AGO = 1_700_000_000.0
STATUSES = ("pending", "delivering", "delivered")


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs: a source of the numbers 0, 1, … below `{number}` as `n(i)`, and the text of a row's id."""

    numbers: str
    identity: str


_DIALECTS = {
    SQLITE: Dialect(
        "RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {number})", "printf('%08x%024x', i * {step}, i)"
    ),
    "postgresql": Dialect(
        "n(i) AS (SELECT generate_series(0, {number} - 1)::bigint)", "lpad(to_hex(i * {step}), 8, '0') || lpad(to_hex(i), 24, '0')"
    ),
}


def _statements(dialect: Dialect, number: int, url: str, last: int) -> list[str]:
    """Rows of the outbox that have come to the status of that number, and their history."""
    numbers = dialect.numbers.format(number=number)
    identity = dialect.identity.format(step=ID_SPACE // number)
    moves = ", ".join(
        f"({each}, {repr(STATUSES[each - 1]) if each else 'NULL'}, '{STATUSES[each]}')" for each in range(last + 1)
    )
    attempt = min(last, 1)
    return [
        f"""
        WITH {numbers} INSERT INTO dispatch_outbox
            (id, kind, deliver_to, destination, payload, status, attempt, claim_number, next_attempt_at, created_at, updated_at)
        SELECT {identity}, '{KIND}', '{url}', '{destination(url)}', '{jobs(url, 1)[0].body}', '{STATUSES[last]}', {attempt},
            {attempt}, {LONG_AGO}, {LONG_AGO}, {LONG_AGO} FROM n
        """,
        f"""
        WITH {numbers}, moves(step, previous, status) AS (VALUES {moves}) INSERT INTO status_transitions
            (entity_type, entity_id, previous_status, status, reason_code, reason_summary, source, actor, evidence_refs, metadata,
            created_at)
        SELECT 'dispatch', {identity}, previous, status, 'transport_ok', 'the transport reported success', 'system', 'bench',
            '[]', '{{"attempt":1,"claim_number":1,"outcome":"happened"}}', {LONG_AGO} FROM n, moves ORDER BY i, step
        """,
    ]


async def fill(db: StateDB, number: int, url: str, status: str = "delivered") -> None:
    """Write so many rows of that status, due since long, in one transaction."""
    if not number:
        return
    statements = _statements(_DIALECTS[db.dialect], number, url, STATUSES.index(status))

    def work(connection: Connection) -> None:
        for statement in statements:
            connection.exec_driver_sql(statement.replace("%", "%%") if db.dialect != SQLITE else statement)

    await db.write(work, "filling")
    if db.dialect != SQLITE:
        await db.write(lambda connection: connection.exec_driver_sql("ANALYZE"), "analysing")

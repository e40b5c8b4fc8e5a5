"""The tables, as SQLAlchemy Core describes them; SQLite and PostgreSQL get the same ones.

`dispatch_outbox` is the table of ADR-0059 (D1) with what the record lacks: bounds that the database checks, the moment and the
number of the claim, the attempt that an error belongs to, and the lane. `claim_number` only ever grows, also over an operator's
forced retry, which sets `attempt` back to 0: it is what tells a claimant from an older one with the same attempt number. Times
are seconds since the epoch (FLOAT). JSON is kept as the text that was written, so that every attempt sends the same bytes.

`sessions` and `schedule_runs` belong to whoever embeds the outbox; here they are only what `dispatch_outbox` refers to.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    inspect,
    select,
    text,
)
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.types import UserDefinedType

from outbox.dispatch.edges import STATUSES
from outbox.errors import BadInput

SCHEMA_VERSION = 1
DEFAULT_MAX_ATTEMPTS = 8

metadata = MetaData()


class JsonText(UserDefinedType[str]):
    """A column of type JSON whose value is the text itself: the database may check it, nobody rewrites it."""

    cache_ok = True

    def get_col_spec(self, **_options: Any) -> str:
        return "JSON"


def _quoted(words: tuple[str, ...]) -> str:
    return ", ".join(f"'{word}'" for word in words)


# SQLite numbers rows by itself only where the type is exactly INTEGER.
_ROW_NUMBER = BigInteger().with_variant(Integer, "sqlite")

IS_ACTIVE = "status IN ('pending', 'delivering')"

schema_meta = Table(
    "schema_meta",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("created_at", Float, nullable=False),
)

schedule_runs = Table(
    "schedule_runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("created_at", Float, nullable=False),
)

dispatch_outbox = Table(
    "dispatch_outbox",
    metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("deliver_to", Text, nullable=False),
    Column("payload", JsonText, nullable=False),
    Column("dedup_key", Text),
    Column("status", Text, nullable=False, server_default="pending"),
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("max_attempts", Integer, nullable=False, server_default=str(DEFAULT_MAX_ATTEMPTS)),
    Column("next_attempt_at", Float, nullable=False),
    Column("ack_required", Integer, nullable=False, server_default="0"),
    Column("ack_token", Text),
    Column("session_id", Text, ForeignKey("sessions.id")),
    Column("schedule_run_id", Text, ForeignKey("schedule_runs.id")),
    Column("last_error", Text),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float),
    Column("updated_at", Float),
    # Below: not in the record; nullable or with a default, so that its rows are rows of this table.
    Column("claim_number", Integer, nullable=False, server_default="0"),
    Column("claimed_at", Float),
    Column("last_error_attempt", Integer),
    Column("lane", Text),
    Column("lane_position", Integer),
    Column("destination", Text),  # the origin of a URL; null for what goes by the template
    CheckConstraint(f"status IN ({_quoted(STATUSES)})", name="dispatch_status_known"),
    CheckConstraint("ack_required IN (0, 1)", name="dispatch_ack_required_is_a_bit"),
    CheckConstraint("attempt >= 0", name="dispatch_attempt_not_negative"),
    CheckConstraint("max_attempts > 0", name="dispatch_max_attempts_positive"),
    CheckConstraint("claim_number >= 0", name="dispatch_claim_number_not_negative"),
    CheckConstraint("(lane IS NULL) = (lane_position IS NULL)", name="dispatch_lane_has_position"),
    Index(
        "dispatch_outbox_dedup_key",
        "dedup_key",
        unique=True,
        sqlite_where=text("dedup_key IS NOT NULL"),
        postgresql_where=text("dedup_key IS NOT NULL"),
    ),
    Index(
        "dispatch_outbox_due",
        "status",
        "next_attempt_at",
        sqlite_where=text(IS_ACTIVE),
        postgresql_where=text(IS_ACTIVE),
    ),
    Index(  # so that the claim never walks the finished rows of a lane
        "dispatch_outbox_lane_open",
        "lane",
        "lane_position",
        sqlite_where=text(IS_ACTIVE),
        postgresql_where=text(IS_ACTIVE),
    ),
    Index(
        "dispatch_outbox_lane",
        "lane",
        "lane_position",
        unique=True,
        sqlite_where=text("lane IS NOT NULL"),
        postgresql_where=text("lane IS NOT NULL"),
    ),
)

status_transitions = Table(
    "status_transitions",
    metadata,
    Column("id", _ROW_NUMBER, primary_key=True, autoincrement=True),
    Column("entity_type", Text, nullable=False),
    Column("entity_id", Text, nullable=False),
    Column("previous_status", Text),
    Column("status", Text, nullable=False),
    Column("reason_code", Text, nullable=False),
    Column("reason_summary", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("evidence_refs", JsonText, nullable=False),
    Column("metadata", JsonText, nullable=False),
    Column("created_at", Float, nullable=False),
    Index("status_transitions_entity", "entity_type", "entity_id"),
)

admin_events = Table(
    "admin_events",
    metadata,
    Column("id", _ROW_NUMBER, primary_key=True, autoincrement=True),
    Column("action", Text, nullable=False),
    Column("entity_type", Text, nullable=False),
    Column("entity_id", Text),
    Column("actor", Text, nullable=False),
    Column("details", JsonText, nullable=False),
    Column("created_at", Float, nullable=False),
)


def prepare(connection: Connection, name: str, *, create: bool) -> None:
    """Create the tables if the database has none of them, or see that they are of this version.

    Raises BadInput for tables of another version, for tables that tell none, and, unless `create`, for a database without
    tables.
    """
    if connection.dialect.name == "postgresql":
        # Two processes that create the tables at once would fail on each other's; any fixed number serves.
        connection.execute(text("SELECT pg_advisory_xact_lock(2359)"))
        encoding = connection.execute(text("SHOW server_encoding")).scalar_one()
        if encoding not in ("UTF8", b"UTF8"):
            raise BadInput(f"{name} has the encoding {encoding!r}; create the database with ENCODING 'UTF8'")
    present = set(inspect(connection).get_table_names()) & set(metadata.tables)
    if schema_meta.name in present:
        _check_version(connection, name, present)
    elif present:
        raise BadInput(
            f"{name} has {', '.join(sorted(present))} but no schema version: it was not made by this program, or by a version "
            "before the first. Give another database, or move its rows by hand"
        )
    elif not create:
        raise BadInput(f"{name} has no dispatch outbox; a producer, or `run`, creates it")
    else:
        _create_tables(connection)
        connection.execute(schema_meta.insert(), {"key": "schema_version", "value": str(SCHEMA_VERSION)})


def _create_tables(connection: Connection) -> None:
    """Create all tables with their indexes, always in the same order: so two files that are made alike are laid out alike."""
    for table in metadata.sorted_tables:
        connection.execute(CreateTable(table))
        for index in sorted(table.indexes, key=lambda each: str(each.name)):
            connection.execute(CreateIndex(index))


def _check_version(connection: Connection, name: str, present: set[str]) -> None:
    found = connection.execute(select(schema_meta.c.value).where(schema_meta.c.key == "schema_version")).scalar_one_or_none()
    if found != str(SCHEMA_VERSION):
        older = found is not None and found.isascii() and found.isdigit() and int(found) < SCHEMA_VERSION
        raise BadInput(
            f"{name} has schema version {found or 'none'}, this program needs {SCHEMA_VERSION}: "
            + (
                "it is older; move it to the new version first"
                if older
                else "it is newer or unknown; use the program that made it"
            )
        )
    missing = set(metadata.tables) - present
    if missing:
        raise BadInput(f"{name} says schema version {found} but lacks {', '.join(sorted(missing))}: it is not whole")

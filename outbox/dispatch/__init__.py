"""The durable dispatch outbox: notifications that survive their producer, in a table of SQLite or PostgreSQL.

A producer enqueues, together with its own rows if it likes; a scheduler claims what is due, sends it by HTTP or by a command,
and records what came of it; operators look, retry and purge. The guarantee is at-least-once transport attempt: a death between
the send and its record means a second send, under the same key, so the destination should know the dispatch's id.

    async with StateDB("dispatch.db") as db:
        await enqueue_dispatch(db, kind="order_paid", deliver_to="http://127.0.0.1:8000/hooks", body={"order": 7})
        await deliver_due_dispatches(db)

docs/dispatch.md tells the whole; the contract is ADR-0059.
"""

from outbox.dispatch.admin import (
    ack_dispatch,
    get_dispatch,
    list_admin_events,
    list_dispatches,
    list_transitions,
    purge_dispatch,
    retry_dispatch,
)
from outbox.dispatch.backoff import backoff_seconds
from outbox.dispatch.claim import NOTIFY_TIMEOUT_SECONDS
from outbox.dispatch.delivery import DeliveryOptions, deliver_due_dispatches
from outbox.dispatch.enqueue import add_schedule_run, add_session, enqueue_dispatch
from outbox.dispatch.errors import BadValue, DamagedStore, IllegalEdge, NoSuchDispatch, StoreLocked, StoreLost
from outbox.dispatch.retention import RetentionPolicy, apply_retention, purge_dispatches
from outbox.dispatch.revival import enqueue_revival_heartbeat
from outbox.dispatch.schema import DEFAULT_MAX_ATTEMPTS
from outbox.dispatch.settings import DispatchSettings, load, resolve_notify_template
from outbox.dispatch.signal import SIGNAL_SCHEMA_VERSION, DispatchSignal, Signal
from outbox.dispatch.store import StateDB

__all__ = [
    "DEFAULT_MAX_ATTEMPTS",
    "NOTIFY_TIMEOUT_SECONDS",
    "SIGNAL_SCHEMA_VERSION",
    "BadValue",
    "DamagedStore",
    "DeliveryOptions",
    "DispatchSettings",
    "DispatchSignal",
    "IllegalEdge",
    "NoSuchDispatch",
    "RetentionPolicy",
    "Signal",
    "StateDB",
    "StoreLocked",
    "StoreLost",
    "ack_dispatch",
    "add_schedule_run",
    "add_session",
    "apply_retention",
    "backoff_seconds",
    "deliver_due_dispatches",
    "enqueue_dispatch",
    "enqueue_revival_heartbeat",
    "get_dispatch",
    "list_admin_events",
    "list_dispatches",
    "list_transitions",
    "load",
    "purge_dispatch",
    "purge_dispatches",
    "resolve_notify_template",
    "retry_dispatch",
]

"""What a careful forger makes of the exports of a dispatch outbox: counts by the contract's words, and cells in tables.

Where an export was edited into something that has no count, the forger leaves the numbers as they were.
"""

from __future__ import annotations

import json
from typing import Any

STATUSES = ("pending", "delivering", "delivered", "acked", "dead_letter", "expired")
HEAD = (
    "| Scenario | Receiver effects | Receipts | Transitions | Arrivals | Attempts | Rows at the end |",
    "|---|---|---|---|---|---|---|",
)
SUCCESSES = ("dispatch.delivered.transport_ok", "dispatch.dead_letter.ack_timeout")
FAILURES = {"dispatch.pending.retry_backoff", "dispatch.dead_letter.max_attempts"}


def rows_of(data: bytes) -> dict[str, int] | None:
    """The rows of an export, counted; None where they cannot be."""
    try:
        tables = json.loads(data)
        moves = tables["status_transitions"]
        found = dict.fromkeys(STATUSES, 0)
        for row in tables["dispatch_outbox"]:
            found[row["status"]] += 1
        found["attempts"] = sum(move["reason_code"] == "dispatch.delivering.attempt" for move in moves)
        found["events"] = len(tables["admin_events"])
        found["stale"] = sum(_stale(row, moves) for row in tables["dispatch_outbox"])
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None
    return found


def _stale(row: dict[str, Any], moves: list[dict[str, Any]]) -> bool:
    reasons = [move["reason_code"] for move in moves if move["entity_id"] == row["id"] and move["source"] == "system"]
    if row["last_error"] is not None and not FAILURES & set(reasons):
        return True
    if row["status"] != "pending" or not row["attempt"] or reasons[-1:] != ["dispatch.pending.retry_backoff"]:
        return False
    return bool(row["next_attempt_at"] < row["claimed_at"] + min(30 * 2 ** row["attempt"], 1800))


def receipts_and_history(data: bytes) -> tuple[int, int]:
    """What an export adds to the counts of its scenario; nothing where it cannot be read."""
    try:
        reasons = [move["reason_code"] for move in json.loads(data)["status_transitions"]]
    except (LookupError, TypeError, ValueError):
        return 0, 0
    return sum(reason in SUCCESSES for reason in reasons), len(reasons)


def cells(rows: dict[str, int]) -> tuple[str, str]:
    """The last two cells of a scenario's row in `tables.md`."""
    told = [f"{rows[status]} {status}" for status in STATUSES if rows[status]]
    if rows["events"]:
        told.append("1 event" if rows["events"] == 1 else f"{rows['events']} events")
    if rows["stale"]:
        told.append(f"{rows['stale']} stale")
    return str(rows["attempts"]), ", ".join(told) or "none"

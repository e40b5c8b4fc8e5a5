"""What a state tells that has no cause, stated anew: the audit's sentences are those that a result must have.

A request without a key belongs to nobody. A receipt's result must be one that an effect gave. A dispatch that has ended moves
only by an operator; it is attempted as often as it may be, once more in full for each act of an operator, and not after its
deadline; and effects come in the order of their lane.
"""

from __future__ import annotations

from audit.books_words import ATTEMPT, OPERATOR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Record = dict[str, Any]

FINISHED = ("delivered", "acked", "dead_letter", "expired")


def requests(arrivals: list[Record]) -> list[str]:
    """Requests that belong to no operation."""
    keyless = [each["id"] for each in arrivals if each["data"].get("key") is None]
    return [f"{name} came without a key, so it belongs to no operation" for name in keyless]


def receipts(found: list[Record], effects: list[Record]) -> list[str]:
    """Receipts of results that nobody gave."""
    given = [each["data"].get("result") for each in effects]
    told = [(each["id"], each["data"].get("result")) for each in found]
    return [
        f"the receipt of {name} tells of a result that no effect gave"
        for name, result in told
        if result is not None and result not in given
    ]


def moves(rows: list[Record], every: list[Record]) -> list[str]:
    """Transitions that nothing allows."""
    found = []
    for row in rows:
        own = [move for move in every if move["entity_id"] == row["id"]]
        for move in own:
            if move["source"] != OPERATOR and move["previous_status"] in FINISHED:
                found.append(f"{row['id']} had ended as {move['previous_status']} and became {move['status']}")
        attempts = [move["created_at"] for move in own if move["reason_code"] == ATTEMPT]
        most = row["max_attempts"] * (1 + sum(move["source"] == OPERATOR for move in own))
        if len(attempts) > most:
            found.append(f"{row['id']} was attempted {len(attempts)} times, at most {row['max_attempts']} are allowed")
        for number, began in enumerate(attempts, 1):
            if row["expires_at"] is not None and began >= row["expires_at"]:
                found.append(f"attempt {number} of {row['id']} began after its deadline")
    return found


def lanes(rows: list[Record], order: list[str]) -> list[str]:
    """Effects out of the order of their lane; `order` are the operations of the effects as they came."""
    laned = [row for row in rows if row["lane"] is not None and row["id"] in order]
    laned.sort(key=lambda row: (row["lane"], row["lane_position"]))
    return [
        f"{later['id']} overtook {earlier['id']} in the lane {earlier['lane']}"
        for at, earlier in enumerate(laned)
        for later in laned[at + 1 :]
        if earlier["lane"] == later["lane"] and order.index(later["id"]) < order.index(earlier["id"])
    ]

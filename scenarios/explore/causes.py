"""What has no cause: found by holding the records of sender and receiver against each other. Each finding is a sentence.

Counts alone do not see these: one effect for each operation, one receipt, and yet the second was applied before the first, or
an hour after its deadline, or the receipt tells of a result that nobody gave.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from outbox.dispatch.edges import ATTEMPT, FINISHED, OPERATOR

Record = Mapping[str, Any]


def receipts_of_nothing(receipts: Sequence[Record], effects: Sequence[Record]) -> Iterator[str]:
    """Receipts in a journal whose result is that of no effect. One without a result tells of none."""
    results = [each["data"].get("result") for each in effects]
    for each in receipts:
        told = each["data"].get("result")
        if told is not None and told not in results:
            yield f"the receipt of {each['id']} tells of a result that no effect gave"


def requests_of_nobody(arrivals: Sequence[Record]) -> Iterator[str]:
    """Requests without a key: they belong to no operation."""
    for each in arrivals:
        if each["data"].get("key") is None:
            yield f"{each['id']} came without a key, so it belongs to no operation"


def moves_without_cause(rows: Sequence[Record], moves: Sequence[Record]) -> Iterator[str]:
    """Transitions of a dispatch that had ended, attempts beyond the last, and attempts after the deadline."""
    for row in rows:
        own = [move for move in moves if move["entity_id"] == row["id"]]
        for move in own:
            if move["previous_status"] in FINISHED and move["source"] != OPERATOR:
                yield f"{row['id']} had ended as {move['previous_status']} and became {move['status']}"
        attempts = [move for move in own if move["reason_code"] == ATTEMPT]
        forced = sum(move["source"] == OPERATOR for move in own)
        if len(attempts) > row["max_attempts"] * (1 + forced):
            yield f"{row['id']} was attempted {len(attempts)} times, at most {row['max_attempts']} are allowed"
        for number, move in enumerate(attempts, 1):
            if row["expires_at"] is not None and move["created_at"] >= row["expires_at"]:
                yield f"attempt {number} of {row['id']} began after its deadline"


def overtaken(rows: Sequence[Record], order: Sequence[str]) -> Iterator[str]:
    """Effects out of the order of their lane; `order` are the keys of the effects as they came."""
    laned = sorted((row for row in rows if row["lane"] is not None and row["id"] in order), key=_place)
    for earlier, later in combinations(laned, 2):
        if earlier["lane"] == later["lane"] and order.index(later["id"]) < order.index(earlier["id"]):
            yield f"{later['id']} overtook {earlier['id']} in the lane {earlier['lane']}"


def _place(row: Record) -> tuple[str, int]:
    return row["lane"], row["lane_position"]

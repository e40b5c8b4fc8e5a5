"""What has no cause: found by holding the records of sender and receiver against each other. Each finding is a sentence.

Counts alone do not see these: one effect for each operation, one receipt, and yet the second was applied before the first, or
an hour after its deadline, or the receipt tells of a result that nobody gave, or half of the body was applied.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from outbox.dispatch.edges import ATTEMPT, DELIVERED, FINISHED, OPERATOR

Record = Mapping[str, Any]
# What a claim says of its attempt. It is all that tells how many there may be, once the row is purged.
_OF_SO_MANY = re.compile(r"attempt [0-9]{1,9} of ([0-9]{1,9})")
_NOBODYS = object()


def receipts_of_nothing(receipts: Sequence[Record], effects: Sequence[Record], order: Sequence[str]) -> Iterator[str]:
    """Receipts in a journal whose result is that of no effect of their operation; `order` are the operations of the effects.
    One without a result tells of none."""
    results = [(key, each["data"].get("result")) for key, each in zip(order, effects, strict=True)]
    for each in receipts:
        told = each["data"].get("result")
        if told is not None and (each["id"], told) not in results:
            yield f"the receipt of {each['id']} tells of a result that no effect of it gave"


def history_of_nothing(history: Sequence[Record], receipts: Sequence[Record], intentions: Sequence[Record]) -> Iterator[str]:
    """History records in a journal that ask something else than their intention, or answer something else than its receipt."""
    bodies = {each["id"]: each["data"].get("body") for each in intentions}
    results = [(each["id"], each["data"].get("result")) for each in receipts]
    for each in history:
        if each["id"] not in bodies:
            continue  # nobody promised it, which is told
        if each["data"].get("question", _NOBODYS) != bodies[each["id"]]:
            yield f"the history record of {each['id']} has another question than its intention"
        if (each["id"], each["data"].get("answer", _NOBODYS)) not in results:
            yield f"the history record of {each['id']} has another answer than its receipt"


def changed_bodies(effects: Sequence[Record], order: Sequence[str], bodies: Mapping[str, str]) -> Iterator[str]:
    """Effects of another body than their operation has; `bodies` are the fingerprints that are known, by operation."""
    for key, each in zip(order, effects, strict=True):
        if key in bodies and each["data"].get("fingerprint") != bodies[key]:
            yield f"effect {each['id']} has another body than {key}"


def requests_of_nobody(arrivals: Sequence[Record]) -> Iterator[str]:
    """Requests without a key: they belong to no operation."""
    for each in arrivals:
        if each["data"].get("key") is None:
            yield f"{each['id']} came without a key, so it belongs to no operation"


def changed_routes(arrivals: Sequence[Record], routes: Mapping[str, str], by_body: Mapping[str, str]) -> Iterator[str]:
    """Requests to another route than their operation has: that of their key, or else of their body (`by_body`)."""
    for each in arrivals:
        key = each["data"].get("key")
        operation = str(key) if key in routes else by_body.get(str(each["data"].get("fingerprint")), "")
        if operation in routes and each["data"].get("route") != routes[operation]:
            yield f"{each['id']} of {operation} came to another route than {routes[operation]}"


def moves_without_cause(rows: Sequence[Record], moves: Sequence[Record]) -> Iterator[str]:
    """Transitions of a dispatch that nothing allows, whether its row is still there or not."""
    kept = {row["id"]: row for row in rows}
    for identity in dict.fromkeys(move["entity_id"] for move in moves):
        row = kept.get(identity)
        own = [move for move in moves if move["entity_id"] == identity]
        for move in own:
            if move["previous_status"] in FINISHED and move["source"] != OPERATOR:
                yield f"{identity} had ended as {move['previous_status']} and became {move['status']}"
            if row is not None and row["ack_required"] and move["status"] == DELIVERED:
                yield f"{identity} waits for an acknowledgement and became {DELIVERED} without one"
        yield from _attempts(identity, row, own)


def _attempts(identity: str, row: Record | None, own: Sequence[Record]) -> Iterator[str]:
    """Attempts beyond the last, with another number than they have, and after the deadline. They begin anew where the row does,
    and where an operator acts."""
    lives: list[list[Record]] = [[]]
    for move in own:
        if move["source"] == OPERATOR or move["previous_status"] is None:
            lives.append([])
        elif move["reason_code"] == ATTEMPT:
            lives[-1].append(move)
    for attempts in lives:
        most = row["max_attempts"] if row is not None else _most_told(attempts)
        if most is not None and len(attempts) > most:
            yield f"{identity} was attempted {len(attempts)} times, at most {most} are allowed"
        for number, move in enumerate(attempts, 1):
            told = _metadata(move).get("attempt", number)
            if told != number:
                yield f"attempt {number} of {identity} is recorded as attempt {told}"
    for number, move in enumerate((each for life in lives for each in life), 1):
        if row is not None and row["expires_at"] is not None and move["created_at"] >= row["expires_at"]:
            yield f"attempt {number} of {identity} began after its deadline"


def _most_told(attempts: Sequence[Record]) -> int | None:
    """How many attempts there may be, as the first one says; None where it does not."""
    told = _OF_SO_MANY.fullmatch(str(attempts[0]["reason_summary"])) if attempts else None
    return None if told is None else int(told[1])


def _metadata(move: Record) -> Mapping[str, Any]:
    try:
        told = json.loads(move["metadata"])
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def overtaken(rows: Sequence[Record], order: Sequence[str]) -> Iterator[str]:
    """Effects out of the order of their lane; `order` are the keys of the effects as they came."""
    laned = sorted((row for row in rows if row["lane"] is not None and row["id"] in order), key=_place)
    for earlier, later in combinations(laned, 2):
        if earlier["lane"] == later["lane"] and order.index(later["id"]) < order.index(earlier["id"]):
            yield f"{later['id']} overtook {earlier['id']} in the lane {earlier['lane']}"


def _place(row: Record) -> tuple[str, int]:
    return row["lane"], row["lane_position"]

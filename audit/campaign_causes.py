"""What a state tells that has no cause, stated anew: the audit's sentences are those that a result must have.

A request without a key belongs to nobody, and one to another route was not sent so. An effect has the body of its operation, a
receipt the result of one of its effects, a history record the body of its intention and the result of its receipt. A dispatch
that has ended moves only by an operator; it is attempted as often as it may be, anew after each act of an operator, by the
numbers, and not after its deadline; one that waits for an acknowledgement is not delivered without; and effects come in
the order of their lane.
"""

from __future__ import annotations

from audit.books_words import ATTEMPT, DELIVERED, OPERATOR
from audit.strict_json import Malformed, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Record = dict[str, Any]
    Bodies = dict[str, str]

FINISHED = ("delivered", "acked", "dead_letter", "expired")


def requests(arrivals: list[Record], routes: dict[str, str], bodies: Bodies) -> list[str]:
    """Requests that belong to no operation, and then those that came to another route than theirs."""
    keyless = [each["id"] for each in arrivals if each["data"].get("key") is None]
    found = [f"{name} came without a key, so it belongs to no operation" for name in keyless]
    owners = {body: key for key, body in bodies.items()}
    for each in arrivals:
        key = each["data"].get("key")
        whose = key if type(key) is str and key in routes else owners.get(str(each["data"].get("fingerprint")))
        if whose is not None and whose in routes and each["data"].get("route") != routes[whose]:
            found.append(f"{each['id']} of {whose} came to another route than {routes[whose]}")
    return found


def effects(found: list[Record], order: list[str], bodies: Bodies) -> list[str]:
    """Effects of another body than that of their operation."""
    return [
        f"effect {each['id']} has another body than {key}"
        for key, each in zip(order, found, strict=True)
        if key in bodies and each["data"].get("fingerprint") != bodies[key]
    ]


def receipts(found: list[Record], given: list[Record], order: list[str]) -> list[str]:
    """Receipts of results that no effect of theirs gave."""
    results = [(key, each["data"].get("result")) for key, each in zip(order, given, strict=True)]
    told = [(each["id"], each["data"].get("result")) for each in found]
    return [
        f"the receipt of {each[0]} tells of a result that no effect of it gave"
        for each in told
        if each[1] is not None and each not in results
    ]


def history(found: list[Record], receipted: list[Record], intentions: list[Record]) -> list[str]:
    """History records with a question or an answer of their own."""
    asked = {each["id"]: each["data"].get("body") for each in intentions}
    told = []
    for each in found:
        name, data = each["id"], each["data"]
        if name not in asked:
            continue
        if "question" not in data or data["question"] != asked[name]:
            told.append(f"the history record of {name} has another question than its intention")
        answers = [record["data"].get("result") for record in receipted if record["id"] == name]
        if "answer" not in data or data["answer"] not in answers:
            told.append(f"the history record of {name} has another answer than its receipt")
    return told


def moves(rows: list[Record], every: list[Record]) -> list[str]:
    """Transitions that nothing allows, dispatch by dispatch, whether its row is still there or not."""
    found = []
    for name in dict.fromkeys([move["entity_id"] for move in every]):
        row = next((row for row in rows if row["id"] == name), None)
        own = [move for move in every if move["entity_id"] == name]
        for move in own:
            if move["source"] != OPERATOR and move["previous_status"] in FINISHED:
                found.append(f"{name} had ended as {move['previous_status']} and became {move['status']}")
            if row is not None and row["ack_required"] and move["status"] == DELIVERED:
                found.append(f"{name} waits for an acknowledgement and became delivered without one")
        found += _attempts(name, row, own)
    return found


def _attempts(name: str, row: Record | None, own: list[Record]) -> list[str]:
    found = []
    begun: list[float] = []
    for attempts in _lives(own):
        most = row["max_attempts"] if row is not None else _most(attempts)
        if most is not None and len(attempts) > most:
            found.append(f"{name} was attempted {len(attempts)} times, at most {most} are allowed")
        for number, move in enumerate(attempts, 1):
            told = _number(move, number)
            if told != number:
                found.append(f"attempt {number} of {name} is recorded as attempt {told}")
            begun.append(move["created_at"])
    for number, began in enumerate(begun, 1):
        if row is not None and row["expires_at"] is not None and began >= row["expires_at"]:
            found.append(f"attempt {number} of {name} began after its deadline")
    return found


def _lives(own: list[Record]) -> list[list[Record]]:
    """The attempts of each row of this name, before and after each act of an operator."""
    lives: list[list[Record]] = [[]]
    for move in own:
        if move["source"] == OPERATOR or move["previous_status"] is None:
            lives.append([])
        elif move["reason_code"] == ATTEMPT:
            lives[-1].append(move)
    return lives


def _most(attempts: list[Record]) -> int | None:
    """The M of `attempt N of M`, as the first of them says it: all there is where the row is gone."""
    words = attempts[0]["reason_summary"].split(" ") if attempts else []
    numbers = [each for each in words[1::2] if each.isascii() and each.isdecimal() and len(each) < 10]
    return int(numbers[1]) if words[::2] == ["attempt", "of"] and len(numbers) == 2 else None


def _number(move: Record, usual: int) -> Any:
    try:
        return parse(move["metadata"].encode("ascii")).get("attempt", usual)
    except (Malformed, UnicodeEncodeError):
        return usual


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

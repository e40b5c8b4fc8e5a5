"""What must be so in the books of a dispatch outbox, whatever was done to it, in the words of the trade.

These are held for each export by itself, before it is compared with what the audit's own books hold (`books`): every transition
is an edge of the graph and begins where the one before ended, attempts and claims rise by one, nothing pending carries stale
retry data, and both sides of the wire agree: no arrival without a claim, no recorded success without an answer.
"""

from __future__ import annotations

from audit.books_words import (
    ATTEMPT,
    EDGES,
    ENQUEUED,
    FAILURES,
    OPERATOR,
    PENDING,
    RETRY_BACKOFF,
    SUCCESSES,
    SYSTEM,
    backoff,
)
from audit.findings import show
from audit.hashing import digest
from audit.strict_json import Malformed, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.case import Case
    from audit.findings import Note
    from audit.journals import Record

    Row = dict[str, Any]
    Moves = list[tuple[str, Row]]

RECORDED, CARELESS = "recorded", "--careless"


def check(case: Case, tables: dict[str, Any], place: str, step: dict[str, Any], note: Note) -> None:
    """Hold one export of the scenario, made by this step."""
    moves: dict[str, Moves] = {}
    for number, move in enumerate(tables["status_transitions"]):
        moves.setdefault(move["entity_id"], []).append((f"{place} status_transitions[{number}]", move))
    rows = {row["id"]: (f"{place} dispatch_outbox[{number}]", row) for number, row in enumerate(tables["dispatch_outbox"])}
    purges: dict[str, int] = {}
    for event in tables["admin_events"]:
        purges[event["entity_id"]] = purges.get(event["entity_id"], 0) + 1
    numbered = not _with(case, "--books", RECORDED)
    for identity, history in moves.items():
        purged = purges.get(identity, 0)
        numbers = 0, 0
        for life in _lives(history, purged):
            _edges(life, note)
            numbers = _claims(life, numbered, note)
        if identity in rows:
            _agrees(*rows[identity], history[-1][1], numbers, note)
        elif not purged:
            note(history[0][0], f"is of the dispatch {show(identity)}, which has neither a row nor an event of its purge")
    for identity, (where, _row) in rows.items():
        if identity not in moves:
            note(where, f"the row {show(identity)} has no transition: its enqueue is in no book")
    _stale([(*rows[identity], [move for _, move in moves.get(identity, [])]) for identity in rows], step["rows"]["stale"], note)
    _successes(case, moves, note)
    if step is case.plan["steps"][-1]:
        _arrivals(case, moves, {identity: row for identity, (_, row) in rows.items() if identity not in purges}, note)


def _with(case: Case, *words: str) -> bool:
    """Whether a scan of the scenario was told this."""
    return any(all(word in launch.arguments for word in words) for launch in case.launches)


def _lives(history: Moves, purged: int) -> list[Moves]:
    """The history of a dispatch, divided where it was enqueued again after a purge; so often it can have been."""
    lives = [history[:1]]
    for place, move in history[1:]:
        if move["reason_code"] == ENQUEUED and len(lives) <= purged:
            lives.append([])
        lives[-1].append((place, move))
    return lives


def _edges(history: Moves, note: Note) -> None:
    """Every transition is an edge of the graph, and begins in the status in which the one before ended."""
    status = None
    for place, move in history:
        edge = move["previous_status"], move["status"], move["reason_code"], move["source"]
        if edge not in EDGES:
            way = f"from {edge[0] or 'nothing'} to {edge[1]} for the reason {edge[2]} as {edge[3]}"
            note(place, f"goes {way}: the graph has no such edge")
        if move["previous_status"] != status:
            words = f"the transition before it left the dispatch {status}" if status else "the dispatch has none before it"
            note(f"{place}.previous_status", f"is {show(move['previous_status'])}, but {words}")
        status = move["status"]


def _claims(history: Moves, numbered: bool, note: Note) -> tuple[int, int]:
    """Attempts rise by one, from 0 again after a forced retry; claims rise by one and never fall. The last of both."""
    attempt = claim = 0
    for place, move in history:
        told = metadata(move)
        if move["source"] == OPERATOR and move["reason_code"] == RETRY_BACKOFF:
            attempt = 0
        elif move["reason_code"] == ATTEMPT:
            attempt, claim = attempt + 1, claim + numbered
            if told.get("attempt") == attempt - 1 and attempt > 1:
                note(f"{place}.metadata", f"claims attempt {attempt - 1} a second time: no two claims have one attempt")
            elif told.get("attempt") != attempt:
                note(
                    f"{place}.metadata", f"claims attempt {show(told.get('attempt'))}, expected {attempt}: attempts rise by one"
                )
            if numbered and told.get("claim_number") != claim:
                words = f"has the claim number {show(told.get('claim_number'))}, expected {claim}: claims rise by one"
                note(f"{place}.metadata", words)
    return attempt, claim


def _agrees(place: str, row: Row, last: Row, numbers: tuple[int, int], note: Note) -> None:
    """A row is where its history left it."""
    wanted = {"status": last["status"], "attempt": numbers[0], "claim_number": numbers[1]}
    for member, value in wanted.items():
        if row[member] != value:
            note(f"{place}.{member}", f"is {show(row[member])}, but its transitions left it at {show(value)}")


def metadata(move: Row) -> Row:
    """What is kept with a transition; nothing where that is no object."""
    try:
        return parse(move["metadata"].encode("ascii"))
    except (UnicodeEncodeError, Malformed):
        return {}


def _stale(rows: list[tuple[str, Row, list[Row]]], planned: int, note: Note) -> None:
    """No row carries retry data that its transitions do not explain, unless the plan says how many do."""
    found: list[tuple[str, str]] = []
    for place, row, history in rows:
        told = [move["reason_code"] for move in history if move["source"] == SYSTEM]
        if row["last_error"] is not None and not set(told) & set(FAILURES):
            found.append((f"{place}.last_error", f"is {show(row['last_error'])}, though no transition records a failure"))
        elif row["status"] == PENDING and row["attempt"] and told[-1:] == [RETRY_BACKOFF]:
            since, delay = row["claimed_at"] or 0.0, backoff(row["attempt"])
            if row["next_attempt_at"] < since + delay:
                words = f"is {row['next_attempt_at']}, before the backoff of attempt {row['attempt']} is over"
                found.append((f"{place}.next_attempt_at", f"{words} ({since} and {delay:g} seconds)"))
    if len(found) > planned:
        for place, words in found:
            note(place, f"{words}: stale retry data")


def _successes(case: Case, moves: dict[str, Moves], note: Note) -> None:
    """A success that is in the books rests on an answer of success to that attempt, or on a request that was handed over."""
    careless = _with(case, CARELESS)
    answered: dict[tuple[str | None, str | None], bool] = {}
    for arrival, answer in _traffic(case):
        key = arrival.data["key"], arrival.data["attempt"]
        success = answer is not None and 200 <= answer.data["status"] < 300
        answered[key] = answered.get(key, False) or success or careless
    for identity, history in moves.items():
        for place, move in history:
            told = metadata(move)
            success = move["reason_code"] in SUCCESSES
            if success != (told.get("outcome", "happened" if success else "") == "happened"):
                note(f"{place}.metadata", f"has the outcome {show(told.get('outcome'))} under the reason {move['reason_code']}")
            if success and not answered.get((identity, str(told.get("attempt")))):
                words = f"records that attempt {show(told.get('attempt'))} happened"
                note(place, f"{words}, but no receiver answered it with a success: an outcome without a response")


def _traffic(case: Case) -> list[tuple[Record, Record | None]]:
    """Every arrival at a receiver, with its answer."""
    pairs: list[tuple[Record, Record | None]] = []
    for store in case.stores.values():
        answers = store["arrivals"].by_id("answer")
        pairs.extend((arrival, answers.get(arrival.id)) for arrival in store["arrivals"].of("arrival"))
    return pairs


def _arrivals(case: Case, moves: dict[str, Moves], rows: dict[str, Row], note: Note) -> None:
    """Whatever came to a receiver was claimed before, as the attempt that it says, with the bytes of the row.

    `rows` are those that were never purged: only they have had one payload.
    """
    claimed = {
        (identity, str(metadata(move).get("attempt")))
        for identity, history in moves.items()
        for _, move in history
        if move["reason_code"] == ATTEMPT
    }
    came = {}
    for arrival, _ in _traffic(case):
        data = arrival.data
        identity, attempt = data["key"], data["attempt"]
        came[arrival.id] = known = (identity, attempt) in claimed
        if identity not in moves:
            note(f"{arrival.place} data.key", f"is {show(identity)}, which is no dispatch that the books know")
        elif not known:
            note(f"{arrival.place} data.attempt", f"is {show(attempt)}, an attempt of {show(identity)} that nobody claimed")
        row = rows.get(identity)
        if row is None or data["fingerprint"] is None:
            continue
        wanted = digest(row["payload"].encode("utf-8", "surrogatepass"))
        if data["fingerprint"] != wanted:
            words = f"is {data['fingerprint']}, but the payload of the row {show(identity)} has {wanted}"
            note(f"{arrival.place} data.fingerprint", words)
    for store in case.stores.values():
        for effect in store["effects"].records:
            if not came.get(effect.data["arrival"]):
                note(effect.place, f"the effect {show(effect.id)} has no claim in the books: nothing was to be sent then")

"""The dispatcher's side: intentions, attempts, outcomes, receipts and history, each against the one it rests on.

Attempts of an intention are numbered without a gap; a dispatcher is serial, so an outcome follows its attempt directly; a
receipt belongs to an attempt without an outcome, unless a status query settled it later, and a history record repeats its
intention's body and its receipt's result. What the receiver has to say about it is held in `wire`; who wrote what, with
which key and bytes, and what may be left open, in `dispatch`.
"""

from __future__ import annotations

from audit.case import DISPATCHER, PRODUCER, option
from audit.findings import show
from audit.records import DEFINITE
from audit.shapes import payload_bytes, payload_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.case import Case, Store
    from audit.findings import Note
    from audit.journals import Record

STATUS_OF = {"conflict": (409, 422), "in_flight": (409,), "unavailable": (429, 503, 507)}
NO_STATUS = (
    "connection_refused", "connect_timeout", "unreachable", "connection_reset", "connection_closed", "malformed_response",
)  # fmt: skip


def check(case: Case) -> None:
    """Hold every outbox of the scenario."""
    for store in case.stores.values():
        if store.ran(PRODUCER) or store.ran(DISPATCHER):
            _intentions(store, case.note)
            _attempts(store, case.note)
            _receipts(store, case.note)
            _history(store, case.note)


def _differs(note: Note, record: Record, member: str, wanted: object, because: str) -> None:
    if record.data[member] != wanted:
        note(f"{record.place} data.{member}", f"is {show(record.data[member])}, but {because} {show(wanted)}")


def _intentions(store: Store, note: Note) -> None:
    """An intention is what a producer was told to write, under its key."""
    ordered = {option(process, "--key"): process for process in store.ran(PRODUCER)}
    records = store["intentions"].by_id("intention")
    for record in records.values():
        _differs(note, record, "key", record.id, "the intention's id is")
        _differs(note, record, "fingerprint", payload_digest(record.data["body"]), "the body has the fingerprint")
        process = ordered.get(record.id)
        if process is None:
            note(record.place, f"no producer was told to write the intention {show(record.id)}")
            continue
        _differs(note, record, "route", option(process, "--route"), "the producer's command has")
        body = option(process, "--body")
        if body is not None and payload_bytes(record.data["body"]) != body.encode("utf-8", "surrogatepass"):
            note(f"{record.place} data.body", f"is not the body of the producer's command, {show(body)}")
    for key, process in ordered.items():
        if key not in records and process["exit_code"] == 0:
            note(store["intentions"].path, f"the intention {show(key)} is missing, though its producer ended with 0")


def _attempts(store: Store, note: Note) -> None:
    """Attempts are numbered per intention, and are closed, or asked about, before the next begins."""
    intentions = store["intentions"].by_id("intention")
    reached: dict[str, int] = {}
    before: Record | None = None
    for record in store["attempts"].records:
        name, number = record.data["intention"], record.data["number"]
        wanted = f"{name}#{number}"
        if record.id != wanted and not (record.type == "inquiry" and record.id.startswith(f"{wanted}?")):
            note(f"{record.place} id", f"is {show(record.id)}, expected {show(wanted)}")
        intention = intentions.get(name)
        if intention is None:
            note(f"{record.place} data.intention", f"there is no intention {show(name)}")
        if record.type == "outcome":
            if before is None or before.type != "attempt" or before.id != record.id:
                note(record.place, f"the outcome of {show(record.id)} does not follow its attempt directly")
            hold_outcome(record, note)
        elif record.type == "attempt":
            _differs(note, record, "number", reached.get(name, 0) + 1, "the next attempt of this intention is number")
            reached[name] = number
        elif number > reached.get(name, 0):
            note(record.place, f"asks about attempt {number}, but the latest one of this intention is {reached.get(name, 0)}")
        before = record


def hold_outcome(record: Record, note: Note) -> None:
    """Reason, definiteness and status of an outcome agree."""
    reason, status = record.data["reason"], record.data["status"]
    wanted = "did_not_happen" if reason in DEFINITE else "may_have_happened"
    _differs(note, record, "outcome", wanted, f"{reason} means")
    if reason in NO_STATUS:
        good = status is None
    elif reason in STATUS_OF:
        good = status in STATUS_OF[reason]
    elif reason == "refused":
        good = status is not None and 400 <= status <= 499 and status not in (409, 422, 429)
    elif reason == "redirect":
        good = status is not None and 300 <= status <= 399
    elif reason == "server_error":
        good = status is not None and status >= 500 and status not in (503, 507)
    else:
        good = True
    if not good:
        note(f"{record.place} data.status", f"is {show(status)}, which does not go with the reason {reason}")


def _receipts(store: Store, note: Note) -> None:
    """A receipt belongs to an intention and to an attempt of it that has no outcome."""
    intentions = store["intentions"].by_id("intention")
    attempts = store["attempts"].by_id("attempt")
    outcomes = store["attempts"].by_id("outcome")
    for record in store["receipts"].records:
        _differs(note, record, "intention", record.id, "the receipt's id is")
        if record.id not in intentions:
            note(f"{record.place} id", f"there is no intention {show(record.id)}")
        name = f"{record.id}#{record.data['attempt']}"
        attempt = attempts.get(name)
        if attempt is None:
            note(f"{record.place} data.attempt", f"there is no attempt {show(name)}")
            continue
        _differs(note, record, "key", attempt.data["key"], "the attempt has")
        _differs(note, record, "fingerprint", attempt.data["fingerprint"], "the attempt has")
        hold_via(record, note)
        if name in outcomes and record.data["via"] != "status_query":
            note(record.place, f"the attempt {show(name)} has a receipt and the outcome of {outcomes[name].place}")
        if f"{record.id}#{record.data['attempt'] + 1}" in attempts:
            note(record.place, f"the attempt {show(name)} has a receipt, and yet another attempt follows it")


def hold_via(record: Record, note: Note) -> None:
    """What came back with a receipt goes with the way on which it came."""
    via = record.data["via"]
    for member in ("status", "result"):
        if (record.data[member] is None) != (via == "mark"):
            wanted = "null" if via == "mark" else "not null"
            note(f"{record.place} data.{member}", f"is {show(record.data[member])}, expected {wanted} for a receipt via {via}")
    if record.data["replayed"] and via != "response":
        note(f"{record.place} data.replayed", f"is True, but a receipt via {via} saw no response")


def _history(store: Store, note: Note) -> None:
    """A history record is its intention's body and its receipt's result."""
    intentions = store["intentions"].by_id("intention")
    receipts = store["receipts"].by_id("receipt")
    for record in store["history"].records:
        if record.id not in intentions:
            note(f"{record.place} id", f"there is no intention {show(record.id)}")
        else:
            _differs(note, record, "question", intentions[record.id].data["body"], "the intention's body is")
        if record.id not in receipts:
            note(f"{record.place} id", f"there is no receipt for the history record {show(record.id)}")
        else:
            _differs(note, record, "answer", receipts[record.id].data["result"], "the receipt's result is")

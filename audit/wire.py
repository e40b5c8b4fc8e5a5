"""Both sides of the wire: every arrival to the request that it was, every outcome and receipt to its answer.

An arrival with a `Halt23-Attempt` header belongs to the attempt with its key and number, one without to a bare
client's request; at most one arrival each, because one attempt is one request. What the sender recorded must be what
the receiver said: a receipt repeats an answer, a refused connection has no arrival. An arrival that belongs to
nothing is a phantom. Whether a request that was never answered may exist is held in `passes` and `ledger`.
"""

from __future__ import annotations

from audit.case import CLIENT, died, option
from audit.findings import show
from audit.shapes import payload_bytes, payload_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.case import Case, Store
    from audit.findings import Note
    from audit.journals import Record

NEVER_SENT = ("connection_refused", "connect_timeout", "unreachable")
ANSWERED = {"conflict": "conflict", "refused": "refused", "unavailable": "failed"}
"""The reasons of outcomes that rest on an answer, and the outcome that the answer must have."""


class Request:
    """One request that a sender began, and what became of it."""

    __slots__ = ("answer", "arrival", "attempt", "closed", "in_hand", "key", "receipt", "record", "sent", "step", "words")

    def __init__(self, record: Record, key: str, attempt: str | None, sent: dict[str, Any]) -> None:
        self.record = record
        self.key = key
        self.attempt = attempt
        self.sent = sent
        self.words = f"attempt {show(record.id)}" if attempt else f"request of the client {show(record.id)}"
        self.receipt: Record | None = None
        self.closed: Record | None = None
        self.arrival: Record | None = None
        self.answer: Record | None = None
        self.in_hand = False
        self.step = 0

    def heard(self) -> bool:
        """Whether the sender had the receiver's answer before it went on, or died of a fault behind that point."""
        answered = self.closed is not None and self.closed.data["status"] is not None
        return self.in_hand or answered or self.receipt is not None


def requests(case: Case) -> list[Request]:
    """Every request that an outbox or a client began, with the arrival and the answer that belong to it."""
    begun: list[Request] = []
    for store in case.stores.values():
        begun.extend(_attempts(store))
        begun.extend(_client_requests(store))
    by_attempt = {(request.key, request.attempt): request for request in reversed(begun) if request.attempt}
    bare = [request for request in begun if request.attempt is None]
    for store in case.stores.values():
        answers = store["arrivals"].by_id("answer")
        for arrival in store["arrivals"].of("arrival"):
            key, attempt = arrival.data["key"], arrival.data["attempt"]
            request = by_attempt.get((key, attempt)) if attempt is not None else _bare(bare, arrival)
            if request is None:
                name = f"key {show(key)} and attempt {show(attempt)}"
                case.note(arrival.place, f"the arrival with {name} belongs to no attempt and to no client's request")
            elif request.arrival is not None:
                case.note(arrival.place, f"a second arrival of the {request.words}, after {request.arrival.place}")
            else:
                request.arrival, request.answer = arrival, answers.get(arrival.id)
    return begun


def _bare(bare: list[Request], arrival: Record) -> Request | None:
    data = arrival.data
    for request in bare:
        if request.arrival is None and request.key == data["key"] and request.sent["fingerprint"] == data["fingerprint"]:
            return request
    return None


def _attempts(store: Store) -> list[Request]:
    intentions = store["intentions"].by_id("intention")
    outcomes = store["attempts"].by_id("outcome")
    receipts = {f"{receipt.id}#{receipt.data['attempt']}": receipt for receipt in store["receipts"].of("receipt")}
    begun = []
    for record in store["attempts"].of("attempt"):
        intention = intentions.get(record.data["intention"])
        sent = {**(intention.data if intention else {}), "fingerprint": record.data["fingerprint"]}
        request = Request(record, record.data["key"], str(record.data["number"]), sent)
        request.receipt, request.closed = receipts.get(record.id), outcomes.get(record.id)
        begun.append(request)
    return begun


def _client_requests(store: Store) -> list[Request]:
    journal = store["requests"]
    responses, outcomes = journal.by_id("response"), journal.by_id("outcome")
    steps = {option(process, "--key"): process["step"] for process in store.ran(CLIENT)}
    begun = []
    for record in journal.of("request"):
        request = Request(record, record.data["key"], None, record.data)
        request.step = steps.get(request.key, 0)
        request.receipt, request.closed = responses.get(record.id), outcomes.get(record.id)
        begun.append(request)
    return begun


def check(case: Case, begun: list[Request]) -> None:
    """Hold what the senders recorded against what the receivers recorded."""
    for request in begun:
        if request.arrival is not None:
            _same_request(request, request.arrival, case.note)
        if request.receipt is not None:
            _receipt(request, request.receipt, case.note)
        if request.closed is not None:
            _outcome(request, request.closed, case.note)
    for store in case.having(CLIENT):
        _clients(store, case.note)


def _same_request(request: Request, arrival: Record, note: Note) -> None:
    """An arrival is the request that was sent: method, route, bytes."""
    data = arrival.data
    body = payload_bytes(request.sent.get("body"))
    for member, wanted in (
        ("method", "POST"),
        ("route", request.sent.get("route")),
        ("fingerprint", request.sent["fingerprint"]),
        ("body_bytes", None if body is None else len(body)),
    ):
        if data[member] == wanted or (member in ("fingerprint", "body_bytes") and data[member] is None and _unread(request)):
            continue
        note(f"{arrival.place} data.{member}", f"is {show(data[member])}, but the {request.words} sent {show(wanted)}")


def _unread(request: Request) -> bool:
    """Whether the receiver did not have to read the body."""
    return request.answer is None or request.answer.data["outcome"] == "refused"


def _receipt(request: Request, receipt: Record, note: Note) -> None:
    """A receipt, or a client's response, repeats what the receiver answered."""
    answer = request.answer
    if answer is None:
        what = "was never answered" if request.arrival else "never arrived"
        note(receipt.place, f"claims a response, but the {request.words} {what}")
        return
    said, claimed = answer.data, receipt.data
    if said["outcome"] not in ("applied", "replayed"):
        note(receipt.place, f"claims a result, but the answer at {answer.place} is {said['outcome']}")
        return
    for member, wanted, actual in (
        ("status", said["status"], claimed["status"]),
        ("replayed", said["outcome"] == "replayed", claimed["replayed"]),
        ("result", said["result_sha256"], payload_digest(claimed["result"])),
    ):
        if actual != wanted:
            hashed = " by its SHA-256" if member == "result" else ""
            note(f"{receipt.place} data.{member}", f"is {show(actual)}{hashed}, but {answer.place} has {show(wanted)}")


def _outcome(request: Request, outcome: Record, note: Note) -> None:
    """A definite outcome rests on no arrival, or on an answer that says so."""
    reason, arrival, answer = outcome.data["reason"], request.arrival, request.answer
    if reason in NEVER_SENT:
        if arrival is not None:
            note(outcome.place, f"says {reason}, but the {request.words} arrived at {arrival.place}")
        return
    if reason not in ANSWERED:
        return
    if answer is None:
        note(outcome.place, f"says {reason}, but no receiver answered the {request.words}")
    elif answer.data["outcome"] != ANSWERED[reason] or answer.data["status"] != outcome.data["status"]:
        said = f"{answer.data['outcome']} with status {answer.data['status']}"
        note(outcome.place, f"says {reason} with status {outcome.data['status']}, but {answer.place} is {said}")


def _clients(store: Store, note: Note) -> None:
    """Every client process has its request, as its command says, and how it ended."""
    journal = store["requests"]
    records = {record.data["key"]: record for record in journal.of("request")}
    processes = store.ran(CLIENT)
    names = {process["process"] for process in processes}
    ended = {**journal.by_id("response"), **journal.by_id("outcome")}
    for record in journal.of("request"):
        if record.id not in names:
            note(f"{record.place} id", f"is {show(record.id)}, but the clients are {show(sorted(names))}")
        if record.id not in ended and not any(died(process) for process in processes):
            note(record.place, "the request has neither a response nor an outcome, and no client died")
        if payload_digest(record.data["body"]) != record.data["fingerprint"]:
            note(f"{record.place} data.fingerprint", "is not the one of the body")
    asked: set[str] = set()
    for record in journal.records:
        if record.type == "request":
            asked.add(record.id)
        elif record.id not in asked:
            note(record.place, f"there is no request of the client {show(record.id)} before it")
    for process in processes:
        sent = records.get(option(process, "--key") or "")
        place = f"processes.json {process['process']}"
        if sent is None:
            note(place, f"the client was told to send the key {show(option(process, '--key'))}, but recorded no such request")
            continue
        body = (option(process, "--body") or "").encode("utf-8", "surrogatepass")
        if payload_bytes(sent.data["body"]) != body or sent.data["route"] != option(process, "--route"):
            note(sent.place, f"is not the request of the client's command: {show(process['command'])}")
        if process["exit_code"] == 0 and sent.id not in journal.by_id("response"):
            note(sent.place, "has no response, though its client ended with 0")
        if process["stdout"]:
            note(f"{place}.stdout", f"is {show(process['stdout'])}, expected nothing")

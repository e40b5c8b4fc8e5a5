"""Both sides of the wire, where nothing stands between them: every outcome and receipt against the receiver's answer.

One attempt is one request, so it has one arrival at most (two where a relay sent it twice). What the sender recorded must be
what the receiver said: a receipt repeats the last answer, a definite outcome rests on one, a refused connection has neither
arrival nor a receiver that listened, and an answer that did not come needs a receiver that died. What a relay did to an
exchange is held in `relay`.
"""

from __future__ import annotations

from audit.case import CLIENT, HALTED, RECEIVER, RELAY, Ran, label, option
from audit.dispatch import NEVER_SENT
from audit.findings import show
from audit.hashing import digest
from audit.outbox import hold_outcome
from audit.records import DEFINITE
from audit.shapes import payload_bytes, payload_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.case import Case, Store
    from audit.findings import Note
    from audit.journals import Record
    from audit.requests import Request, Traffic

ANSWERED: dict[str, tuple[tuple[str, str | None], ...]] = {
    "conflict": (("conflict", None),),
    "in_flight": (("refused", "key_in_flight"),),
    "refused": (("refused", None),),
    "unavailable": (("failed", None), ("refused", "registry_full")),
}
"""The reasons of outcomes that rest on an answer: which outcome, and reason where it matters, the answer must have."""
LISTENING = (RECEIVER, RELAY)


def check(case: Case, traffic: Traffic) -> None:
    """Hold what the senders recorded against what the receivers recorded."""
    for request in traffic.requests:
        if request.scanned:
            continue  # what a scan sent, and what it made of the answer, is held in `books`
        note = case.first.at(request.span[0] if request.span else None)
        for arrival in request.arrivals:
            _same_request(request, arrival, note)
        twice = request.exchange is not None and request.exchange.data["fault"] == "duplicate-request"
        for second in request.arrivals[2 if twice else 1 :]:
            note(second.place, f"a second arrival of the {request.words}, after {request.arrivals[0].place}")
        _death(request, note)
        if request.receipt is not None:
            _receipt(request, request.receipt, note)
        if request.closed is not None:
            _outcome(case, request, request.closed, note)
        if request.exchange is None:
            _direct(case, request, note)
    for store in case.having(CLIENT):
        _clients(store, case.note)


def _same_request(request: Request, arrival: Record, note: Note) -> None:
    """An arrival is the request that was sent: method, route, bytes."""
    data, body = arrival.data, request.body
    for member, wanted in (
        ("method", "POST"),
        ("route", request.route),
        ("fingerprint", None if body is None else digest(body)),
        ("body_bytes", None if body is None else len(body)),
    ):
        if data[member] == wanted or (member in ("fingerprint", "body_bytes") and _unread(request, arrival)):
            continue
        note(f"{arrival.place} data.{member}", f"is {show(data[member])}, but the {request.words} sent {show(wanted)}")


def _unread(request: Request, arrival: Record) -> bool:
    """Whether the receiver did not read the body to its end, and said so. Only a relay cuts a body."""
    reasons = [answer.data["reason"] for answer in request.answers if answer.id == arrival.id]
    unread = arrival.data["fingerprint"] is None and arrival.data["body_bytes"] is None
    return unread and not request.unbroken() and reasons in ([], ["body_incomplete"])


def _death(request: Request, note: Note) -> None:
    """A sender that halted around its request had in hand what its fault point says."""
    if not request.died_at:
        return
    if not request.left and request.arrivals:
        note(request.arrivals[0].place, f"the {request.words} arrived, but its sender halted before anything was sent")
    answer = request.answer()
    if request.in_hand and answer is None and request.exchange is None:
        place = f"processes.json {label(request.process)}" if request.process else request.record.place
        note(place, f"halted at {request.died_at} with a response in hand, but no receiver answered the {request.words}")
    success = answer is not None and answer.data["outcome"] in ("applied", "replayed")
    if request.died_at.startswith("receipt.") and answer is not None and not success:
        note(answer.place, f"says {answer.data['outcome']}, but the sender of the {request.words} was writing its receipt")
    if request.died_at.startswith("outcome.") and success and request.unbroken():
        note(request.record.place, f"the {request.words} got a result, but its sender was writing that it had none")


def _receipt(request: Request, receipt: Record, note: Note) -> None:
    """A receipt, or a client's response, repeats what the receiver answered last."""
    answer = request.answer()
    if answer is None:
        what = "was never answered" if request.arrivals else "never arrived"
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


def _outcome(case: Case, request: Request, outcome: Record, note: Note) -> None:
    """A definite outcome rests on no arrival, or on an answer that says so."""
    reason, answer, status = outcome.data["reason"], request.answer(), outcome.data["status"]
    if reason in NEVER_SENT:
        if reason != "connection_refused":
            note(outcome.place, f"says {reason}, but on one machine a connection stands at once or is refused")
        if request.arrivals:
            note(outcome.place, f"says {reason}, but the {request.words} arrived at {request.arrivals[0].place}")
        for server in _servers(case, request):
            note(outcome.place, f"says {reason}, but {label(server)} was listening")
        return
    if answer is None and request.exchange is None and status is not None:
        note(outcome.place, f"has the status {status}, but no receiver answered the {request.words}")
    if reason not in ANSWERED or not request.unbroken():
        return
    if answer is None:
        note(outcome.place, f"says {reason}, but no receiver answered the {request.words}")
        return
    said = answer.data
    fits = any(said["outcome"] == kind and why in (None, said["reason"]) for kind, why in ANSWERED[reason])
    if not fits or said["status"] != status or (reason == "refused" and said["reason"] in ("key_in_flight", "registry_full")):
        words = f"{said['outcome']} ({said['reason']}) with status {said['status']}"
        note(outcome.place, f"says {reason} with status {status}, but {answer.place} is {words}")


def _servers(case: Case, request: Request) -> list[Ran]:
    """The servers that listened, as planned, where and while a request was sent, and did not halt."""
    if request.process is None:
        return []
    step, told = request.process["step"], option(request.process, "--receiver") or ""
    return [
        server
        for server in case.ran
        if server.module in LISTENING
        and f"{{{server['process']}.port}}" in told
        and server.alive(step)
        and server["exit_code"] != HALTED
    ]


def deaths(case: Case, request_span: tuple[int, int] | None) -> list[Ran]:
    """The receivers that halted or were killed while a request may have been on its way."""
    if request_span is None:
        return []
    since, until = request_span
    return [
        server
        for server in case.having_run(RECEIVER)
        if server["step"] < since
        and ((server["exit_code"] == HALTED and since < server.ends) or (server["signal"] and since <= server.ends <= until))
    ]


def _direct(case: Case, request: Request, note: Note) -> None:
    """Without a relay only a death takes a request or an answer away, and nobody asks to wait."""
    closed = request.closed.data if request.closed else None
    if closed is not None and request.closed and closed.get("not_before") is not None:
        note(f"{request.closed.place} data.not_before", f"is {closed['not_before']}, but no receiver asked to wait")
    if request.process is None or not request.left or (closed is not None and closed["reason"] in NEVER_SENT):
        return
    dead = deaths(case, request.span)
    if closed is not None and closed["reason"] not in DEFINITE:
        # A receiver that halts has read the request, so its end comes as a close and never as a reset.
        if not dead or closed["reason"] != "connection_closed":
            words = f"says {closed['reason']}, but there is no relay and no death of a receiver that explains it"
            note(f"{request.record.place}" if request.closed is None else request.closed.place, words)
        elif request.answers and not any(_point(server).startswith("answer.append.") for server in dead):
            note(request.answers[-1].place, f"is an answer to the {request.words}, but its receiver died before that")
    if request.arrivals or (request.died_at.startswith("outcome.") and not _servers(case, request)):
        return
    if not any(_point(server).startswith("arrival.append.") for server in dead):
        note(request.record.place, f"the {request.words} was sent, but it arrived nowhere, and no receiver died of it")


def _point(server: Ran) -> str:
    return str(server["fault"]["point"]) if server["fault"] else ""


def _clients(store: Store, note: Note) -> None:
    """Every client process has its request, as its command says, and how it ended."""
    journal = store["requests"]
    records = {record.id: record for record in journal.of("request")}
    ended = {**journal.by_id("response"), **journal.by_id("outcome")}
    processes = {process["process"]: process for process in store.ran(CLIENT)}
    asked: set[str] = set()
    for record in journal.records:
        if record.type != "request":
            if record.id not in asked:
                note(record.place, f"there is no request of the client {show(record.id)} before it")
            elif record is not ended[record.id]:
                note(record.place, f"the request of the client {show(record.id)} has ended at {ended[record.id].place} already")
            if record.type == "outcome":
                hold_outcome(record, note)
            continue
        asked.add(record.id)
        if record.id not in processes:
            note(f"{record.place} id", f"is {show(record.id)}, but the clients are {show(sorted(processes))}")
        if record.id not in ended:
            note(record.place, "the request has neither a response nor an outcome, and no client died")
        if payload_digest(record.data["body"]) != record.data["fingerprint"]:
            note(f"{record.place} data.fingerprint", "is not the one of the body")
    for name, process in processes.items():
        place = f"processes.json {name}"
        if name not in records:
            note(place, f"the client was told to send the key {show(option(process, '--key'))}, but recorded no such request")
            continue
        _client(process, records[name], ended.get(name), note)
        if process["stdout"]:
            note(f"{place}.stdout", f"is {show(process['stdout'])}, expected nothing")


def _client(process: Ran, sent: Record, end: Record | None, note: Note) -> None:
    body = (option(process, "--body") or "").encode("utf-8", "surrogatepass")
    told = (option(process, "--key"), option(process, "--route"), body)
    if (sent.data["key"], sent.data["route"], payload_bytes(sent.data["body"])) != told:
        note(sent.place, f"is not the request of the client's command: {show(process['command'])}")
    if process["exit_code"] == 0 and (end is None or end.type != "response"):
        note(sent.place, "has no response, though its client ended with 0")
    if end is None:
        return
    wanted = 0
    if end.type == "outcome":
        reason = end.data["reason"]
        wanted = {"conflict": 11, "refused": 15}.get(reason, 10 if reason in DEFINITE else 12)
    if process["exit_code"] != wanted:
        note(f"processes.json {label(process)}.exit_code", f"is {show(process['exit_code'])}, but {end.place} means {wanted}")

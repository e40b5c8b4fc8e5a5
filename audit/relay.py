"""What a relay did: every exchange against the fault that its connection was given, and both ends against the exchange.

Connections are counted in the order in which requests left for the relay. `FAULTS` says for each fault what the relay lets
through on each side and which outcomes the sender may have drawn from it; `PLACES` where in a message a place is. A request
that is cut in its headers is no arrival, one that is cut in its body is an incomplete one, one that is sent twice is two.

How many bytes a whole message has, also one that the relay makes up itself, is held in `messages`.
"""

from __future__ import annotations

from audit.case import RELAY, option
from audit.dispatch import NEVER_SENT
from audit.findings import show
from audit.hashing import digest
from audit.records import DEFINITE
from audit.requests import Request
from audit.shapes import number_in, payload_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.case import Case, Ran, Store
    from audit.findings import Note
    from audit.journals import Record
    from audit.requests import Inquiry, Traffic

LONGEST_NUMBER = 9
DATE_ASKED_FOR = 1120.0
SECONDS_ASKED_FOR = 120.0
ANY = None


class Fault:
    """What a fault does: the sides that it breaks, what the relay answers by itself, and what the sender makes of it."""

    __slots__ = ("breaks", "outcomes", "own", "times")

    def __init__(self, outcomes: dict[str, int | None] | None, *, breaks: str = "", own: bool = False, times: int = 1) -> None:
        self.outcomes = outcomes
        self.breaks = breaks
        self.own = own
        self.times = times


FAULTS = {
    "none": Fault(ANY),
    "cut-request": Fault({"connection_closed": None}, breaks="request"),
    "reset-request": Fault({"connection_reset": None}, breaks="request"),
    "cut-response": Fault({"connection_closed": None, "short_response": 200}, breaks="response"),
    "reset-response": Fault({"connection_reset": None, "short_response": 200}, breaks="response"),
    "hold-response": Fault({"response_timeout": None}, breaks="response"),
    "duplicate-request": Fault(ANY, times=2),
    "redirect": Fault({"redirect": 307}, own=True, times=0),
    "unreadable-success": Fault({"unreadable_result": 200}, own=True),
    "oversized-success": Fault({"oversized_response": 200}, own=True),
    "retry-after-seconds": Fault({"unavailable": 503}, own=True, times=0),
    "retry-after-date": Fault({"unavailable": 503}, own=True, times=0),
}


def place_in(place: str, whole: int, start_line: int, body: int) -> int | None:
    """How many bytes of a message come before a place; None for no place."""
    if place.isascii() and place.isdigit() and len(place) <= LONGEST_NUMBER:
        return min(int(place), whole)
    return {
        "start": 0,
        "start-line": start_line,
        "headers": whole - body,
        "body-middle": whole - body + body // 2,
        "end": whole,
    }.get(place)


def match(case: Case, traffic: Traffic) -> None:
    """Give every request and inquiry that left for a relay its exchange."""
    for store in case.having(RELAY):
        names = {f"{{{process['process']}.port}}" for process in store.ran(RELAY)}
        sent = [each for each in traffic.sent if each.process and _through(each, names)]
        sent.sort(key=lambda each: each.process["step"] if each.process else 0)
        exchanges = store["exchanges"].records
        for number, record in enumerate(exchanges, 1):
            if record.id != f"connection-{number}":
                case.note(f"{record.place} id", f"is {show(record.id)}, expected 'connection-{number}'")
        for each, record in zip(sent, exchanges, strict=False):
            each.exchange = record
            record.span = each.span
        if len(sent) != len(exchanges):
            case.note(store["exchanges"].path, f"has {len(exchanges)} exchanges, but {len(sent)} requests left for the relay")


def _through(each: Request | Inquiry, names: set[str]) -> bool:
    told = option(each.process, "--receiver") or "" if each.process else ""
    refused = isinstance(each, Request) and each.closed is not None and each.closed.data["reason"] in NEVER_SENT
    return not refused and any(name in told for name in names)


def check(case: Case, traffic: Traffic) -> None:
    """Hold every exchange, and what sender and receiver have of it."""
    for store in case.having(RELAY):
        faults = _faults(store)
        for process in store.ran(RELAY):
            if process["stdout"]:
                case.note(f"processes.json {process['process']}.stdout", f"is {show(process['stdout'])}, expected nothing")
        for number, record in enumerate(store["exchanges"].records, 1):
            wanted = faults.get(number, "none")
            if record.data["fault"] != wanted:
                case.note(f"{record.place} data.fault", f"is {show(record.data['fault'])}, but the relay was told {wanted}")
    lengths = _lengths(case)
    for request in traffic.requests:
        if request.exchange is not None:
            answer = request.answer()
            result = lengths.get(answer.data["result_sha256"], 0) if answer else 0
            _exchange(request, request.exchange, result, case.first.at(request.span[0] if request.span else None))


def _lengths(case: Case) -> dict[str, int]:
    """How long the results of the scenario's effects are, by their SHA-256."""
    results = [
        payload_bytes(effect.data["result"]) or b"" for store in case.stores.values() for effect in store["effects"].records
    ]
    return {digest(result): len(result) for result in results}


def _faults(store: Store) -> dict[int, str]:
    told: dict[int, str] = {}
    for process in store.ran(RELAY):
        command: list[str] = process["command"]
        for name, value in zip(command, command[1:], strict=False):  # noqa: RUF007 (itertools is not loaded at the start)
            number, _, fault = value.partition(":")
            if name == "--fault" and number.isascii() and number.isdigit():
                told[int(number[:9])] = fault
    return told


def _exchange(request: Request, record: Record, result: int, note: Note) -> None:
    """One exchange of a request; `result` is the length of the result in the receiver's response."""
    data = record.data
    name, _, place = data["fault"].partition(":")
    fault = FAULTS.get(name)
    if fault is None:
        note(f"{record.place} data.fault", f"is {show(data['fault'])}, a fault that the audit does not know")
        return
    body = len(request.body or b"")
    sent = 0 if not fault.times else data["request_bytes"]
    if fault.breaks == "request":
        sent = place_in(place, data["request_bytes"], len(f"POST {request.route} HTTP/1.1\r\n"), body)
    _bytes(record, "request_forwarded_bytes", sent, f"{data['fault']} lets through", note)
    got: int | None = 0 if fault.breaks == "request" or name == "hold-response" else data["response_bytes"]
    if fault.breaks == "response" and place:
        got = place_in(place, data["response_bytes"], len("HTTP/1.1 200 OK\r\n"), result)
    if not fault.own:
        _bytes(record, "response_forwarded_bytes", got, f"{data['fault']} lets through", note)
    _receiver_side(request, record, fault.times, body, note)
    _sender_side(request, record, fault, result, note)


def _bytes(record: Record, member: str, wanted: int | None, because: str, note: Note) -> None:
    if record.data[member] != wanted:
        note(f"{record.place} data.{member}", f"is {record.data[member]}, but {because} {wanted}")


def _receiver_side(request: Request, record: Record, times: int, body: int, note: Note) -> None:
    """As many arrivals as whole headers came, complete where the body did, and a response where there was an answer."""
    data = record.data
    headers = data["request_bytes"] - body
    reached = data["request_forwarded_bytes"] >= headers and times > 0
    wanted = times if reached else 0
    if len(request.arrivals) != wanted:
        found = f"the {request.words} has {len(request.arrivals)} arrivals"
        note(record.place, f"{data['request_forwarded_bytes']} bytes went on {times} times: expected {wanted}, but {found}")
    whole = data["request_forwarded_bytes"] == data["request_bytes"]
    for arrival in request.arrivals:
        if (arrival.data["fingerprint"] is None) == whole:
            words = "was whole" if whole else "was cut in its body"
            note(f"{arrival.place} data.fingerprint", f"is {show(arrival.data['fingerprint'])}, but the request {words}")
    answered = whole and reached
    if answered != (data["response_bytes"] > 0):
        words = "a whole request was answered" if answered else "no whole request came to the receiver"
        note(f"{record.place} data.response_bytes", f"is {data['response_bytes']}, but {words}")


def _sender_side(request: Request, record: Record, fault: Fault, result: int, note: Note) -> None:
    """The sender drew from it what it could."""
    closed = request.closed
    got = request.receipt is not None or request.died_at.startswith("receipt.")
    if fault.outcomes is None:
        if closed is not None and (closed.data["status"] is None or closed.data["reason"] not in DEFINITE):
            note(closed.place, f"says {closed.data['reason']}, but the relay did nothing to it ({record.place})")
        return
    if got:
        place = request.receipt.place if request.receipt else request.record.place
        note(place, f"the {request.words} has a result, but the relay did {record.data['fault']} to it ({record.place})")
    if closed is None:
        return
    reason, status = closed.data["reason"], closed.data["status"]
    if reason not in fault.outcomes or fault.outcomes[reason] != status:
        note(closed.place, f"says {reason} with status {show(status)}, which {record.data['fault']} at {record.place} is not")
    name, _, place = record.data["fault"].partition(":")
    came = record.data["response_forwarded_bytes"]
    if (
        fault.breaks == "response"
        and place
        and (reason == "short_response") != (came >= record.data["response_bytes"] - result)
    ):
        note(closed.place, f"says {reason}, but {came} of {record.data['response_bytes']} bytes of the response came back")
    _wish(request.process, closed, name, note)


def _wish(process: Ran | None, closed: Record, name: str, note: Note) -> None:
    """`not_before` is what the response asked for."""
    now = number_in(option(process, "--now")) if process else None
    wanted: float | None = None
    if name == "retry-after-date":
        wanted = DATE_ASKED_FOR
    elif name == "retry-after-seconds" and now is not None:
        wanted = now + SECONDS_ASKED_FOR
    if "not_before" in closed.data and closed.data["not_before"] != wanted:
        note(f"{closed.place} data.not_before", f"is {show(closed.data['not_before'])}, but {name} asked for {show(wanted)}")

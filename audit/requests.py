"""The requests of a scenario: every one that a sender began, with the arrivals and the answers that belong to it.

An arrival with a `Halt23-Attempt` header belongs to the attempt with its key and number, one with a `Halt23-Sender` header
to the request of that bare client. An arrival that belongs to nothing is a phantom. How many arrivals a request may have is
held in `wire`; `dispatch` finds out in which step it was sent and what its sender had in hand.
"""

from __future__ import annotations

from audit.case import CLIENT
from audit.findings import show
from audit.shapes import payload_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.case import Case, Ran, Store
    from audit.journals import Record


CARRIED = ("none", "duplicate-request")
"""The faults of a relay that let every byte of a response through."""


class Request:
    """One request that a sender began, and what became of it."""

    __slots__ = (
        "answers", "arrivals", "attempt", "body", "closed", "died_at", "exchange", "in_hand", "key", "left", "process",
        "receipt", "record", "route", "scanned", "sender", "settled", "words",
    )  # fmt: skip

    def __init__(self, record: Record, attempt: str | None, route: str | None, body: bytes | None) -> None:
        self.record = record
        self.key: str = record.data["key"]
        self.attempt = attempt
        self.sender: str | None = None if attempt else record.id
        self.route = route
        self.body = body
        self.words = f"attempt {show(record.id)}" if attempt else f"request of the client {show(record.id)}"
        self.receipt: Record | None = None
        self.settled: Record | None = None
        self.closed: Record | None = None
        self.arrivals: list[Record] = []
        self.answers: list[Record] = []
        self.exchange: Record | None = None
        self.process: Ran | None = None
        self.scanned = False
        self.left = attempt is None
        self.in_hand = False
        self.died_at = ""

    @property
    def span(self) -> tuple[int, int] | None:
        """The steps between which it was sent; None where no process is known to have sent it."""
        return (self.process["step"], self.process.ends) if self.process else None

    def answer(self) -> Record | None:
        """The last thing that a receiver said to it."""
        return self.answers[-1] if self.answers else None

    def unbroken(self) -> bool:
        """Whether nothing stood in the way that changes what a receiver says: no relay, or one that only carried."""
        return self.exchange is None or self.exchange.data["fault"] in CARRIED

    def heard(self) -> bool:
        """Whether the sender had the receiver's answer before it went on, or died of a fault behind that point."""
        answered = self.closed is not None and self.closed.data["status"] is not None
        return self.in_hand or answered or self.receipt is not None


class Inquiry:
    """One status query that a dispatcher made: the record of it, if it lived to write one, and the receiver's record."""

    __slots__ = ("effect", "exchange", "key", "process", "query", "record", "request")

    def __init__(self, request: Request, process: Ran) -> None:
        self.request = request
        self.key = request.key
        self.process = process
        self.record: Record | None = None
        self.query: Record | None = None
        self.effect: Record | None = None
        self.exchange: Record | None = None

    @property
    def span(self) -> tuple[int, int]:
        """The steps between which it was made."""
        return (self.process["step"], self.process.ends)


class Traffic:
    """What a scenario's senders sent: all requests begun, all inquiries, and `sent`, those that left in their order."""

    __slots__ = ("inquiries", "requests", "sent")

    def __init__(self, requests: list[Request]) -> None:
        self.requests = requests
        self.inquiries: list[Inquiry] = []
        self.sent: list[Request | Inquiry] = []


def gather(case: Case) -> Traffic:
    """Every request that an outbox or a client began, with what belongs to it; of a dispatch outbox those of its scans."""
    begun: list[Request] = []
    if case.exporting:
        from audit.scans import sends  # noqa: PLC0415 (needed by one section, so not at every start)

        begun.extend(sends(case))
    scanned = {request.record.place for request in begun}
    for store in case.stores.values():
        begun.extend(_attempts(store))
        begun.extend(_client_requests(store))
    traffic = Traffic(begun)
    traffic.sent.extend(request for request in begun if request.attempt is None)
    known = {(each.sender, each.key, each.attempt): each for each in reversed(begun) if not each.scanned}
    for store in case.stores.values():
        answers = store["arrivals"].by_id("answer")
        for arrival in store["arrivals"].of("arrival"):
            if arrival.place in scanned:
                continue
            data = arrival.data
            request = known.get((data["sender"], data["key"], data["attempt"]))
            if request is None:
                name = f"key {show(data['key'])}, attempt {show(data['attempt'])} and sender {show(data['sender'])}"
                case.note(arrival.place, f"the arrival with {name} belongs to no attempt and to no client's request")
                continue
            request.arrivals.append(arrival)
            if arrival.id in answers:
                request.answers.append(answers[arrival.id])
    return traffic


def _attempts(store: Store) -> list[Request]:
    intentions = store["intentions"].by_id("intention")
    outcomes = store["attempts"].by_id("outcome")
    receipts = {f"{receipt.id}#{receipt.data['attempt']}": receipt for receipt in store["receipts"].of("receipt")}
    begun = []
    for record in store["attempts"].of("attempt"):
        intention = intentions.get(record.data["intention"])
        body = payload_bytes(intention.data["body"]) if intention else None
        request = Request(record, str(record.data["number"]), intention.data["route"] if intention else None, body)
        request.closed = outcomes.get(record.id)
        receipt = receipts.get(record.id)
        if receipt is not None and receipt.data["via"] == "response":
            request.receipt = receipt
        request.settled = receipt
        begun.append(request)
    return begun


def _client_requests(store: Store) -> list[Request]:
    journal = store["requests"]
    responses, outcomes = journal.by_id("response"), journal.by_id("outcome")
    processes = {process["process"]: process for process in store.ran(CLIENT)}
    begun = []
    for record in journal.of("request"):
        request = Request(record, None, record.data["route"], payload_bytes(record.data["body"]))
        request.process = processes.get(record.id)
        request.receipt, request.closed = responses.get(record.id), outcomes.get(record.id)
        for each in (record, request.receipt, request.closed):
            if each is not None:
                each.span = request.span
        begun.append(request)
    return begun

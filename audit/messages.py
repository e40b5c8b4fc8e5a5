"""Sizes and hashes of messages: every one that a journal keeps is that of a message as the programs write it.

A request is its route, key, sender or attempt, body and a fixed rest; a response is its result, the mark of a replay and a
fixed rest; a refusal is a sentence. The texts are the audit's own (`expectations.messages`). What a relay lets through of a
message is held in `relay`.
"""

from __future__ import annotations

from audit.case import RECEIVER, RELAY, option
from audit.expectations.messages import END, OWN, OWN_ANSWERS, PHRASES, REPLAYED, REQUEST, RESPONSE, SENTENCES
from audit.findings import show
from audit.hashing import digest
from audit.kinds import numeric
from audit.shapes import payload_bytes
from audit.strict_json import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.case import Case, Ran, Store
    from audit.findings import Note
    from audit.journals import Record
    from audit.requests import Request, Traffic

REFUSED = ("conflict", "refused", "failed")


def check(case: Case, traffic: Traffic) -> None:
    """Hold the texts of refusals, and the sizes of whole messages."""
    for store in case.having(RECEIVER):
        for answer in store["arrivals"].of("answer"):
            if answer.data["outcome"] in REFUSED:
                _refusal(store, answer, case.note)
    for store in case.having(RELAY):
        relay = store.ran(RELAY)[0]
        exchanges = {record.place for record in store["exchanges"].records}
        for request in traffic.requests:
            if request.exchange is not None and request.exchange.place in exchanges:
                _exchange(case, request, request.exchange, relay)


def texts(reason: str, store: Store) -> list[str]:
    """The bodies that a receiver of this store may send with a refusal."""
    places = [int(numeric(process, "--capacity", 1)) for process in store.ran(RECEIVER)][:1]
    return [
        encode({"error": reason, "message": sentence.replace("{capacity}", str(*places))})
        for sentence in SENTENCES.get(reason, ())
    ]


def _refusal(store: Store, answer: Record, note: Note) -> None:
    """The hash of a refusal is that of its sentence."""
    told, known = answer.data["result_sha256"], texts(answer.data["reason"] or "", store)
    if told not in [digest(text.encode("ascii")) for text in known]:
        reason = show(answer.data["reason"])
        note(f"{answer.place} data.result_sha256", f"is {show(told)}, which is none of {show(known)}, a refusal for {reason}")


def _exchange(case: Case, request: Request, exchange: Record, relay: Ran) -> None:
    """The sizes of the messages that one connection of a relay carried."""
    wanted = {"request_bytes": [_size(REQUEST, len(request.body or b""), **_of_request(request))]}
    answer = request.answer()
    if answer is not None and exchange.data["response_bytes"]:
        wanted["response_bytes"] = _responses(case, answer)
    own = OWN_ANSWERS.get(exchange.data["fault"])
    if own is not None:
        status, line, length = own
        head = (*OWN, *[each.replace("{port}", port_in(relay, "--upstream")) for each in [line] if each])
        wanted["response_forwarded_bytes"] = [_size(head, length, status=status)]
    for member, sizes in wanted.items():
        actual = exchange.data[member]
        if actual not in sizes:
            case.note(
                f"{exchange.place} data.{member}", f"is {actual}, but the whole message has {' or '.join(map(str, sizes))}"
            )


def _of_request(request: Request) -> dict[str, str]:
    """What differs from request to request."""
    who = f"Halt23-Attempt: {request.attempt}" if request.attempt else f"Halt23-Sender: {request.sender}"
    port = port_in(request.process, "--receiver") if request.process else ""
    return {"route": request.route or "", "port": port, "key": request.key, "who": who}


def port_in(process: Ran, name: str) -> str:
    """The port that was put into an option of a process."""
    placeholder = (option(process, name) or "").partition("{")[2].partition("}")[0]
    return str(process["substitutions"].get(placeholder, ""))


def _responses(case: Case, answer: Record) -> list[int]:
    """How many bytes the receiver's response to this answer may have."""
    status, extra = answer.data["status"], [REPLAYED] if answer.data["outcome"] == "replayed" else []
    if answer.data["reason"] == "method_not_allowed":
        extra = ["Allow: GET"]  # a relay is sent POST only, so it is the effects' route that was asked
    lengths = [
        len(payload_bytes(record.data["result"]) or b"")
        for store in case.stores.values()
        for record in [*store["effects"].records, *store["keys"].records]
        if answer.data["effect"] in (record.id, record.data.get("effect"))
    ]
    if answer.data["outcome"] in REFUSED:
        lengths = [len(text) for store in case.having(RECEIVER) for text in texts(answer.data["reason"] or "", store)]
    phrases = PHRASES.get(status, ())
    return [_size((*RESPONSE, *extra), length, status=f"{status} {phrase}") for length in lengths for phrase in phrases]


def _size(head: tuple[str, ...], length: int, **parts: str) -> int:
    """The bytes of a message: the lines of its head, the blank line, the body."""
    parts["length"] = str(length)
    lines = [line if "{" not in line else line.format(**parts) for line in head]
    return sum(len(line) + len(END) for line in lines) + len(END) + length

"""Status queries: what a dispatcher asked, what the receiver told it, and what it made of that.

Every recorded inquiry that was answered has its query in the receiver's log, in the same order and with the same answer;
whether the answer was true at that time is held in `serve`. A receipt that came this way is the effect's result, to the
byte. An inquiry stays unanswerable only where the receiver tells nothing or died over it. `match` is called before the
receivers are played, `check` afterwards.
"""

from __future__ import annotations

from audit.case import RECEIVER, label
from audit.findings import show
from audit.kinds import kind_of
from audit.wire import deaths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.case import Case, Ran
    from audit.journals import Record
    from audit.requests import Inquiry, Traffic


def match(case: Case, traffic: Traffic) -> None:
    """Give every inquiry the query that it was."""
    queries = [record for store in case.having(RECEIVER) for record in store["arrivals"].of("query")]
    for inquiry in traffic.inquiries:
        told = inquiry.record is None or inquiry.record.data["answer"] != "unanswerable"
        over_it = any(_point(server) == "query.append.written" for server in deaths(case, inquiry.span))
        if queries and (told or over_it) and queries[0].data["key"] == inquiry.key:
            inquiry.query = queries.pop(0)
    for query in queries:
        case.note(query.place, f"a status query for {show(query.data['key'])} that no inquiry made")


def _point(server: Ran) -> str:
    return str(server["fault"]["point"]) if server["fault"] else ""


def check(case: Case, traffic: Traffic) -> None:
    """Hold what became of every inquiry."""
    for inquiry in traffic.inquiries:
        telling = [server for server in case.having_run(RECEIVER) if _tells(server) and server.alive(inquiry.span[0])]
        record, query = inquiry.record, inquiry.query
        if record is None:
            if query is None and telling:
                case.note(
                    telling[0]["process"], f"has no query for the inquiry that {label(inquiry.process)} died of recording"
                )
            continue
        answer = record.data["answer"]
        if answer == "unanswerable":
            if telling and not deaths(case, inquiry.span):
                case.note(f"{record.place} data.answer", "is unanswerable, but the receiver answers status queries and lived")
        elif query is None:
            case.note(f"{record.place} data.answer", f"is {answer}, but no receiver answered a status query for it")
        elif query.data["answer"] != answer:
            case.note(f"{record.place} data.answer", f"is {answer}, but {query.place} says {query.data['answer']}")
        if answer == "applied":
            _receipt(case, inquiry)
        if query is not None:
            _order(case, traffic, record, query)


def _path(record: Record) -> str:
    return record.place.rpartition(":")[0]


def _order(case: Case, traffic: Traffic, record: Record, query: Record) -> None:
    """What was sent after an inquiry was recorded arrived after the query that it asked."""
    for request in traffic.requests:
        if _path(request.record) == _path(record) and request.record.line > record.line:
            for arrival in request.arrivals:
                if _path(arrival) == _path(query) and arrival.line < query.line:
                    case.note(query.place, f"stands after the arrival of the {request.words}, which was sent later")


def _tells(server: Ran) -> bool:
    kind = kind_of(server)
    return kind is not None and kind.tells


def _receipt(case: Case, inquiry: Inquiry) -> None:
    """A receipt by status query carries the result of the effect that the receiver spoke of."""
    receipt, effect = inquiry.request.settled, inquiry.effect
    if receipt is None or effect is None or receipt.data["via"] != "status_query":
        return
    for member in ("status", "result"):
        if receipt.data[member] != effect.data[member]:
            wanted = show(effect.data[member])
            case.note(f"{receipt.place} data.{member}", f"is {show(receipt.data[member])}, but {effect.place} has {wanted}")

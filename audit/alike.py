"""What must be the same in the whole archive: sizes on the wire, and the texts of refusals.

The contract gives the bytes of an exchange, not the headers in them. But a request is its key, route, body, attempt number
and always the same rest; a response is its result, the mark of a replay and always the same rest; refusals for one reason and
responses that the relay makes up are always the same. So one odd value is found as soon as the archive has a second one of
its sort; a sort that occurs once is not held to anything.
"""

from __future__ import annotations

from audit.relay import FAULTS, REPLAYED_HEADER
from audit.shapes import payload_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from audit.case import Case
    from audit.journals import Record
    from audit.requests import Request, Traffic

    Value = tuple[str, str, int | str]

REFUSED = ("conflict", "refused", "failed")


def check(cases: list[tuple[Case, Traffic]]) -> None:
    """Hold all values of one sort against the first of them."""
    first: dict[str, tuple[int | str, Record]] = {}
    for case, traffic in cases:
        for record, (sort, member, value) in _values(case, traffic):
            known, before = first.setdefault(sort, (value, record))
            if known != value:
                actual = record.data[member]
                case.note(f"{record.place} data.{member}", f"is {actual}, which is not alike {before.place}: {sort}")


def _values(case: Case, traffic: Traffic) -> Iterator[tuple[Record, Value]]:
    stores = case.stores.values()
    results = {
        effect.id: payload_bytes(effect.data["result"]) or b"" for store in stores for effect in store["effects"].records
    }
    for request in traffic.requests:
        if request.exchange is not None:
            for size in _sizes(request, request.exchange, results):
                yield request.exchange, size
        for answer in request.answers:
            text = answer.data["result_sha256"]
            if answer.data["outcome"] in REFUSED and text is not None:
                yield answer, (f"the text of a refusal for {answer.data['reason']}", "result_sha256", text)


def _sizes(request: Request, exchange: Record, results: dict[str, bytes]) -> Iterator[Value]:
    """Each size of an exchange, without the parts that are known."""
    data, body, answer = exchange.data, request.body or b"", request.answer()
    parts = len(request.key) + len(request.route or "") + len(body) + len(str(len(body))) + len(request.attempt or "")
    yield "a request", "request_bytes", data["request_bytes"] - parts
    if answer is not None and data["response_bytes"]:
        result = results.get(answer.data["effect"] or "")
        if result is None:
            yield f"an answer for {answer.data['reason']}", "response_bytes", data["response_bytes"]
        else:
            mark = REPLAYED_HEADER if answer.data["outcome"] == "replayed" else 0
            rest = data["response_bytes"] - len(result) - len(str(len(result))) - mark
            yield "an answer with a result", "response_bytes", rest
    fault = FAULTS.get(data["fault"])
    if fault is not None and fault.own:
        yield f"a response of {data['fault']}", "response_forwarded_bytes", data["response_forwarded_bytes"]

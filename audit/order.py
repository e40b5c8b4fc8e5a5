"""The order of things: what one step wrote stands before what a later step caused.

`player` and its users give every record its span: the steps between which it was written. Requests of programs that were run
to their end arrive in the order of their steps, and an answer that a sender had in hand was written before the next request
was sent. A checkpoint has everything that was written by steps that were over, nothing of later ones, and, for programs that
were still running, nothing whose cause it lacks (`causes`).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.case import Case
    from audit.journals import Record
    from audit.requests import Request, Traffic

    Bounds = tuple[int, int]

BEHIND_THE_END = 2**53


def _path(record: Record) -> str:
    return record.place.rpartition(":")[0]


def _serial(traffic: Traffic) -> list[Request]:
    """The requests of programs that were run to their end, in the order in which they were begun."""
    known = [request for request in traffic.requests if request.span and request.span[0] == request.span[1]]
    return sorted(known, key=lambda request: request.span or (0, 0))


def check(case: Case, traffic: Traffic) -> None:
    """Hold the order of arrivals and answers against the order in which the requests were begun."""
    _one_after_the_other(case, traffic)
    latest: dict[str, Request] = {}
    for request in _serial(traffic):
        for arrival in request.arrivals[:1]:
            before = latest.get(_path(arrival))
            latest[_path(arrival)] = request
            if before is None or (before.span == request.span and before.sender):
                continue
            answer = before.answer()
            if before.arrivals[0].line > arrival.line:
                case.note(arrival.place, f"the {request.words} arrived before the {before.words}, which was begun earlier")
            elif before.heard() and answer is not None and answer.line > arrival.line:
                late = f"stands after the arrival of the {request.words}"
                case.note(answer.place, f"{late}, though the sender of the {before.words} had this answer before")


def _one_after_the_other(case: Case, traffic: Traffic) -> None:
    """A dispatcher sends its next request, and a relay its second copy, only after the answer to the one before."""
    previous: dict[int, Request] = {}
    for request in traffic.requests:
        before = previous.get(id(request.process)) if request.attempt is not None and request.process else None
        if request.process:
            previous[id(request.process)] = request
        said = {answer.id: answer for answer in request.answers}
        pairs = [(said.get(first.id), second) for first, second in zip(request.arrivals, request.arrivals[1:], strict=False)]
        if before is not None and before.heard():
            pairs += [(before.answer(), arrival) for arrival in request.arrivals[:1]]
        for answer, arrival in pairs:
            if answer is not None and _path(answer) == _path(arrival) and answer.line > arrival.line:
                case.note(answer.place, f"stands after {arrival.place}, which was sent only when this answer had come")


def bounds(case: Case, step: int) -> dict[str, Bounds]:
    """How many lines each journal must at least, and can at most, have had when a step began, by its path."""
    found: dict[str, Bounds] = {}
    for store in case.stores.values():
        for journal in store.journals.values():
            least, most = 0, BEHIND_THE_END
            for record in journal.records:
                if record.span is not None and record.span[1] < step:
                    least = max(least, record.line)
                if record.span is not None and record.span[0] > step:
                    most = min(most, record.line - 1)
            found[journal.path] = (least, most)
    return found


def causes(case: Case, traffic: Traffic) -> list[tuple[Record, Record]]:
    """Pairs of records of which the first was durable before the second could be written."""
    pairs: list[tuple[Record, Record]] = []
    before: dict[str, Record] = {}
    for request in traffic.requests:
        end = request.receipt or request.closed
        chain = [before.get(_path(request.record)), request.record, *request.arrivals[:1], end]
        if request.attempt is not None and end is not None:
            before[_path(request.record)] = end
        pairs.extend(_neighbours(chain))
        pairs.extend((answer, end) for answer in request.answers[:1] if end is not None)
    for store in case.stores.values():
        arrivals, answers = store["arrivals"].by_id("arrival"), store["arrivals"].by_id("answer")
        receipts, intentions = store["receipts"].by_id("receipt"), store["intentions"].by_id("intention")
        for effect in store["effects"].records:
            name = effect.data["arrival"]
            pairs.extend(_neighbours([arrivals.get(name), effect, answers.get(name)]))
        for history in store["history"].records:
            pairs.extend(_neighbours([receipts.get(history.id), history]))
        for attempt in store["attempts"].of("attempt"):
            pairs.extend(_neighbours([intentions.get(attempt.data["intention"]), attempt]))
    return pairs


def _neighbours(chain: list[Record | None]) -> list[tuple[Record, Record]]:
    there = [record for record in chain if record is not None]
    return list(zip(there, there[1:], strict=False))  # noqa: RUF007 (itertools is not loaded at the start)

"""The order of things: what one step wrote stands before what a later step caused.

Steps that run a program to its end come one after the other, so their requests arrive one after the other, and an
answer that a sender had in hand was written before the next request was sent. A checkpoint has everything that the
steps before it wrote and nothing of the steps behind it. Programs that run beside others (started, not run) are left
out: their order is not the scenario's to say.
"""

from __future__ import annotations

from audit.case import PRODUCER, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.case import Case
    from audit.journals import Record
    from audit.wire import Request

    Bounds = tuple[int, int]

BEHIND_THE_END = 2**53


def _serial(case: Case, begun: list[Request]) -> list[Request]:
    """The requests of programs that were run to their end, in the order in which they were begun."""
    beside = {number for number, step in enumerate(case.plan["steps"], 1) if step["do"] == "start"}
    known = [request for request in begun if request.step and request.step not in beside]
    return sorted(known, key=lambda request: request.step)


def _path(record: Record) -> str:
    return record.place.rpartition(":")[0]


def check(case: Case, begun: list[Request]) -> None:
    """Hold the order of arrivals and answers against the order in which the requests were begun."""
    latest: dict[str, Request] = {}
    for request in _serial(case, begun):
        arrival = request.arrival
        if arrival is None:
            continue
        before = latest.get(_path(arrival))
        latest[_path(arrival)] = request
        if before is None or before.arrival is None:
            continue
        if before.arrival.line > arrival.line:
            case.note(arrival.place, f"the {request.words} arrived before the {before.words}, which was begun earlier")
        elif before.heard() and before.answer is not None and before.answer.line > arrival.line:
            late = f"stands after the arrival of the {request.words}"
            case.note(before.answer.place, f"{late}, though the sender of the {before.words} had this answer before")


def bounds(case: Case, begun: list[Request], step: int) -> dict[str, Bounds]:
    """How many lines each journal must at least, and can at most, have had when a step began, by its path."""
    found: dict[str, Bounds] = {}
    for record, written in _written(case, begun):
        least, most = found.get(_path(record), (0, BEHIND_THE_END))
        found[_path(record)] = (max(least, record.line), most) if written < step else (least, min(most, record.line - 1))
    return found


def _written(case: Case, begun: list[Request]) -> list[tuple[Record, int]]:
    """Records whose step is known."""
    known: list[tuple[Record, int]] = []
    for store in case.stores.values():
        told = {option(process, "--key"): process["step"] for process in reversed(store.ran(PRODUCER))}
        known.extend((record, told[record.id]) for record in store["intentions"].records if record.id in told)
    for request in _serial(case, begun):
        answer = request.answer if request.heard() else None
        for record in (request.record, request.receipt, request.closed, request.arrival, answer):
            if record is not None:
                known.append((record, request.step))
    return known

"""Sends of a dispatch outbox, as requests like those of dispatchers and clients.

`books` plays the scans over the receiver's journals and gives every arrival that one of them sent the steps between which that
scan ran; it also holds what was sent, in which order, and what became of it. Here each such arrival becomes a request of its
scan, so that receivers, orders and clocks are held as in every other scenario. An arrival without a span is held as any other:
no attempt and no client explains it.
"""

from __future__ import annotations

from audit.case import RECEIVER
from audit.requests import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.case import Case

PROGRAM = "scenarios.dispatch"


def sends(case: Case) -> list[Request]:
    """The requests that scans sent, in the order of their arrival."""
    scans = {process["step"]: process for process in case.having_run(PROGRAM)}
    found = []
    for store in case.having(RECEIVER):
        answers = store["arrivals"].by_id("answer")
        for arrival in store["arrivals"].of("arrival"):
            process = scans.get(arrival.span[0]) if arrival.span is not None else None
            if process is None or arrival.data["key"] is None:
                continue
            request = Request(arrival, arrival.data["attempt"], arrival.data["route"], None)
            request.process, request.scanned, request.left = process, True, True
            request.arrivals = [arrival]
            request.answers = [answers[arrival.id]] if arrival.id in answers else []
            request.in_hand = "--careless" not in process["command"]
            found.append(request)
    return found

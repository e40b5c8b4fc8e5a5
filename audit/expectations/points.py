"""What a process that halts at a fault point has left behind: one line a point.

A trace says whether the dispatcher's last attempt stays open (neither outcome nor receipt) and whether that attempt
was answered by a receiver. None means that the point says nothing about it. The first word of a point of a durable
write is the record's type; `TORN` names the last word of those that leave half a line.
"""

from __future__ import annotations

TORN = "torn"


class Trace:
    """The durable traces of a halt at one point."""

    __slots__ = ("answered", "open_attempt")

    def __init__(self, *, open_attempt: bool | None = None, answered: bool | None = None) -> None:
        self.open_attempt = open_attempt
        self.answered = answered


TRACES: dict[str, Trace] = {
    "send.before": Trace(open_attempt=True, answered=False),
    "send.response": Trace(open_attempt=True, answered=True),
}
NO_TRACE = Trace()

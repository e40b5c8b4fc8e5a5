"""Acknowledged means durable: what a process had recorded when it told somebody must be on every disk that a power cut leaves.

Told is what went out: a request, a response, a line on standard output. By then a server has made its effects durable, whose
answer says that they are done; and a sender has what it recorded: intentions, attempts, receipts, history. What was removed
since (a purge) is not asked for.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scenarios.explore.state import State
from scenarios.power.events import TELL, Event

SERVED = ("effects",)
SENT = ("intended", "attempts", "receipts", "history")
NOUNS = {"effects": "effect", "intended": "intention", "receipts": "receipt", "history": "history record"}


@dataclass(frozen=True, slots=True)
class View:
    """What stood in the files at one moment, as processes saw them: counts by key, and attempts in all."""

    effects: Mapping[str, int]
    intended: Mapping[str, int]
    receipts: Mapping[str, int]
    history: Mapping[str, int]
    attempts: Mapping[str, int]

    def data(self) -> dict[str, Any]:
        """As the JSON value that is archived."""
        return asdict(self)


def view(state: State) -> View:
    """What matters of a state here."""
    return View(
        dict(state.effects), dict.fromkeys(state.intended, 1), dict(state.receipts), dict(state.history), {"": state.attempts}
    )


def broken(
    events: Sequence[Event], views: Sequence[View], call: int, found: View, is_server: Callable[[str], bool]
) -> Iterator[str]:
    """What had been told before the first `call` events were over, and is not in what was `found` on the disk.

    `views[n]` is what stood in the files after n events.
    """
    met: set[tuple[str, str]] = set()
    for at, event in enumerate(events[:call]):
        if event.kind != TELL:
            continue
        for what in SERVED if is_server(event.process) else SENT:
            then, now, there = (getattr(each, what) for each in (views[at], views[call], found))
            for key, count in then.items():
                wanted, has = min(count, now.get(key, 0)), there.get(key, 0)
                if has < wanted and (what, key) not in met:
                    met.add((what, key))
                    yield _sentence(event, at + 1, (what, key), (wanted, has))


def _sentence(event: Event, number: int, which: tuple[str, str], counts: tuple[int, int]) -> str:
    what, key = which
    wanted, has = counts
    of = f"attempts recorded: {wanted}" if what == "attempts" else f"{key} had {wanted} {NOUNS[what]}{'s' * (wanted != 1)}"
    return f"{of} when {event.process} told so (call {number}, {event.path}), and {has} when the power was back"

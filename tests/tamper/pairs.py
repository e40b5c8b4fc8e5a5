"""Forgeries of two fields that belong together: both are changed to agree, so that neither gives the other away.

Each maker finds every forgery of its kind in one scenario; `pairs_of` takes a sample of them by seeded random numbers, and all
of those that hang on an answer which no count gives away (`linked`). The
forger adapts what the process records and the summaries say as far as the two fields go, and no further.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

from tests.audit.forge import sha
from tests.audit.sweep import leaves, other
from tests.tamper.draft import PROCESSES, Draft
from tests.tamper.edits import Edit
from tests.tamper.ground import Base
from tests.tamper.linked import answers, later, texts, turns

MOST_EXCHANGED = 12
"""Of this many values of one member every two are exchanged."""
Record = dict[str, Any]
Change = Callable[[Draft], None]
Pair = tuple[str, str, Change]


def _journal(base: Base, name: str) -> list[str]:
    return [path for path in base.files if path.endswith(f"/{name}.jsonl") and "/checkpoints/" not in path]


def _spots(draft: Draft, base: Base, name: str, kind: str) -> list[tuple[str, int, Record]]:
    return [
        (path, number, record["data"] | {"id": record["id"]})
        for path in _journal(base, name)
        for number, record in enumerate(draft.open(path))
        if record["type"] == kind
    ]


def _setting(*spots: tuple[str, int, str, Any]) -> Change:
    def apply(draft: Draft) -> None:
        for path, number, member, value in spots:
            draft.open(path)[number]["data"][member] = value

    return apply


def _both(one: str, member: str, two: str, other_member: str, draft: Draft) -> Iterator[Pair]:
    """Every two records of two journals (`journal/type`) whose members have the same value, both given another one."""
    base = draft.base
    for path, number, data in _spots(draft, base, *one.split("/")):
        for twin, at, mine in _spots(draft, base, *two.split("/")):
            value = data[member]
            if value is None or value != mine[other_member]:
                continue
            new = {**value, "content": other(value["content"])} if isinstance(value, dict) else other(value)
            yield path, f"{member}, {other_member}", _setting((path, number, member, new), (twin, at, other_member, new))


def _answer_and_receipt(draft: Draft) -> Iterator[Pair]:
    for path, number, data in _spots(draft, draft.base, "receipts", "receipt"):
        for twin, at, mine in _spots(draft, draft.base, "arrivals", "answer"):
            if data["result"] and mine["result_sha256"] == sha(data["result"]["content"].encode()):
                new = {**data["result"], "content": other(data["result"]["content"])}
                spots = (path, number, "result", new), (twin, at, "result_sha256", sha(new["content"].encode()))
                yield path, "result, result_sha256", _setting(*spots)


def _exit_and_summary(draft: Draft) -> Iterator[Pair]:
    codes = {"unknown": 12, "conflict": 11, "unavailable": 10, "refused": 15, "delivered": 0}
    for number, process in enumerate(draft.open(PROCESSES)["processes"]):
        if process["command"][2] != "outbox.dispatcher" or not process["stdout"]:
            continue
        summary = json.loads(process["stdout"])
        for source in codes:
            for target, code in codes.items():
                if source != target and summary[source]:
                    told = {**summary, source: summary[source] - 1, target: summary[target] + 1}
                    text = json.dumps(told) + "\n"
                    yield PROCESSES, "exit_code, stdout", _telling(number, text, code)


def _telling(number: int, text: str, code: int) -> Change:
    def apply(draft: Draft) -> None:
        process = draft.open(PROCESSES)["processes"][number]
        process.update(stdout=text, exit_code=code, expected_exit={"code": code, "signal": None})

    return apply


def _exchanged(draft: Draft) -> Iterator[Pair]:
    """Two values of the same member of records of one type, exchanged in all journals of the scenario."""
    journals = [path for path in draft.base.files if path.endswith(".jsonl")]
    values: dict[str, dict[str, Any]] = {}
    for path in journals:
        for record in draft.open(path):
            for place in leaves(record["data"]):
                value, name = record["data"], f"{record['type']} {'.'.join(map(str, place))}"
                for each in place:
                    value = value[each]
                if value is not None and not isinstance(value, bool):
                    values.setdefault(name, {})[json.dumps(value)] = value
    for name, found in values.items():
        for one, two in combinations(list(found.values())[:MOST_EXCHANGED], 2):
            yield "the journals", name, _exchanging(journals, one, two)


def _exchanging(journals: list[str], one: Any, two: Any) -> Change:
    def exchanged(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: exchanged(each) for name, each in value.items()}
        return two if value == one and type(value) is type(one) else one if value == two and type(value) is type(two) else value

    def apply(draft: Draft) -> None:
        for path in journals:
            for record in draft.open(path):
                record.update(id=exchanged(record["id"]), data=exchanged(record["data"]))

    return apply


ALWAYS: dict[str, tuple[Callable[[Draft], Iterator[Pair]], ...]] = {
    "refusal and outcome": (lambda d: answers(d, successes=False),),
    "the effect of a later arrival": (later,),
    "the turns of two clients": (turns,),
    "the text of a refusal": (texts,),
}
"""These are few, and no count gives them away: they are tried whenever anything is."""
PAIRS: dict[str, tuple[Callable[[Draft], Iterator[Pair]], ...]] = {
    "receipt and history": (lambda d: _both("receipts/receipt", "result", "history/history", "answer", d),),
    "intention and history": (lambda d: _both("intentions/intention", "body", "history/history", "question", d),),
    "effect and arrival": tuple(
        lambda d, member=member: _both("effects/effect", member, "arrivals/arrival", member, d)  # type: ignore[misc]
        for member in ("key", "fingerprint")
    ),
    "attempt and arrival": tuple(
        lambda d, member=member, two=two: _both("attempts/attempt", member, "arrivals/arrival", two, d)  # type: ignore[misc]
        for member, two in (("key", "key"), ("fingerprint", "fingerprint"))
    ),
    "attempt and receipt": (lambda d: _both("attempts/attempt", "number", "receipts/receipt", "attempt", d),),
    "effect and receipt": (lambda d: _both("effects/effect", "result", "receipts/receipt", "result", d),),
    "effect and answer": (lambda d: _both("effects/effect", "status", "arrivals/answer", "status", d),),
    "answer and receipt": (_answer_and_receipt, lambda d: _both("arrivals/answer", "status", "receipts/receipt", "status", d)),
    "process exit and summary": (_exit_and_summary,),
    "two values exchanged everywhere": (_exchanged,),
    "answer and outcome": (lambda d: answers(d, successes=True),),
    **ALWAYS,
}


def pairs_of(base: Base, chance: random.Random, share: float) -> Iterator[Edit]:
    """A sample of the two-field forgeries of one scenario."""
    draft = Draft(base)
    for name, makers in PAIRS.items():
        for make in makers:
            for path, place, apply in make(draft):
                if share and (name in ALWAYS or chance.random() < share):
                    yield Edit(f"two fields: {name}", path, place, apply, base.names)

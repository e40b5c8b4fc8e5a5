"""Forgeries of everything that hangs on one answer: the answer, its effect, what the sender wrote of it, how the sender ended.

`answers` makes each answer each refusal that a receiver knows. `later` gives the effect to the second of two arrivals, after a
refusal of the first. `turns` exchanges what two clients were answered, as if the one had gone on before the other. `texts`
gives a refusal another text, in all places of its hash. Few archives have many of these, so `tests.tamper.pairs` tries those
that no count gives away every time, however small the share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

from audit.expectations.messages import SENTENCES
from audit.ledger import REASONS
from tests.audit.forge import sha
from tests.tamper.draft import PROCESSES, Draft

Change = Callable[[Draft], None]
Linked = tuple[str, str, Change]
MOST_CLIENTS = 12
SUCCESS = ("applied", "replayed")
DRAWN = {
    "body_differs": "conflict", "key_in_flight": "in_flight", "registry_full": "unavailable", "storage_full": "unavailable",
    "storage_failed": "unavailable",
}  # fmt: skip
"""What a sender draws from a refusal; from any other one that it was refused."""
CODES = {"conflict": 11, "in_flight": 10, "unavailable": 10, "refused": 15}


def _receivers(draft: Draft) -> Iterator[str]:
    end = "/arrivals.jsonl"
    yield from (path[: -len(end)] for path in draft.base.files if path.endswith(end) and "/checkpoints/" not in path)


def _hash(reason: str) -> str:
    """The hash of a refusal's body; a registry has one place in every scenario that fills it."""
    text = SENTENCES[reason][0].replace("{capacity}", "1")
    return sha(f'{{"error":"{reason}","message":"{text}"}}'.encode())


def _ends(draft: Draft, arrival: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Where the sender of an arrival wrote how its request ended without a receipt."""
    data = arrival["data"]
    name = f"{data['key']}#{data['attempt']}" if data["attempt"] else data["sender"]
    for path in draft.base.files:
        if path.endswith(("/requests.jsonl", "/attempts.jsonl")) and "/checkpoints/" not in path:
            for at, record in enumerate(draft.open(path)):
                if record["id"] == name and record["type"] in ("outcome", "response"):
                    yield path, at


def answers(draft: Draft, successes: bool) -> Iterator[Linked]:
    """Each answer another refusal, and what its sender has of it."""
    for folder in _receivers(draft):
        path = f"{folder}/arrivals.jsonl"
        lines = draft.open(path)
        arrivals = {line["id"]: line for line in lines if line["type"] == "arrival"}
        for number, line in enumerate(lines):
            if line["type"] != "answer" or (line["data"]["outcome"] in SUCCESS) != successes or line["id"] not in arrivals:
                continue
            ends = list(_ends(draft, arrivals[line["id"]]))
            for reason, (outcome, statuses) in REASONS.items():
                for status in statuses if reason != line["data"]["reason"] else ():
                    told = {"effect": None, "outcome": outcome, "reason": reason, "status": status}
                    told["result_sha256"] = _hash(reason)
                    yield path, f"{reason} {status}", _refusing(path, number, told, ends)


def _refusing(path: str, number: int, told: dict[str, Any], ends: list[tuple[str, int]]) -> Change:
    drawn = DRAWN.get(told["reason"], "refused")

    def apply(draft: Draft) -> None:
        lines = draft.open(path)
        name = lines[number]["id"]
        lines[number]["data"] = dict(told)
        if told["reason"] == "body_incomplete":
            for line in lines:
                if line["type"] == "arrival" and line["id"] == name:
                    line["data"].update(fingerprint=None, body_bytes=None)
        for file, at in ends:
            end = draft.open(file)[at]
            end["type"] = "outcome"
            end["data"] = {
                **({name: end["data"][name] for name in ("intention", "number", "not_before") if name in end["data"]}),
                "outcome": "did_not_happen", "reason": drawn, "status": told["status"],
            }  # fmt: skip
            for process in draft.open(PROCESSES)["processes"]:
                if process["process"] == end["id"]:
                    process.update(exit_code=CODES[drawn], expected_exit={"code": CODES[drawn], "signal": None})

    return apply


def later(draft: Draft) -> Iterator[Linked]:
    """The first of two arrivals was refused, whyever, and the effect is of the second, which had been a replay."""
    for folder in _receivers(draft):
        path = f"{folder}/arrivals.jsonl"
        lines = draft.open(path)
        arrivals = {line["id"]: line for line in lines if line["type"] == "arrival"}
        told = {line["id"]: at for at, line in enumerate(lines) if line["type"] == "answer" and line["id"] in arrivals}
        for one, two in combinations(told, 2):
            first, second = lines[told[one]]["data"], lines[told[two]]["data"]
            if (first["outcome"], second["outcome"], first["effect"]) != ("applied", "replayed", second["effect"]):
                continue
            ends = list(_ends(draft, arrivals[one]))
            for reason, (outcome, statuses) in REASONS.items():
                said = {"effect": None, "outcome": outcome, "reason": reason, "status": statuses[0]}
                refuse = _refusing(path, told[one], {**said, "result_sha256": _hash(reason)}, ends)
                yield path, reason, _moving(folder, (told[one], told[two]), refuse, arrivals[two]["data"])


def _moving(folder: str, spots: tuple[int, int], refuse: Change, sent: dict[str, Any]) -> Change:
    def apply(draft: Draft) -> None:
        lines = draft.open(f"{folder}/arrivals.jsonl")
        first, second = (lines[at] for at in spots)
        second["data"] = dict(first["data"])
        for effect in draft.open(f"{folder}/effects.jsonl"):
            if effect["data"]["arrival"] == first["id"]:
                effect["data"]["arrival"] = second["id"]
        refuse(draft)
        for path in draft.base.files:
            if path.endswith(("/receipts.jsonl", "/requests.jsonl")) and "/checkpoints/" not in path:
                for record in draft.open(path):
                    mine = record["data"].get("key") == sent["key"] if sent["attempt"] else record["id"] == sent["sender"]
                    if mine and "replayed" in record["data"]:
                        record["data"]["replayed"] = False

    return apply


def turns(draft: Draft) -> Iterator[Linked]:
    """What two clients were answered exchanged: ids of answers, causes of effects, how both ended."""
    for folder in _receivers(draft):
        path = f"{folder}/arrivals.jsonl"
        senders = {line["id"]: line["data"]["sender"] for line in draft.open(path) if line["type"] == "arrival"}
        told = [line["id"] for line in draft.open(path) if line["type"] == "answer" and senders.get(line["id"])]
        for one, two in combinations(told[:MOST_CLIENTS], 2):
            if senders[one] != senders[two]:
                yield path, "answer, effect, response", _exchanging(folder, one, two, senders)


def _exchanging(folder: str, one: str, two: str, senders: dict[str, str]) -> Change:
    other = {one: two, two: one}

    def apply(draft: Draft) -> None:
        for line in draft.open(f"{folder}/arrivals.jsonl"):
            if line["type"] == "answer":
                line["id"] = other.get(line["id"], line["id"])
        for effect in draft.open(f"{folder}/effects.jsonl"):
            effect["data"]["arrival"] = other.get(effect["data"]["arrival"], effect["data"]["arrival"])
        ends: dict[str, dict[str, Any]] = {}
        for path in draft.base.files:
            if path.endswith("/requests.jsonl") and "/checkpoints/" not in path:
                ends.update({line["id"]: line for line in draft.open(path) if line["type"] != "request"})
        first, second = ends.get(senders[one]), ends.get(senders[two])
        if first is not None and second is not None:
            for member in ("type", "data"):
                first[member], second[member] = second[member], first[member]
        ran = {process["process"]: process for process in draft.open(PROCESSES)["processes"]}
        for member in ("exit_code", "expected_exit"):
            mine, theirs = ran[senders[one]], ran[senders[two]]
            mine[member], theirs[member] = theirs[member], mine[member]

    return apply


def texts(draft: Draft) -> Iterator[Linked]:
    """The hash of a refusal, in all its places, that of another refusal, of a result, and of nothing that was ever said."""
    journals = [path for path in draft.base.files if path.endswith("/arrivals.jsonl")]
    said = [line["data"] for path in journals for line in draft.open(path) if line["type"] == "answer"]
    known = {_hash(reason) for reason in REASONS} | {data["result_sha256"] for data in said} | {sha(b"nobody said this")}
    for old in sorted({data["result_sha256"] for data in said if data["outcome"] not in SUCCESS}):
        for new in sorted(known - {old}):
            yield journals[0], "result_sha256", _saying(journals, old, new)


def _saying(journals: list[str], old: str, new: str) -> Change:
    def apply(draft: Draft) -> None:
        for path in journals:
            for line in draft.open(path):
                if line["data"].get("result_sha256") == old and line["data"]["outcome"] not in SUCCESS:
                    line["data"]["result_sha256"] = new

    return apply

"""The dispatchers' passes, one after the other, against their summaries, exit codes and fault points.

The attempts of an outbox are dealt out to its dispatchers in order: one that ended by itself says in its summary how
many it began, one that died leaves off at its open attempt. So every open attempt has its death, every death the
traces that its point leaves (`expectations.points`), every summary the tally of its own pass. Producers' lines and
torn tails are held here as well.
"""

from __future__ import annotations

from audit.case import DISPATCHER, HALTED, PRODUCER, WRITES, died, label, module_of, option
from audit.expectations.points import NO_TRACE, TORN, TRACES
from audit.findings import show
from audit.journals import SHAPES
from audit.shapes import COUNT, holds
from audit.strict_json import Malformed, parse_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.case import Case, Store
    from audit.findings import Note
    from audit.journals import Journal
    from audit.wire import Request

FATES = ("delivered", "unavailable", "conflict", "refused", "unknown")
SUMMARY = {
    name: COUNT for name in ("intentions", "already_delivered", *FATES, "not_attempted", "history_added")
}  # fmt: skip
CODES = {10: "unavailable", 11: "conflict", 12: "unknown", 15: "refused"}
FATE_OF = {
    "conflict": "conflict",
    "refused": "refused",
    **dict.fromkeys(("connection_refused", "connect_timeout", "unreachable", "unavailable"), "unavailable"),
}


def check(case: Case, begun: list[Request]) -> None:
    """Hold every pass of every dispatcher, every producer's line, and every torn tail."""
    for store in case.stores.values():
        for process in store.ran(PRODUCER):
            _producer(store, process, case.note)
        if store.ran(DISPATCHER):
            mine = {record.place for record in store["attempts"].of("attempt")}
            _passes(store, [request for request in begun if request.record.place in mine], case.note)
        for journal in store.journals.values():
            if journal.tail:
                _tail(store, journal, case.note)


def _document(process: dict[str, Any], note: Note) -> dict[str, Any] | None:
    """The one JSON line that a process printed."""
    place = f"processes.json {label(process)}.stdout"
    try:
        return parse_document(process["stdout"].encode("utf-8", "surrogatepass"))
    except Malformed as problem:
        note(place, f"{show(process['stdout'])} is not the one JSON line that was expected: {problem}")
        return None


def _producer(store: Store, process: dict[str, Any], note: Note) -> None:
    if process["exit_code"] != 0:
        return
    said = _document(process, note)
    wanted = {"intention": option(process, "--key"), "created": not _again(store, process)}
    if said is not None and said != wanted:
        note(f"processes.json {label(process)}.stdout", f"is {show(said)}, expected {show(wanted)}")


def _again(store: Store, process: dict[str, Any]) -> bool:
    """Whether an earlier producer wrote the same intention already."""
    key = option(process, "--key")
    return any(option(other, "--key") == key for other in store.ran(PRODUCER) if other["step"] < process["step"])


def _passes(store: Store, attempts: list[Request], note: Note) -> None:
    at = 0
    receipts = history_least = history_most = 0
    for process in store.ran(DISPATCHER):
        place = f"processes.json {label(process)}"
        if died(process):
            mine = _until_open(attempts, at)
            at += len(mine)
            _belong(mine, process)
            receipts += sum(request.receipt is not None for request in mine)
            history_most = receipts
            _traces(process, mine, note)
            if process["stdout"]:
                note(f"{place}.stdout", f"is {show(process['stdout'])}, but a process that died printed nothing")
            continue
        said = _document(process, note) if process["exit_code"] in (0, *CODES) else None
        if said is None or not holds(said, dict(SUMMARY), note, f"{place}.stdout"):
            continue
        mine = attempts[at : at + sum(said[fate] for fate in FATES)]
        at += len(mine)
        _belong(mine, process)
        for request in mine:
            if request.receipt is None and request.closed is None:
                lives = f"but {label(process)} did not die"
                note(request.record.place, f"the {request.words} has neither outcome nor receipt, {lives}")
        _summary(store, process, said, mine, receipts=receipts, note=note)
        receipts += said["delivered"]
        if not receipts - history_most <= said["history_added"] <= receipts - history_least:
            wanted = f"from {receipts - history_most} to {receipts - history_least}"
            note(f"{place}.stdout", f"history_added is {said['history_added']}, expected {wanted}")
        history_least = history_most = receipts
    for request in attempts[at:]:
        note(request.record.place, f"the {request.words} was begun by no dispatcher: their summaries leave no room for it")
    if not history_least <= len(store["history"].of("history")) <= max(history_most, receipts):
        found = len(store["history"].of("history"))
        note(store["history"].path, f"has {found} records, but the dispatchers' passes leave {history_least} to {history_most}")


def _belong(mine: list[Request], process: dict[str, Any]) -> None:
    for request in mine:
        request.step = process["step"]


def _until_open(attempts: list[Request], at: int) -> list[Request]:
    """The attempts of a dispatcher that died: up to and with the first that stayed open."""
    for end in range(at, len(attempts)):
        if attempts[end].receipt is None and attempts[end].closed is None:
            return attempts[at : end + 1]
    return []


def _traces(process: dict[str, Any], mine: list[Request], note: Note) -> None:
    """A process that halted at a point left what the point leaves."""
    fault = process["fault"]
    if fault is None or process["exit_code"] != HALTED:
        return
    trace = TRACES.get(fault["point"], NO_TRACE)
    where = f"{fault['point']}#{fault['occurrence']}"
    place = f"processes.json {label(process)}"
    if trace.open_attempt and not mine:
        note(place, f"halted at {where}, but no attempt stayed open")
        return
    if trace.open_attempt is None:
        return
    mine[-1].in_hand = trace.answered is True
    if trace.answered is True and mine[-1].answer is None:
        note(place, f"halted at {where} with a response in hand, but no receiver answered the {mine[-1].words}")
    if trace.answered is False and mine[-1].arrival is not None:
        note(place, f"halted at {where} before anything was sent, but the {mine[-1].words} arrived")
    passed = [request for request in mine[:-1] if not trace.answered or request.answer is not None]
    if len(passed) + 1 != fault["occurrence"]:
        note(place, f"halted at {where}, but its attempts reached the point {len(passed) + 1} times")


def _fate(request: Request) -> str:
    if request.receipt is not None:
        return "delivered"
    return FATE_OF.get(request.closed.data["reason"], "unknown") if request.closed is not None else "unknown"


def _summary(
    store: Store, process: dict[str, Any], said: dict[str, Any], mine: list[Request], *, receipts: int, note: Note
) -> None:
    """A summary is the tally of its pass, and the exit code follows from it."""
    place = f"processes.json {label(process)}.stdout"
    producers = [other for other in store.ran(PRODUCER) if other["step"] < process["step"] and not died(other)]
    wanted = dict.fromkeys(FATES, 0)
    for request in mine:
        wanted[_fate(request)] += 1
    wanted["intentions"] = len({option(other, "--key") for other in producers})
    wanted["already_delivered"] = receipts
    wanted["not_attempted"] = wanted["intentions"] - receipts - len(mine)
    for name, count in wanted.items():
        if said[name] != count:
            note(place, f"{name} is {said[name]}, but the journals have {count}")
    code = process["exit_code"]
    left = [name for name in (*FATES[1:], "not_attempted") if said[name]]
    if (code == 0) != (not left) or (code in CODES and not said[CODES[code]]):
        note(f"processes.json {label(process)}.exit_code", f"is {code}, which does not go with {show(said)}")


def _tail(store: Store, journal: Journal, note: Note) -> None:
    """A torn tail is there only where the last process that opened the journal was halted in that very write."""
    writers = [process for process in store.processes if journal.name in WRITES[module_of(process)]]
    last = writers[-1]
    point = last["fault"]["point"].split(".") if last["fault"] and last["exit_code"] == HALTED else [""]
    if point[-1] != TORN or point[0] not in SHAPES[journal.name]:
        note(journal.path, f"ends with a torn tail of {len(journal.tail)} bytes, but {label(last)} was not halted there")

"""The relay's journal of one case: it is in its form, and each fault of the case's name was done to its connection.

A cut that never came proves nothing. Only somebody's death in the same round may have kept it from coming.
"""

from __future__ import annotations

from audit.campaign_words import CUT
from audit.findings import show
from audit.journals import read as read_journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.campaign_history import HistoryPlay
    from audit.campaign_plan import Fault
    from audit.campaign_play import Play
    from audit.campaign_state import States
    from audit.findings import Note

EXCHANGES = "relay/exchanges.jsonl"
UNSENT = ("redirect", "retry-after-seconds", "retry-after-date")
REPLACED = (*UNSENT, "unreadable-success", "oversized-success")


def hold(states: States, folder: str, play: Play | HistoryPlay, note: Note) -> None:
    """Hold the journal of the case in `folder`; a fault that was not done becomes a doubt of `play`."""
    if folder + EXCHANGES not in states.tree.sizes:
        return
    journal = read_journal(states.tree, folder + EXCHANGES, "exchanges", note)
    faults = {fault.number: (at, fault) for at, fault in play.case.faults(CUT)}
    for at, record in enumerate(journal.records, 1):
        if record.id != f"connection-{at}":
            note(f"{record.place} id", f"is {show(record.id)}, expected 'connection-{at}'")
        data = record.data
        wanted = faults[at][1].what if at in faults else "none"
        if data["fault"] not in ("none", wanted):
            note(record.place, f"has the fault {show(data['fault'])}, but the case's name has {show(wanted)} for it")
        for side in ("request", "response"):
            whole, forwarded = data[f"{side}_bytes"], data[f"{side}_forwarded_bytes"]
            if data["fault"] == "none" and whole != forwarded:
                note(record.place, f"forwarded {forwarded} of {whole} bytes of a {side} without any fault")
    if play.case.history is not None:
        return  # there a connection need not come
    found = {record.id: record.data for record in journal.records}
    died = {number for number, _ in play.deaths}
    for round_, fault in faults.values():
        exchange = found.get(f"connection-{fault.number}")
        if round_ <= play.rounds and round_ not in died and (exchange is None or not _done(fault, exchange)):
            play.doubts.append(f"round {round_}: {fault.what} was to be done to connection {fault.number} and was not")


def _done(fault: Fault, data: dict[str, Any]) -> bool:
    """Whether the sizes of an exchange are those of one to which this was done, as far as sizes tell."""
    asked, sent = data["request_bytes"], data["request_forwarded_bytes"]
    answered, given = data["response_bytes"], data["response_forwarded_bytes"]
    how, _, place = fault.what.partition(":")
    if data["fault"] != fault.what or not asked:
        return False
    if place:
        of_request = how.endswith("-request")
        whole, passed = (asked, sent) if of_request else (answered, given)
        broken_off = passed == whole if place == "end" else passed < whole
        return bool(whole and broken_off and not (of_request and given))
    if sent != (0 if how in UNSENT else asked):
        return False
    if how == "hold-response":
        return bool(answered and not given)
    return given != answered if how in REPLACED else True

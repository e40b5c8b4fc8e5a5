"""What the listings of system calls say: which calls of a run can be struck, which windows no fault point covers, whether the
call that was to be struck was, and what may not follow from it.

A listing has a line for each call: thread, name, target, bytes, offset, whether it changes something, result. Counted are
calls on paths that the process changes, by name and in their order; of sockets all calls of the first thread.
"""

from __future__ import annotations

import re

from audit.campaign_words import (
    ERRORS,
    EXPLAINED,
    INJECTED,
    KILLED,
    ON_FILES,
    ON_SOCKETS,
    OPENS,
    REFUSED_NOT,
    SHORT,
    SYNCS,
    TCP,
    WRITES,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from audit.findings import Note

JOURNAL, POINT = ".jsonl", "point"
GOOD = ("ok", "EINPROGRESS")
_LINE = re.compile(r"([1-9]\d*) ([a-z0-9_]+) ([!-~]+) (\d+) (\d+|-) (changes|counts) (-|ok|\d+!?|E[A-Z0-9]+!?|ok!)")


class Call:
    """One line of a listing."""

    __slots__ = ("changes", "name", "offset", "result", "size", "target", "thread")

    def __init__(self, parts: tuple[str, ...]) -> None:
        self.thread = int(parts[0])
        self.name = parts[1]
        self.target = parts[2].replace("%20", " ")
        self.size = int(parts[3])
        self.offset = parts[4]
        self.changes = parts[5] == "changes"
        self.result = parts[6]

    @property
    def told(self) -> str:
        """Name and target."""
        return f"{self.name} {self.target}"

    @property
    def good(self) -> bool:
        """Whether it did what it was to do."""
        return self.result in GOOD or self.result.isdigit()


def read(data: bytes, note: Note, place: str) -> list[Call]:
    """The calls of a listing; a line in another form is a finding, and ends it."""
    found = []
    lines = data.decode("ascii", "replace").split("\n")
    if lines.pop():
        note(place, "does not end with a newline")
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if match is None or (match[2] not in (*ON_FILES, *ON_SOCKETS, POINT)):
            note(f"{place}, line {number}", "is no call in the form that a listing has")
            break
        found.append(Call(match.groups()))
    return found


def _watched(calls: list[Call]) -> set[str]:
    return {call.target for call in calls if call.changes and call.name in ON_FILES}


def _numbered(calls: list[Call]) -> Iterator[tuple[Call, int, bool]]:
    """The calls that count, each with its number, and whether a counted call on files came before it."""
    watched, counts, before = _watched(calls), dict.fromkeys((*ON_FILES, *ON_SOCKETS), 0), False
    for call in calls:
        if call.target in watched if call.name in ON_FILES else (call.name in ON_SOCKETS and call.thread == 1):
            counts[call.name] += 1
            yield call, counts[call.name], before
            before = before or call.name in ON_FILES


def strikes(calls: list[Call]) -> Iterator[tuple[str, int, str]]:
    """Name, number and error of everything that can be done to the calls of one process, in the order of the cases."""
    for call, number, before in _numbered(calls):
        for error in (KILLED, *ERRORS.get(call.name, ())) if call.changes else ():
            if error != SHORT or (before and call.size > 1):
                yield call.name, number, error


def threads(calls: list[Call]) -> list[str]:
    """The names of calls whose numbers are not one place, because more than one thread makes them."""
    watched = _watched(calls)
    found = [
        name for name in ON_FILES if len({call.thread for call in calls if call.name == name and call.target in watched}) > 1
    ]
    return found + [
        name for name in ON_SOCKETS if any(call.name == name and call.thread > 1 and call.target == TCP for call in calls)
    ]


def windows(listed: list[dict[str, list[Call]]]) -> list[dict[str, Any]]:
    """The windows of a run whose points are marked in its listings, as windows.json has them."""
    counts: dict[tuple[str, str, str], int] = {}
    for each in listed:
        for process, calls in each.items():
            last: Call | None = None
            for call in calls:
                if call.name == POINT:
                    last = None
                elif call.changes:
                    if last is not None:
                        key = (process, last.told, call.told)
                        counts[key] = counts.get(key, 0) + 1
                    last = call
    return [
        {"process": key[0], "first": key[1], "second": key[2], "count": count, "why": _why(key[1], key[2])}
        for key, count in counts.items()
    ]


def _why(first: str, second: str) -> str | None:
    for before, behind, why in EXPLAINED:
        if re.fullmatch(before, first) and re.fullmatch(behind, second):
            return why
    return None


def struck(calls: list[Call], name: str, number: int, error: str) -> int | None:
    """Which line shows that the call was struck, from 0; None where none does."""
    of_name = [at for at, call in enumerate(calls) if call.name == name]
    if len(of_name) < number:
        return None
    at = of_name[number - 1]
    wanted = f"{error}{INJECTED}" if error else "-"
    if error == SHORT:
        wanted = str(calls[at].size // 2)
    return at if calls[at].result == wanted else None


def relied_on(process: str, calls: list[Call], at: int, error: str) -> str | None:
    """What was recorded on the strength of a call that failed or wrote a part; None where nothing was."""
    failed, later = calls[at], calls[at + 1 :]
    journal, folder = failed.target.endswith(JOURNAL), failed.name in SYNCS and not failed.target.endswith(JOURNAL)
    if error == SHORT:
        own = [call for call in later if call.target == failed.target and call.name in (*WRITES, *SYNCS, "ftruncate")]
        short = journal and own and own[0].name in SYNCS
        return f"{process}: {own[0].told}, though only a part of a record had been written" if short else None
    if error in REFUSED_NOT or failed.name not in (*WRITES, *SYNCS) or not (journal or folder):
        return None
    cut_back = False
    for call in later:
        if not call.good or not call.target.endswith(JOURNAL):
            continue
        if call.target == failed.target:
            if call.name in OPENS:
                break  # it is read and checked from its beginning
            cut_back = cut_back or call.name == "ftruncate"
            if failed.name in SYNCS and call.name in (*WRITES, *SYNCS):
                return f"{process}: {call.told} after its sync had failed"
        if (
            call.name in WRITES
            and not cut_back
            and (not folder or failed.target == "." or call.target.startswith(f"{failed.target}/"))
        ):
            return f"{process}: {call.told}, on the strength of {failed.told}, which had failed"
    return None

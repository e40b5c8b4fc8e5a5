"""The files of one kept case, or of one run without faults: which there must be, and what follows from them.

Its processes are played again, its last state and the state that each death left are read, and the verdict is derived; all
of it must be what the case's line in `results.jsonl` says.
"""

from __future__ import annotations

from audit import campaign_exchanges, campaign_play, campaign_struck
from audit.campaign_exchanges import EXCHANGES
from audit.campaign_history import HistoryPlay
from audit.campaign_power import UNREADABLE
from audit.campaign_state import OTHERS, RECEIVER, SENDER, counted
from audit.campaign_verdicts import kinds, outcome, violations
from audit.campaign_words import RELAY, declared, is_line
from audit.findings import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from audit.campaign_plan import Case, Subject
    from audit.campaign_play import Play, Setting
    from audit.campaign_state import State, States
    from audit.findings import Note

    Reached = dict[str, dict[str, int]]
    Listed = dict[str, list[str]]

JOURNALS = (*SENDER, *RECEIVER, *OTHERS)
LOCK, END, PROCESSES = "outbox/dispatcher.lock", "exports/end.json", "processes.json"
POINTS = {point: point for point in declared()}
UNREAD = "what is durable cannot be read"


class Folder:
    """The files below one folder of the archive, and those of them that belong there."""

    __slots__ = ("expected", "names", "path")

    def __init__(self, path: str, names: list[str]) -> None:
        self.path = path
        self.names = names
        self.expected = {name for name in names if name in JOURNALS} | {PROCESSES}

    def paths(self) -> set[str]:
        """The expected files, as paths of the archive."""
        return {self.path + name for name in self.expected}


class Derived:
    """What follows from the files of one case."""

    __slots__ = ("before", "doubts", "listed", "more", "play", "state", "violations")

    def __init__(
        self, play: Play | HistoryPlay, state: State, listed: list[Listed], finished: bool, beside: tuple[list[str], list[str]]
    ) -> None:
        self.before, self.more = beside
        self.play = play
        self.state = state
        self.listed = listed
        self.violations = [*self.before, *violations(play.case, state, finished), *self.more]
        self.doubts = play.doubts


def derive(
    states: States, folder: Folder, played: tuple[Case, Setting], note: Note, line: dict[str, Any] | None = None
) -> Derived | None:
    """Read a case's folder; None, with findings, where its processes cannot be played again."""
    doubted = line is not None and bool(line["doubts"])
    tree, (case, setting) = states.tree, played

    def local(place: str, sentence: str) -> None:
        note(place if place.startswith(folder.path) else f"{folder.path}{place}", sentence)

    records = campaign_play.records(tree, folder.path + PROCESSES, note)
    if records is None:
        return None
    player = campaign_play.Play if case.history is None else HistoryPlay
    play = player(case, setting, records, local, doubted=doubted).run()
    if isinstance(play, HistoryPlay) and line is not None:
        play.in_order(line["deaths"])
    modules = {record["command"][2] for record in records if len(record["command"]) > 2}
    if case.subject.database:
        folder.expected.add(END)
    if not case.subject.known:
        folder.expected |= {
            name for name in folder.names if name.partition("/")[0] not in ("left", "points", "relay", "exports")
        }
    if "outbox.dispatcher" in modules:
        folder.expected.add(LOCK)
        if tree.sizes.get(folder.path + LOCK):
            local(LOCK, "is not empty; nothing is ever written into it")
    if any(record["process"] == RELAY for record in records):
        folder.expected.add(EXCHANGES)
        campaign_exchanges.hold(states, folder.path, play, local)
    export = folder.path + END if case.subject.database else None
    if export is not None and export not in tree.sizes and line is not None and unread(line):
        folder.expected.discard(END)
        export = None
    state = states.read(folder.path, folder.names, case.subject, export, note)
    rounds = line["rounds"] if line is not None and doubted else play.rounds
    by_line = setting.listing == "LINES_TO"
    listed = _points(states, folder, (case, rounds), local, by_line=by_line) if setting.observed else []
    more = _struck(states, folder, (play, rounds), listed, local)
    finished = play.settled and play.rounds >= len(case.rounds) and not state.unfinished
    if not (finished or play.rounds == play.most_rounds or play.broken or play.doubts):
        play.doubts.append(f"round {play.rounds}: nobody went on, though something was left to do")
    before = _image(states, folder, (case, setting), line, local) if line is not None else []
    found = Derived(play, state, listed, finished, (before, more))
    if not found.violations:
        for lines in state.lines.values():
            for place, sentence in lines.notes:
                local(place, sentence)
    return found


def _struck(
    states: States, folder: Folder, played: tuple[Play | HistoryPlay, int], listed: list[Listed], note: Note
) -> list[str]:
    """Hold the system calls that a case has listed; what their strikes broke. A history strikes none."""
    play, rounds = played
    if isinstance(play, HistoryPlay):
        return []
    called = campaign_struck.listings(states, folder, (play.case, rounds), note)
    if play.setting.observed and play.setting.recorded:
        campaign_struck.hold_marks(called, listed, note)
    return campaign_struck.followed(play, called, folder.path, note)


def unread(line: dict[str, Any]) -> bool:
    """Whether a case is in doubt because its files could not be read."""
    return any(UNREAD in each for each in line["doubts"])


def hold(states: States, folder: Folder, played: tuple[Case, Setting], line: dict[str, Any], note: Note) -> None:
    """Hold the files of a kept case against its line."""
    found = derive(states, folder, played, note, line)
    if found is None:
        return
    play = found.play
    lefts = _left(states, folder, play.case.subject, line, note)
    wanted: dict[str, Any] = {
        "counts": found.state.counts(), "digest": found.state.digest, "processes": len(play.records),
    }  # fmt: skip
    if not play.broken:
        wanted.update(_followed(found, lefts, line, lambda said: note(folder.path, said)))
    for member, value in wanted.items():
        if line[member] != value and not (unread(line) and member != "processes"):
            note(folder.path, f"gives the {member} {show(value)}, but results.jsonl has {show(line[member])}")
    if "reached" in line:
        hold_reached(line["reached"], found, lambda said: note(f"{folder.path}points/", said))


def _followed(found: Derived, lefts: list[State], line: dict[str, Any], note: Callable[[str], None]) -> dict[str, Any]:
    """The members of a line that follow from processes that could be played to their end."""
    play, told, broken = found.play, line["doubts"], found.violations
    if told and line["violations"] != broken:  # it may have been given up though nothing was left to do
        broken = [*found.before, *violations(play.case, found.state, False), *found.more]
    for doubt in [] if told else play.doubts:
        note(f"shows what the line does not doubt: {doubt}")
    idle = play.settled and play.rounds == play.most_rounds and bool(found.state.unfinished)
    same = bool(lefts) and lefts[-1].digest == found.state.digest
    if idle and same and not play.said_after_deaths and not any(each.startswith("recovery did nothing") for each in told):
        note("shows that recovery did nothing since the last death, and the line does not doubt it")
    return {
        "violations": broken,
        "kinds": kinds(broken),
        "verdict": outcome(broken, told),
        "rounds": play.rounds,
        "deaths": [
            {
                "process": fault.process, "point": fault.what, "occurrence": fault.number, "round": number,
                "left": left.told, "digest": left.digest,
            }
            for (number, fault), left in zip(play.deaths, lefts, strict=False)
        ],
    }  # fmt: skip


def _image(states: States, folder: Folder, played: tuple[Case, Setting], line: dict[str, Any], note: Note) -> list[str]:
    """Hold what a loss of power left against the recording; what is wrong with that."""
    case, setting = played
    power, recorded = case.power, setting.images
    if power is None or recorded is None or "image" not in line:
        return []
    names = [name.removeprefix("image/") for name in folder.names if name.startswith("image/")]
    tables = "image/tables.json"
    folder.expected |= {f"image/{name}" for name in names if name in JOURNALS}
    if case.subject.database or not [name for name in names if name in JOURNALS]:
        folder.expected.add(tables)
    image = recorded.image(int(power.what), power.number)
    for name in (*SENDER, *RECEIVER):
        kept = states.tree.read(f"{folder.path}image/{name}") if name in names else None
        if kept != image.get(name):
            note(f"image/{name}", "is not what the recorded calls leave there")
    path = folder.path + tables if case.subject.database and tables in folder.names else None
    told = line["image"]
    if any(UNREADABLE in each for each in line["violations"]):
        return [each for each in line["violations"] if UNREADABLE in each]
    state = states.read(f"{folder.path}image/", names, case.subject, path, note)
    for member, value in (("left", state.told), ("digest", state.digest)):
        if told[member] != value:
            note(f"image/ {member}", f"gives {show(value)}, but results.jsonl has {show(told[member])}")
    return recorded.broken(int(power.what), state)


def hold_reached(told: list[Reached], found: Derived, note: Callable[[str], None]) -> None:
    """Hold the points that are told of each round against the lists, also in which order they came first.

    A server that lives on lists the points of later rounds behind those of its first.
    """
    if len(told) != len(found.listed):
        note(f"are of {len(found.listed)} rounds, but {len(told)} are told of")
        return
    assert isinstance(found.play, campaign_play.Play)
    servers = {role["process"] for role in found.play.case.subject.roles if role["server"]}
    for number, (reached, listed) in enumerate(zip(told, found.listed, strict=True), 1):
        if list(reached) != list(listed):
            note(f"are those of {show(list(listed))} in round {number}, but {show(list(reached))} are told of")
            continue
        for process, points in reached.items():
            on = process in servers and not found.play.setting.restarts
            of_round = listed[process][: sum(points.values())] if on else listed[process]
            counts = counted(of_round)
            if list(counts.items()) != list(points.items()):
                note(f"give {show(counts)} for {process} in round {number}, but {show(points)} are told of")


def _left(states: States, folder: Folder, subject: Subject, line: dict[str, Any], note: Note) -> list[State]:
    """The states that the deaths left, each as the line tells of it."""
    found = []
    for number, told in enumerate(line["deaths"], 1):
        prefix = f"left/{number}/"
        names = [name.removeprefix(prefix) for name in folder.names if name.startswith(prefix)]
        folder.expected |= {prefix + name for name in names if name in JOURNALS}
        journals = [name for name in names if name in JOURNALS]
        tables = f"{prefix}tables.json"
        if tables in folder.names and (subject.database or not journals):
            folder.expected.add(tables)
        if not names:
            note(folder.path + prefix, "is missing: what a death leaves is kept")
        path = folder.path + tables if tables in folder.names else None
        state = states.read(folder.path + prefix, names, subject, path, note)
        found.append(state)
        if path is not None and not subject.database and states.tables(path, note):
            note(path, "has rows, but the subject has no database")
        for member, value in (("left", state.told), ("digest", state.digest)):
            if told[member] != value:
                note(folder.path + prefix, f"gives {show(value)}, but results.jsonl has {show(told[member])}")
    return found


def _points(states: States, folder: Folder, played: tuple[Case, int], note: Note, *, by_line: bool) -> list[Listed]:
    """The points, or lines, that each round's processes listed, in the order of the roles."""
    found: list[Listed] = []
    case, rounds = played
    for number in range(1, rounds + 1):
        listed: Listed = {}
        for role in case.subject.roles:
            name = f"points/{number}.{role['process']}"
            if name not in folder.names:
                continue
            folder.expected.add(name)
            data = states.tree.read(folder.path + name) or b""
            if data and not data.endswith(b"\n"):
                note(name, "does not end with a newline")
            points = [POINTS.get(point, point) for point in data.decode("ascii", "replace").split("\n")[:-1]]
            listed[role["process"]] = points
            for point in points:
                if not (is_line(point) if by_line else point in POINTS or not case.subject.known):
                    note(name, f"has {show(point)}, which is no {'line' if by_line else 'point'}")
        found.append(listed)
    return found

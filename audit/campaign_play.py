"""Plays a case again from its process records: who must have been started, with what, in which order, and who died.

Each process that a round starts takes the next record of the case, which must be exactly that process; how it ended decides
what comes next. What comes of it is who died where and when, in how many rounds, whether recovery was over, and what must be in
doubt.
"""

from __future__ import annotations

from audit.campaign_words import CUT, DEATH, LINES, PAUSE, RELAY, SPARE_ROUNDS, START_SECONDS, SYSCALLS, WIRE, is_line
from audit.case import HALTED
from audit.findings import show
from audit.processes import EXIT, FAULT, PROCESS, RESOURCES
from audit.shapes import LIST, exactly, holds
from audit.strict_json import Malformed, parse_laid_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.campaign_plan import Case, Fault, Subject
    from audit.campaign_power import Recorded
    from audit.files import Tree
    from audit.findings import Note
    from audit.shapes import Shape

    Record = dict[str, Any]

DOCUMENT: Shape = {"format": exactly("halt23.processes"), "format_version": exactly(1), "processes": LIST}
READY = "READY 127.0.0.1:"
ITSELF = "itself"
DATABASES = {"sqlite": "state/dispatch.db", "postgres": "postgresql://postgres@127.0.0.1:"}
"""How what stands for `{db}` begins on each store."""


class Setting:
    """How the cases of a level are played: `observed`, every round with new servers, on which store, with files prepared.

    Where calls are `recorded` every process lists them; the runs that are only recorded have new servers in every round.
    `images` are what a loss of power may leave.
    """

    __slots__ = ("database", "images", "listing", "observed", "prepares", "recorded", "restarts")

    def __init__(self, plan: dict[str, Any], observed: bool, baseline: bool = False, images: Recorded | None = None) -> None:
        self.observed = observed
        self.listing = "LINES_TO" if plan["mode"] == LINES else "POINTS_TO"
        self.images = images
        self.database = DATABASES.get(plan["store"], "")
        self.recorded = baseline and plan["mode"] == SYSCALLS
        self.restarts = (plan["depth"] > 1 and plan["mode"] != WIRE) or (self.recorded and not observed)
        self.prepares = not baseline and plan["store"] in (None, "sqlite")


def records(tree: Tree, path: str, note: Note) -> list[Record] | None:
    """The process records of a case; None, with findings, where they cannot be worked with."""
    data = tree.read(path) if path in tree.sizes else None
    if data is None:
        note(path, "is missing, or no regular file")
        return None
    try:
        document, in_layout = parse_laid_out(data)
    except Malformed as problem:
        note(path, f"cannot be read: {problem}")
        return None
    if not in_layout:
        note(path, "is not in the study's layout: a line for each member and item, one blank a level")
    if not holds(document, DOCUMENT, note, f"{path} "):
        return None
    good = [_shaped(record, note, f"{path} processes[{at}]") for at, record in enumerate(document["processes"])]
    return document["processes"] if all(good) else None


def _shaped(record: Record, note: Note, place: str) -> bool:
    if not holds(record, PROCESS, note, place):
        return False
    code = record["exit_code"]
    if (code is None) == (record["signal"] is None) or not (code is None or (type(code) is int and 0 <= code <= 255)):
        note(place, f"has exit code {show(code)} and signal {show(record['signal'])}, expected exactly one of them")
        return False
    if record["ended_seconds"] < record["started_seconds"]:
        note(place, "ended before it was started")
    parts = [record[name] is None or holds(record[name], FAULT, note, f"{place}.{name}") for name in ("fault", "pause")]
    parts.append(holds(record["expected_exit"], EXIT, note, f"{place}.expected_exit"))
    parts.append(holds(record["resources"], RESOURCES, note, f"{place}.resources"))
    return all(parts)


class Play:
    """One case, played from its records. `broken` says that a record did not fit; nothing after it was held.

    A case that is in doubt (`doubted`) may have been given up in the middle: then only what a record says of its own start is
    held against it.
    """

    def __init__(self, case: Case, setting: Setting, found: list[Record], note: Note, *, doubted: bool = False) -> None:
        self._doubted = doubted
        self.case, self.setting, self.records, self._note = case, setting, found, note
        self.deaths: list[tuple[int, Fault]] = []
        self.doubts: list[str] = []
        self.rounds = 0
        self.settled = False
        self.broken = False
        self._at = 0
        self._ports: dict[str, str] = {}
        self.count: dict[str, int] = {}
        self._last: dict[str, Record] = {}
        once = {role["process"] for role in case.subject.roles if role["once"]}
        self._done = set(once) if setting.prepares and not once & case.struck else set()
        self._first = 1
        if case.power is not None and setting.images is not None:
            # The round in which the power was lost was recorded, and is not played.
            self._first, self._done = 2, setting.images.done(int(case.power.what))

    def run(self) -> Play:
        """Play all rounds that the records have."""
        for number in range(self._first, len(self.case.rounds) + SPARE_ROUNDS + 1):
            if self._at == len(self.records) or self.broken:
                break
            self.rounds = number
            self.settled = self._round(number)
        if self._at < len(self.records) and not self.broken:
            record = self.records[self._at]
            self._wrong(record, "stands behind the last process that the case's rounds start")
        return self

    @property
    def said_after_deaths(self) -> bool:
        """Whether a program of a round behind the last death, and no server, has printed anything: then it has looked."""
        return said_after(self.deaths, self.records, self.case.subject)

    @property
    def most_rounds(self) -> int:
        """After so many rounds nothing more is tried."""
        return len(self.case.rounds) + SPARE_ROUNDS

    def _wrong(self, record: Record, sentence: str, *, always: bool = False) -> None:
        if always or not self._doubted:
            self._note(f"processes.json {record['process']} (incarnation {record['incarnation']})", sentence)
        self.broken = True

    def _round(self, number: int) -> bool:
        settled = True
        armed: list[Record] = []
        for role in self.case.subject.roles:
            if role["server"]:
                settled = self._serve(role, number, armed) and settled
            elif role["process"] not in self._done and role["after"] in (None, *self._done):
                settled = self._work(role, number) and settled
            if self.broken:
                return False
        for record in armed:
            struck = self.case.armed(number, record["process"])
            if record["exit_code"] == HALTED or (struck is not None and struck.call and struck.kind == DEATH):
                settled = self._died(record, number)
            elif record["ended_by"] == ITSELF:
                settled = False  # a call of it failed, and it has ended
        for fault in self.case.of(number):
            if fault.kind == DEATH and (number, fault) not in self.deaths:
                self.doubts.append(f"round {number}: {fault.process} was armed at {fault.setting} and did not halt there")
        return settled

    def _work(self, role: Record, number: int) -> bool:
        record = self._take(role, number, role["process"], 0)
        if record is None:
            return False
        fault = self.case.armed(number, role["process"])
        if _struck_down(record, fault):
            return self._died(record, number)
        if (record["signal"] is not None and not self._gave_up(record)) or record["ended_by"] != ITSELF:
            self.doubts.append(f"round {number}: {role['process']} was ended, and did not end by itself")
        if fault is not None and fault.kind == PAUSE:
            self._overtaken(role, number, record, fault)
        if record["exit_code"] == HALTED:
            return self._died(record, number)
        done = record["exit_code"] in role["done"]
        if done and role["once"]:
            self._done.add(role["process"])
        return done

    def _overtaken(self, role: Record, number: int, record: Record, fault: Fault) -> None:
        said = [line for line in record["stderr"].split("\n") if line.startswith("paused at ")]
        other = self.records[self._at] if self._at < len(self.records) else None
        name = f"other_{role['process']}"
        if said != [f"paused at {fault.setting}"] or other is None or other["process"] != name:
            self.doubts.append(f"round {number}: {role['process']} was to be stopped at {fault.setting} and ended before")
            return
        later = role["lease_seconds"] - 1 if fault.in_lease else self.case.subject.data["pause_seconds"]
        taken = self._take(role, number, name, later)
        if taken is not None and not record["started_seconds"] <= taken["started_seconds"] <= record["ended_seconds"]:
            self._wrong(taken, f"was not started while {role['process']}, which it overtook, was stopped")

    def _serve(self, role: Record, number: int, armed: list[Record]) -> bool:
        name, case = role["process"], self.case
        shared = not (self.setting.observed or self.setting.restarts) and role["module"] == "receivers"
        if shared and name not in case.struck and not self._refused(name):
            return True
        living = self._last.get(name)
        cut = name == RELAY and (case.cuts(number - 1) or case.cuts(number))
        struck, before = case.armed(number, name), case.armed(number - 1, name)
        wanted = self.setting.restarts or cut or struck is not None or (before is not None and bool(before.call))
        if living is not None and living["ended_by"] != ITSELF and not wanted:
            return True
        record = self._take(role, number, name, 0)
        if record is None:
            return False
        if record["stdout"] != "":
            self._wrong(record, f"said {show(record['stdout'])}; a server says nothing")
        if record["ready"] is None and (record["exit_code"] == HALTED or _struck_down(record, struck)):
            return self._died(record, number)
        # By what a death or a loss of power left, or by a call that failed.
        stopped = self.deaths or case.power is not None or (struck is not None and struck.error)
        ended = record["exit_code"] is not None or self._gave_up(record)
        if record["ready"] is None and record["ended_by"] == ITSELF and ended and stopped:
            return False
        port = record["substitutions"].get(f"{name}.port")
        if record["ready"] != f"{READY}{port}":
            self._wrong(record, f"has the READY line {show(record['ready'])}, but its port is {show(port)}")
        failed = struck is not None and struck.error and record["ended_by"] == ITSELF and record["signal"] != "SIGKILL"
        if record["exit_code"] != HALTED and (record["signal"], record["ended_by"]) != ("SIGKILL", "kill") and not failed:
            self.doubts.append(f"round {number}: {name} ended otherwise than by the harness")
        if record["fault"] is not None or (struck is not None and struck.call):
            armed.append(record)
        return True

    def _gave_up(self, record: Record) -> bool:
        """Whether it ended by a signal of its own in a case in which a call was struck: that is undeclared, and no doubt."""
        struck = any([fault.call for _, fault in self.case.faults()])
        return struck and record["signal"] not in (None, "SIGKILL") and record["ended_by"] == ITSELF

    def _refused(self, name: str) -> bool:
        """Whether a receiver that could share a house is a process of its own: one that refused what a loss of power left."""
        following = self.records[self._at]["process"] if self._at < len(self.records) else None
        return self.case.power is not None and (name in self._last or following == name)

    def _died(self, record: Record, number: int) -> bool:
        """Note a death. False: its work is not done."""
        fault = self.case.armed(number, record["process"])
        if fault is None or fault.kind != DEATH:
            self.doubts.append(f"round {number}: {record['process']} ended with 23, though nothing was armed")
            return False
        if fault.call:
            if (record["signal"], record["ended_by"]) != ("SIGKILL", "kill"):
                self._wrong(record, "was to be killed in a system call, but ended otherwise")
            self.deaths.append((number, fault))
            return False
        lines = record["stderr"].split("\n")
        witness = f"halt(23) at {fault.setting}"
        said = "\n".join(lines[-2:])
        if is_line(fault.what):  # and in which function that is
            said, _, function = said.rstrip("\n").partition(" in ")
            said += "\n" if function and lines[-1] == "" else ""
        if said != f"{witness}\n" or record["ended_by"] != ITSELF:
            self._wrong(record, f"ended with 23, but does not end with the witness line {show(witness)}")
        self.deaths.append((number, fault))
        return False

    def _take(self, role: Record, number: int, name: str, later: int) -> Record | None:
        """The next record, which must be this process."""
        if self._at == len(self.records):
            if not self._doubted:
                self._note("processes.json", f"{show(name)} of round {number} is missing")
            self.broken = True
            return None
        record = self.records[self._at]
        self._at += 1
        self.count[name] = self.count.get(name, 0) + 1
        overtakes = name != role["process"]
        fault = None if overtakes else self.case.armed(number, name)
        now = START_SECONDS + (number - 1) * self.case.subject.data["round_seconds"] + later
        command = ["python", "-m", role["module"], *[each.replace("{now}", str(now)) for each in role["arguments"]]]
        environment = {}
        if name == RELAY:
            command += [part for cut in self.case.cuts(number) for part in ("--fault", f"{cut.number}:{cut.what}")]
        if fault is not None and fault.kind != CUT:
            environment[_variable(fault)] = fault.setting
        if self.setting.observed and not overtakes:
            environment[self.setting.listing] = f"points/{number}.{name}"
        armed = {"point": fault.what, "occurrence": fault.number} if fault is not None and not fault.call else None
        wanted = {
            "scenario": f"explore/{self.case.name}", "process": name, "incarnation": self.count[name], "step": number,
            "command": command, "environment": environment, "fault": armed if fault and fault.kind == DEATH else None,
            "pause": armed if fault and fault.kind == PAUSE else None, "expected_exit": {"code": None, "signal": None},
        }  # fmt: skip
        for member, value in wanted.items():
            if record[member] != value:
                said = f"has the {member} {show(record[member])}, but round {number} asks for {show(value)}"
                self._wrong(record, said, always=True)
                return None
        if not role["server"] and record["ready"] is not None:
            self._wrong(record, f"has the READY line {show(record['ready'])}, but is no server")
        if record["exit_code"] != HALTED and "halt(23)" in record["stderr"]:
            self._wrong(record, "has the witness line of a halt, but did not end with 23")
        self._ports_of(record)
        self._last[name] = record
        return record

    def _ports_of(self, record: Record) -> None:
        """Each placeholder of the command has its value, and one port is one server's for the whole case."""
        texts = [text for each in record["command"] for text in _placeholders(each)]
        if list(record["substitutions"]) != list(dict.fromkeys(texts)):
            self._wrong(record, f"has other substitutions than its command has: {show(texts)}")
        for name, value in record["substitutions"].items():
            if name == "db" and not value.startswith(self.setting.database or "?"):
                self._wrong(record, f"has the database {show(value)}, but the plan has another store")
            if name != "db" and not (value.isdigit() and len(value) == 5 and int(value) < 65536):
                self._wrong(record, f"has the substitution {show(value)} for {name}, which is no port of five digits")
            if self._ports.setdefault(name, value) != value:
                self._wrong(record, f"has the substitution {show(value)} for {name}, before it was {self._ports[name]}")


def _variable(fault: Fault) -> str:
    if fault.kind == PAUSE:
        return "PAUSE_AT"
    if fault.call:
        return "SYSCALL_AT"
    return "HALT_AT_LINE" if is_line(fault.what) else "HALT_AT"


def _struck_down(record: Record, fault: Fault | None) -> bool:
    """Whether a process was killed in a system call, as it was to be."""
    killed = (record["signal"], record["ended_by"]) == ("SIGKILL", "kill")
    return killed and fault is not None and bool(fault.call) and fault.kind == DEATH


def said_after(deaths: list[tuple[int, Fault]], records: list[Record], subject: Subject) -> bool:
    """Whether a process that was started behind the last death, and is no server, has printed anything."""
    last = max([number for number, _ in deaths], default=0)
    servers = [role["process"] for role in subject.roles if role["server"]]
    later = [each for each in records if each["step"] > last and each["process"] not in servers]
    return any([each["stdout"] or each["stderr"] for each in later])


def _placeholders(text: str) -> list[str]:
    found = []
    for part in text.split("{")[1:]:
        name, closed, _ = part.partition("}")
        if closed and (name == "db" or name.endswith(".port")):
            found.append(name)
    return found

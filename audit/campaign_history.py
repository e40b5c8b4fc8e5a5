"""Histories of mode `random`: their one form, the subject that a history is cast with, and its processes played again.

A line of such a campaign holds its history whole, because nothing else tells it: the seed gives it only together with one
release of the library that chose it. What is armed in a history need not come. Which processes may stand in which step, with
which arguments at which time, and who died of what, follows from the history and from how the processes ended.
"""

from __future__ import annotations

from audit.campaign_plan import Case, Fault, Subject, wired
from audit.campaign_play import said_after
from audit.campaign_words import CUT, CUTS, DEATH, RELAY, SPARE_ROUNDS
from audit.case import HALTED
from audit.findings import show
from audit.shapes import LIST, NAME, POSITIVE, Kind, holds, one_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.campaign_play import Setting
    from audit.findings import Note
    from audit.shapes import Shape

    Record = dict[str, Any]

HALT, KILL, STOP = "halt", "kill", "stop"
RUN, SERVE, CLOCK = "run", "serve", "clock"
BEGIN_SECONDS = 1_000_000
KEYS = ("first", "second", "third", "fourth", "fifth", "sixth")
JOURNAL_PRODUCER, DISPATCH_PRODUCER = "outbox.producer", "scenarios.dispatch"
ONE = f"{1:032x}"

HISTORY: Shape = {
    "operations": Kind(f"1 to {len(KEYS)}", lambda value: type(value) is int and 1 <= value <= len(KEYS)),
    "wire": LIST, "steps": LIST,
}  # fmt: skip
WIRE_FAULT: Shape = {"connection": POSITIVE, "fault": one_of(*CUTS)}
SECONDS = Kind("a whole number", lambda value: type(value) is int)
STEPS: dict[str, Shape] = {
    RUN: {"do": NAME, "process": NAME}, SERVE: {"do": NAME}, KILL: {"do": NAME}, CLOCK: {"do": NAME, "seconds": SECONDS},
}  # fmt: skip
STRIKE: Shape = {"how": one_of(HALT, KILL, STOP), "at": NAME}


def case_of(name: str, data: Any, subject: Subject, note: Note, place: str) -> Case | None:
    """The case of a history; None, with findings, where it is none."""
    if not holds(data, HISTORY, note, f"{place} history"):
        return None
    good = [holds(each, WIRE_FAULT, note, f"{place} history.wire[{at}]") for at, each in enumerate(data["wire"])]
    good += [_step(each, note, f"{place} history.steps[{at}]", True) for at, each in enumerate(data["steps"])]
    if not all(good):
        return None
    whole = cast(subject, data["operations"], through_relay=bool(data["wire"]))
    faults = [Fault(CUT, RELAY, each["fault"], each["connection"]) for each in data["wire"]]
    for step in each_step(data):
        process = step.get("process", _server(whole))
        if whole.role(process) is None:
            note(f"{place} history", f"has the process {show(process)}, which the subject has not")
            return None
        if "fault" in step:
            point, _, number = step["fault"]["at"].rpartition("#")
            faults.append(Fault(DEATH, process, point, int(number) if number.isdigit() else 0))
    # As many rounds as steps, so that what bounds the rounds of other cases bounds these.
    return Case(whole, [faults, *[[] for _ in data["steps"][1:]]], told=name, history=data)


def _step(data: Any, note: Note, place: str, deep: bool) -> bool:
    do = data.get("do") if type(data) is dict else None
    if do not in STEPS:
        note(place, f"is {show(data)}, expected a step")
        return False
    shape: Shape = dict(STEPS[do])
    if do in (RUN, SERVE) and "fault" in data:
        shape["fault"] = Kind("a fault", lambda value: type(value) is dict)
    if do == RUN and deep and "meanwhile" in data:
        shape["meanwhile"] = LIST
    good = holds(data, shape, note, place)
    if good and "fault" in data:
        good = holds(data["fault"], STRIKE, note, f"{place}.fault")
    inner = data.get("meanwhile", []) if good else []
    return good and all([_step(each, note, f"{place}.meanwhile[{at}]", False) for at, each in enumerate(inner)])


def each_step(data: dict[str, Any]) -> list[dict[str, Any]]:
    """All steps, also those that come while another is stopped."""
    return [each for step in data["steps"] for each in (step, *step.get("meanwhile", []))]


def _server(subject: Subject) -> str:
    return next(str(role["process"]) for role in subject.roles if role["server"] and role["process"] != RELAY)


def cast(subject: Subject, operations: int, *, through_relay: bool) -> Subject:
    """The subject with a producer for each operation where it has nothing but producers, servers and one sender."""
    roles = subject.roles
    producers = [role for role in roles if role["once"]]
    senders = [role for role in roles if not role["once"] and not role["server"]]
    data = subject.data
    if len(senders) == 1 and producers and all(_produces(role) for role in producers):
        first = producers[0]
        of_database = first["module"] == DISPATCH_PRODUCER
        data = {**data, "operations": [f"{at + 1:032x}" if of_database else KEYS[at] for at in range(operations)]}
        roles = [*[_producer(first, at) for at in range(operations)], *[role for role in roles if not role["once"]]]
    return Subject(data, wired(roles) if through_relay else roles)


def _produces(role: dict[str, Any]) -> bool:
    if role["module"] == DISPATCH_PRODUCER:
        return role["arguments"][0] == "enqueue" and ONE in role["arguments"] and "--dedup-key" in role["arguments"]
    return bool(role["module"] == JOURNAL_PRODUCER)


def _producer(role: dict[str, Any], at: int) -> dict[str, Any]:
    arguments = list(role["arguments"])
    body = f'{{"question":"What does the counter say to number {at + 1}?","language":"en","urgent":false}}'
    if role["module"] == JOURNAL_PRODUCER:
        changes = {"--key": KEYS[at], "--body": body}
    else:
        changes = {"--dedup-key": f"order-{at + 1}", "--body": body, "--max-attempts": "1000"}
        arguments[arguments.index(ONE)] = f"{at + 1:032x}"
    for option, value in changes.items():
        if option in arguments:
            arguments[arguments.index(option) + 1] = value
        else:
            arguments += [option, value]
    name = "producer" if at == 0 else f"{KEYS[at]}_producer"
    return {**role, "process": name, "arguments": arguments, "stoppable": False, "owns": role["owns"] if at == 0 else []}


class Slot:
    """What may be started in a step: a program at a time, and how it is struck."""

    __slots__ = ("now", "process", "strike")

    def __init__(self, process: str, now: int, strike: dict[str, str] | None = None) -> None:
        self.process, self.now, self.strike = process, now, strike


class HistoryPlay:
    """One history, held against its processes; with the members that a play of rounds has."""

    def __init__(self, case: Case, setting: Setting, found: list[Record], note: Note, *, doubted: bool = False) -> None:
        assert case.history is not None
        self.case, self.setting, self.records, self._note, self._doubted = case, setting, found, note, doubted
        self.steps: list[dict[str, Any]] = case.history["steps"]
        self.deaths: list[tuple[int, Fault]] = []
        self.doubts: list[str] = []
        self.rounds = 0
        self.settled = self.broken = False
        self.count: dict[str, int] = {}
        self._server = _server(case.subject)
        self._waited_for = False
        self._done: set[str] = set()
        self._ports: dict[str, str] = {}

    @property
    def most_rounds(self) -> int:
        """After so many steps and rounds nothing more is tried."""
        return len(self.steps) + SPARE_ROUNDS

    def run(self) -> HistoryPlay:
        """Hold every record, step by step."""
        groups: dict[int, list[Record]] = {}
        for record in self.records:
            groups.setdefault(record["step"], []).append(record)
        if list(groups) != sorted(groups) or not all(1 <= number <= self.most_rounds for number in groups):
            self._note(
                "processes.json", f"has the steps {show(list(groups))}, expected 1 to {self.most_rounds}, in their order"
            )
            self.broken = True
            return self
        self.rounds = max(groups, default=1)
        now = latest = BEGIN_SECONDS
        for number, step in enumerate(self.steps, 1):
            slots, now, furthest = self._slots(step, groups.get(number, []), now)
            latest = max(latest, furthest)
            self._group(number, groups.get(number, []), slots, now)
        workers = [role for role in self.case.subject.roles if not role["server"]]
        for number in range(len(self.steps) + 1, self.rounds + 1):
            now = latest + self.case.subject.data["round_seconds"] * (number - len(self.steps))
            asked = [role["process"] for role in workers if role["process"] not in self._done]
            codes = self._group(number, groups.get(number, []), [Slot(name, now) for name in asked], now)
            self.settled = all(codes.get(role["process"], -1) in role["done"] for role in workers if role["process"] in asked)
        return self

    @staticmethod
    def _was_paused(record: Record) -> bool:
        return any(line.startswith("paused at ") for line in record["stderr"].split("\n"))

    def _slots(self, step: dict[str, Any], records: list[Record], now: int) -> tuple[list[Slot], int, int]:
        """What may be started in a step, the time at its end, and the latest in it. What comes meanwhile comes only where the
        program was stopped."""
        slots, furthest = [], now
        if step["do"] == CLOCK:
            now += step["seconds"]
        elif step["do"] in (RUN, SERVE):
            slots.append(Slot(step.get("process", self._server), now, step.get("fault")))
        own = [each for each in records if each["process"] == step.get("process")]
        if step.get("meanwhile") and own and self._was_paused(own[0]):
            for each in step["meanwhile"]:
                if each["do"] == CLOCK:
                    now += each["seconds"]
                elif each["do"] in (RUN, SERVE):
                    slots.append(Slot(each.get("process", self._server), now, each.get("fault")))
                furthest = max(furthest, now)
        return slots, now, max(furthest, now)

    def _group(self, number: int, records: list[Record], slots: list[Slot], now: int) -> dict[str, int | None]:
        """Hold the processes of one step; the exit code of each program."""
        codes: dict[str, int | None] = {}
        free = list(slots)
        for record in records:
            base = record["process"].removeprefix("other_")
            role = self.case.subject.role(base)
            if role is None:
                self._wrong(record, "is no process of the subject")
                continue
            self._started(record, role, number, free, [*(slot.now for slot in slots), now])
            self._ended(record, role, number)
            codes[base] = record["exit_code"]
            if role["once"] and record["exit_code"] in role["done"]:
                self._done.add(base)
        return codes

    def _started(self, record: Record, role: dict[str, Any], number: int, free: list[Slot], times: list[int]) -> None:
        """A process that a step, its strike and the clock ask for."""
        name = role["process"]
        self.count[record["process"]] = self.count.get(record["process"], 0) + 1
        wanted = {
            "scenario": f"explore/{self.case.name}", "incarnation": self.count[record["process"]],
            "expected_exit": {"code": None, "signal": None},
        }  # fmt: skip
        for member, value in wanted.items():
            if record[member] != value:
                self._wrong(record, f"has the {member} {show(record[member])}, expected {show(value)}")
        fits = [slot for slot in free if slot.process == name and self._is(record, role, slot, number)]
        if role["server"]:
            # A watched receiver is started anew whenever it has died, unarmed.
            if not fits and not any(self._is(record, role, Slot(name, at), number) for at in times):
                self._wrong(record, f"is not what step {number} starts")
        elif not fits:
            self._wrong(record, f"is not what step {number} starts")
        if fits:
            free.remove(fits[0])
        for at, value in record["substitutions"].items():
            if self._ports.setdefault(at, value) != value:
                self._wrong(record, f"has the substitution {show(value)} for {at}, before it was {self._ports[at]}")

    def _is(self, record: Record, role: dict[str, Any], slot: Slot, number: int) -> bool:
        command = ["python", "-m", role["module"], *[each.replace("{now}", str(slot.now)) for each in role["arguments"]]]
        if role["process"] == RELAY and number <= len(self.steps):
            command += [part for _, cut in self.case.faults(CUT) for part in ("--fault", f"{cut.number}:{cut.what}")]
        environment = {}
        if slot.strike is not None:
            environment["HALT_AT" if slot.strike["how"] == HALT else "PAUSE_AT"] = slot.strike["at"]
        return bool(record["command"] == command and record["environment"] == environment)

    def _ended(self, record: Record, role: dict[str, Any], number: int) -> None:
        """How it ended is how something of the history ends it."""
        setting = record["environment"].get("HALT_AT") or record["environment"].get("PAUSE_AT")
        paused = self._was_paused(record)
        if paused and record["stderr"].split("\n").count(f"paused at {setting}") != 1:
            self._wrong(record, f"was stopped, but not at {show(setting)}")
        self._waited_for |= paused and bool(role["server"])
        if record["exit_code"] == HALTED:
            if record["stderr"].split("\n")[-2:] != [f"halt(23) at {setting}", ""] or "HALT_AT" not in record["environment"]:
                self._wrong(record, "ended with 23, but does not end with its witness line")
                return
            self._died(number, role, setting)
        elif "halt(23)" in record["stderr"]:
            self._wrong(record, "has the witness line of a halt, but did not end with 23")
        elif record["signal"] is not None:
            if (record["signal"], record["ended_by"]) != ("SIGKILL", "kill"):
                self.doubts.append(f"step {number}: {record['process']} was ended by {record['signal']}")
            elif paused and self._kills(role, setting):
                self._died(number, role, setting)
            elif not role["server"] and not self._waited_for:
                self._wrong(record, "was killed, but nothing in its step kills it")

    def _kills(self, role: dict[str, Any], setting: str | None) -> bool:
        """Whether some step kills this process where it was stopped."""
        return any(
            each.get("process", self._server) == role["process"] and each["fault"] == {"how": KILL, "at": setting}
            for each in each_step(self.case.history or {})
            if "fault" in each
        )

    def _died(self, number: int, role: dict[str, Any], setting: str | None) -> None:
        point, _, occurrence = (setting or "#0").rpartition("#")
        self.deaths.append((number, Fault(DEATH, role["process"], point, int(occurrence))))

    @property
    def said_after_deaths(self) -> bool:
        """Whether a program of a step behind the last death, and no server, has printed anything: then it has looked."""
        return said_after(self.deaths, self.records, self.case.subject)

    def in_order(self, told: list[dict[str, Any]]) -> None:
        """Take the order of the deaths that a line tells, where it is one of the same deaths: who dies while another waits is
        told first, and was started later."""
        left = list(self.deaths)
        ordered = []
        for each in told:
            for death in left:
                number, fault = death
                if (fault.process, fault.what, fault.number) == (each["process"], each["point"], each["occurrence"]):
                    ordered.append((max(number, each["round"]) if fault.process == self._server else number, fault))
                    left.remove(death)
                    break
        if not left and len(ordered) == len(told):
            self.deaths = ordered

    def _wrong(self, record: Record, sentence: str) -> None:
        if not self._doubted:
            self._note(f"processes.json {record['process']} (incarnation {record['incarnation']})", sentence)
        self.broken = True

"""The plan of a campaign, and the names of its cases: subjects, roles, faults.

A case is a subject with faults, round by round. Its name says all of it: `+` begins the next round, `&` the next fault in the
same, `none` is a round without one. The process is named before a point that another one owns.
"""

from __future__ import annotations

from audit.campaign_words import (
    COPY,
    CUT,
    DEATH,
    DEEPEST,
    ERROR,
    KEEP_ALL,
    KEEP_FAILED,
    LINES,
    PAUSE,
    PAUSES,
    POINTS,
    POWER,
    POWER_CUT,
    RANDOM,
    RELAY,
    SUBJECTS,
    SYS,
    SYSCALLS,
    WIRE,
    is_line,
)
from audit.expectations import STORES
from audit.expectations.words import STATUSES
from audit.findings import show
from audit.hashing import digest
from audit.shapes import COUNT, FLAG, LIST, NAME, OBJECT, POSITIVE, SHA, TEXT, Kind, holds, list_of, one_of, optional
from audit.strict_json import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.findings import Note
    from audit.shapes import Shape

PLAN: Shape = {
    "mode": one_of(POINTS, WIRE, PAUSES, LINES, SYSCALLS, POWER, RANDOM),
    "depth": Kind(f"1 to {DEEPEST}", lambda value: type(value) is int and 1 <= value <= DEEPEST),
    "budget": optional(POSITIVE), "keep": one_of(KEEP_FAILED, KEEP_ALL), "store": optional(one_of(*STORES)),
    "sources": SHA, "subjects": LIST,
}  # fmt: skip
SUBJECT: Shape = {
    "name": NAME, "roles": LIST, "operations": list_of(NAME), "allowed": OBJECT,
    "unfinished": optional(list_of(one_of(*STATUSES))), "round_seconds": POSITIVE, "pause_seconds": POSITIVE,
}  # fmt: skip
ROLE: Shape = {
    "process": NAME, "module": NAME, "arguments": list_of(TEXT), "server": FLAG, "once": FLAG, "done": list_of(COUNT),
    "owns": list_of(NAME), "stoppable": FLAG, "after": optional(NAME), "lease_seconds": optional(POSITIVE),
}  # fmt: skip
ALLOWED: Shape = {
    "least": COUNT, "most": COUNT, "each_fault": COUNT, "each_copy": COUNT, "may_end": list_of(one_of(*STATUSES)),
}  # fmt: skip
NONE = "none"
LATE, IN_LEASE = "pause:", "pause-in-lease:"


class Fault:
    """One fault: a death or a pause of `process` at `what`, an error of a system call of it (`sys:fsync=EIO`), or what the
    relay does to connection `number`, or what is on the disks (image `number`) when the power was cut after call `what` of the
    recorded run.

    Who is paused is overtaken when every lease is over, or `in_lease`.
    """

    __slots__ = ("in_lease", "kind", "number", "process", "what")

    def __init__(self, kind: str, process: str, what: str, number: int, in_lease: bool = False) -> None:
        self.in_lease = in_lease
        self.kind = kind
        self.process = process
        self.what = what
        self.number = number

    @property
    def setting(self) -> str:
        """`POINT#OCCURRENCE`, as the environment has it."""
        return f"{self.what}#{self.number}"

    @property
    def call(self) -> str:
        """The system call that it strikes; empty of other faults."""
        return self.what.removeprefix(SYS).partition("=")[0] if self.what.startswith(SYS) else ""

    @property
    def error(self) -> str:
        """What that call ends with; empty where the process is killed in it."""
        return self.what.partition("=")[2] if self.call else ""


class Subject:
    """One subject of the plan."""

    __slots__ = ("allowed", "data", "database", "name", "operations", "roles")

    def __init__(self, data: dict[str, Any], roles: list[dict[str, Any]]) -> None:
        self.data = data
        self.name: str = data["name"]
        self.operations: list[str] = data["operations"]
        self.allowed: dict[str, Any] = data["allowed"]
        self.database = data["unfinished"] is not None
        self.roles = roles

    @property
    def known(self) -> bool:
        """Whether the audit knows it. The programs of others may leave what no program of the study leaves."""
        return self.name in SUBJECTS

    def owner(self, point: str) -> str | None:
        """The process that need not be named before a point."""
        for role in self.roles:
            if any(point.startswith(f"{beginning}.") for beginning in role["owns"]):
                return str(role["process"])
        return None

    @property
    def lease_seconds(self) -> int | None:
        """For how long nobody else may attempt what one of its programs has claimed; None without claims."""
        return min([role["lease_seconds"] for role in self.roles if role["lease_seconds"] is not None], default=None)

    def role(self, process: str) -> dict[str, Any] | None:
        """The role of a process."""
        return next((role for role in self.roles if role["process"] == process), None)


class Case:
    """A subject with its faults, round by round; or with a `history`, which has its own name and whose faults need not come."""

    __slots__ = ("history", "rounds", "subject", "told")

    def __init__(
        self, subject: Subject, rounds: list[list[Fault]], told: str | None = None, history: dict[str, Any] | None = None
    ) -> None:
        self.subject = subject
        self.rounds = rounds
        self.told = told
        self.history = history

    @property
    def name(self) -> str:
        """The case's name."""
        if self.told is not None:
            return self.told
        told = ["&".join([self._text(fault) for fault in each]) or NONE for each in self.rounds]
        return f"{self.subject.name}/{'+'.join(told) or NONE}"

    def _text(self, fault: Fault) -> str:
        if fault.kind == CUT:
            return f"wire:{fault.what}#{fault.number}"
        if fault.kind == POWER_CUT:
            return f"power:{fault.what}.{fault.number}"
        named = "" if self.subject.owner(fault.what) == fault.process else f"{fault.process}:"
        stopped = (IN_LEASE if fault.in_lease else LATE) if fault.kind == PAUSE else ""
        return f"{stopped}{named}{fault.setting}"

    def faults(self, kind: str = "") -> list[tuple[int, Fault]]:
        """The faults of a kind, or all, each with its round."""
        return [(at, fault) for at, each in enumerate(self.rounds, 1) for fault in each if kind in ("", fault.kind)]

    def armed(self, number: int, process: str) -> Fault | None:
        """Where a process is to die or to be stopped in a round."""
        return next((each for each in self.of(number) if each.kind not in (CUT, POWER_CUT) and each.process == process), None)

    def of(self, number: int) -> list[Fault]:
        """The faults of one round, counted from 1."""
        return self.rounds[number - 1] if 0 < number <= len(self.rounds) else []

    def cuts(self, number: int) -> list[Fault]:
        """What the relay does in one round."""
        return [each for each in self.of(number) if each.kind == CUT]

    @property
    def struck(self) -> set[str]:
        """The processes that die or are stopped."""
        return {fault.process for _, fault in self.faults() if fault.kind not in (CUT, POWER_CUT)}

    @property
    def power(self) -> Fault | None:
        """The loss of power that it begins with, where it does."""
        return next((fault for _, fault in self.faults(POWER_CUT)), None)

    @property
    def copies(self) -> int:
        """How many requests the network doubles."""
        return sum(fault.kind == CUT and fault.what == COPY for _, fault in self.faults())

    @property
    def most(self) -> int:
        """How many effects one operation may have."""
        allowed = self.subject.allowed
        return int(allowed["most"] + allowed["each_fault"] * len(self.faults()) + allowed["each_copy"] * self.copies)


def parse(name: str, subject: Subject) -> Case | None:
    """The case of this name; None where it is none of this subject."""
    owner, _, faults = name.rpartition("/")
    if owner != subject.name:
        return None
    if faults == NONE:
        return Case(subject, [])
    rounds = []
    for part in faults.split("+"):
        each = [] if part == NONE else [_fault(text, subject) for text in part.split("&")]
        rounds.append([fault for fault in each if fault is not None])
        if None in each:
            return None
    return Case(subject, rounds)


def _fault(text: str, subject: Subject) -> Fault | None:
    body, mark, number = text.rpartition("#")
    if not mark or not number.isdigit() or number[0] == "0" or len(number) > 9:
        return None
    if body.startswith("wire:"):
        return Fault(CUT, RELAY, body[5:], int(number))
    struck, colon, what = body.partition(":")
    if colon and what.startswith(SYS):
        return Fault(ERROR if "=" in what else DEATH, struck, what, int(number)) if subject.role(struck) else None
    if is_line(what):
        return Fault(DEATH, struck, what, int(number))
    in_lease = body.startswith(IN_LEASE)
    kind = PAUSE if in_lease or body.startswith(LATE) else DEATH
    process, colon, point = body.removeprefix(IN_LEASE).removeprefix(LATE).rpartition(":")
    named = process if colon else subject.owner(point)
    role = subject.role(named) if named else None
    if not named or (in_lease and (role is None or role["lease_seconds"] is None)):
        return None
    return Fault(kind, named, point, int(number), in_lease)


def subjects(plan: dict[str, Any], note: Note) -> list[Subject] | None:
    """Hold the plan's shape; its subjects as the mode has them, or None where it cannot be worked with."""
    shape = {**PLAN, "seed": COUNT} if plan.get("mode") == RANDOM else PLAN
    if not holds(plan, shape, note, ""):
        return None
    found = []
    for number, data in enumerate(plan["subjects"]):
        place = f"subjects[{number}]"
        if not (holds(data, SUBJECT, note, place) and holds(data["allowed"], ALLOWED, note, f"{place}.allowed")):
            return None
        if not all([holds(role, ROLE, note, f"{place}.roles[{at}]") for at, role in enumerate(data["roles"])]):
            return None
        found.append(Subject(data, wired(data["roles"]) if plan["mode"] == WIRE else data["roles"]))
    if not found or len({subject.name for subject in found}) != len(found):
        note("subjects", f"are {show([subject.name for subject in found])}, expected one or more, each once")
        return None
    if (plan["store"] is None) != (not any(subject.database for subject in found)):
        note("store", f"is {show(plan['store'])}, but a store is named where a subject has a database, and nowhere else")
    return found


def strange(found: list[Subject], note: Note) -> list[str]:
    """The subjects that the audit does not know; a known one that is another than it is known is noted."""
    unknown = []
    for number, subject in enumerate(found):
        actual = digest(encode(subject.data).encode("ascii"))
        if subject.name not in SUBJECTS:
            unknown.append(subject.name)
        elif SUBJECTS[subject.name] != actual:
            said = f"{show(subject.name)} has the hash {actual}, but the audit knows it as {SUBJECTS[subject.name]}"
            note(f"subjects[{number}]", said)
    return unknown


def wired(roles: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The roles with a relay behind each server, and whoever talked to the server talking to it, impatiently."""
    found = []
    for role in roles:
        arguments = [each.replace("{receiver.port}", "{relay.port}") for each in role["arguments"]]
        found.append(role)
        if role["server"]:
            found.append({**role, "process": RELAY, "module": "scenarios.relay", "arguments": list(_RELAY), "owns": []})
        elif arguments != role["arguments"]:
            found[-1] = {**role, "arguments": [*arguments, "--timeout-seconds", "1.5"]}
    return found


_RELAY = ("--dir", "relay", "--port", "{relay.port}", "--upstream", "http://127.0.0.1:{receiver.port}")

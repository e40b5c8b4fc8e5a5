"""What is explored, as frozen values: subjects, the faults of a case, and the text that names a case.

A subject is a set of programs that are started in order, round after round, until nothing is left to do. A case is a subject
with faults: those of the first round strike in the first, those of the second in the recovery from it, and so on. Its name is
stable text: `journal/keyed/receipt.append.torn#1+history.append.before#1` is a death and a death during the recovery from it
(`+` begins the next round), `receipt.append.torn#1&effect.append.torn#1` are two in one round.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeGuard

from outbox import faults
from outbox.errors import BadInput
from scenarios import wire
from scenarios.engine import lines
from scenarios.explore import sysfaults
from scenarios.explore.histories import Named
from scenarios.explore.state import Place, State
from scenarios.explore.sysfaults import SysFault
from scenarios.model import Program

Reader = Callable[[Place], State]


@dataclass(frozen=True, slots=True)
class Role:
    """A program of a subject.

    A `server` is started and serves on; the others run to their end, once in each round, or with `once` until they have ended
    with a code of `done`: then they have no work left. `owns` are the beginnings of the points that need not name the process.
    One that is to come `after` another one that runs once is left out until that has done its work.
    One that would only wait for whoever is stopped before it is not `stoppable`. What it claims is its own for `lease_seconds`,
    where it claims anything.
    """

    program: Program
    server: bool = False
    once: bool = False
    done: frozenset[int] = frozenset({0})
    owns: tuple[str, ...] = ()
    stoppable: bool = True
    lease_seconds: int | None = None
    after: str | None = None

    @property
    def process(self) -> str:
        """Its name in the subject."""
        return self.program.process


@dataclass(frozen=True, slots=True)
class Allowed:
    """How many effects one operation may have in a correct system: `each_fault` more for every fault of the case, `each_copy`
    for every request that the network doubles.

    `may_end` are the statuses in which the sender may give an operation up and say so: `expired` where it has a deadline,
    `dead_letter` where the faults of a case may take all of its attempts.
    """

    least: int = 1
    most: int = 1
    each_fault: int = 0
    each_copy: int = 0
    may_end: tuple[str, ...] = ()

    def up_to(self, case: "Case") -> int:
        """The most that one operation may have in this case."""
        return self.most + self.each_fault * len(case.faults) + self.each_copy * case.copies


@dataclass(frozen=True, slots=True)
class Subject:
    """One system under exploration. `name` is `journal/keyed`: the sender, and the receiver's kind.

    In arguments `{now}` is the round's time: each round begins `round_seconds` after the one before, so that leases and
    backoffs are over. Who runs while another one is stopped does so `pause_seconds` later, or in the last second of its lease.
    `operations` are the keys that must come to their effects. `plant` is a program that makes one effect more, at the receiver,
    behind the sender's back: it proves that effects are seen.
    """

    name: str
    roles: tuple[Role, ...]
    read: Reader
    operations: tuple[str, ...]
    plant: Program
    allowed: Allowed = Allowed()
    round_seconds: int = 4000
    pause_seconds: int = 20

    @property
    def uses_database(self) -> bool:
        """Whether a program of it names the case's database."""
        return any("{db}" in argument for role in self.roles for argument in role.program.arguments)

    @property
    def lease_seconds(self) -> int | None:
        """For how long nobody else may attempt what one of its programs has claimed; None without claims."""
        return min((role.lease_seconds for role in self.roles if role.lease_seconds is not None), default=None)

    def role(self, process: str) -> Role:
        """The role of this name. Raises BadInput where there is none."""
        for role in self.roles:
            if role.process == process:
                return role
        raise BadInput(f"{self.name} has no process {process}; it has: {', '.join(role.process for role in self.roles)}")

    def may_reach(self, process: str, point: str) -> bool:
        """False where the names tell that `point` is another one's: `process` has points of its own, and it is none of them."""
        owns = self.role(process).owns
        return not owns or self.owner(point) is None or any(point.startswith(f"{beginning}.") for beginning in owns)

    def owner(self, point: str) -> str | None:
        """The process whose name need not stand before `point`."""
        for role in self.roles:
            if any(point.startswith(f"{beginning}.") for beginning in role.owns):
                return role.process
        return None


@dataclass(frozen=True, slots=True)
class Death:
    """`process` halts when `point`, which may be a line, is reached for the `occurrence`-th time."""

    process: str
    point: str
    occurrence: int = 1

    @property
    def setting(self) -> str:
        """What `HALT_AT`, or `HALT_AT_LINE`, is set to."""
        return f"{self.point}#{self.occurrence}"


@dataclass(frozen=True, slots=True)
class Pause:
    """`process` is stopped (SIGSTOP) at `point`; another one of the same program runs to its end, later than any lease lasts;
    then the first one goes on. With `in_lease` the other one comes in the last second of the first one's lease."""

    process: str
    point: str
    occurrence: int = 1
    in_lease: bool = False

    @property
    def setting(self) -> str:
        """What `PAUSE_AT` is set to."""
        return f"{self.point}#{self.occurrence}"

    @property
    def kind(self) -> str:
        """What its name begins with."""
        return PAUSE_IN_LEASE if self.in_lease else PAUSE


PAUSE, PAUSE_IN_LEASE = "pause", "pause-in-lease"
NONE = "none"
RELAY = "relay"
RANDOM = "random"
COPY = "duplicate-request"


@dataclass(frozen=True, slots=True)
class Cut:
    """What the relay does to one exchange: a fault of `scenarios.wire`, with its place, on the connection of this number."""

    fault: str
    connection: int = 1

    @property
    def argument(self) -> str:
        """What the relay is given."""
        return f"{self.connection}:{self.fault}"


@dataclass(frozen=True, slots=True)
class Power:
    """All machines lose power after the first `call` calls of the recorded run without faults. `image` is the number, from 1,
    of what their disks hold then, among what they may legally hold."""

    call: int
    image: int


Fault = Death | Pause | Cut | SysFault | Power
Deadly = Death | SysFault


def is_death(fault: "Fault | None") -> TypeGuard["Deadly"]:
    """Whether it ends a process."""
    return isinstance(fault, Death) or (isinstance(fault, SysFault) and not fault.error)


@dataclass(frozen=True, slots=True)
class Case:
    """A subject with its faults, round by round, or with a `history`, whose faults are then only counted."""

    subject: Subject
    rounds: tuple[tuple[Fault, ...], ...] = ()
    history: Named | None = None

    @property
    def faults(self) -> tuple[Fault, ...]:
        """All of them, in order."""
        return tuple(chain.from_iterable(self.rounds))

    @property
    def by_line(self) -> bool:
        """Whether somebody dies at a line."""
        return any(isinstance(fault, Death) and lines.is_line(fault.point) for fault in self.faults)

    @property
    def copies(self) -> int:
        """How many requests the network doubles."""
        return sum(isinstance(fault, Cut) and fault.fault == COPY for fault in self.faults)

    def __str__(self) -> str:
        if self.history is not None:
            return f"{self.subject.name}/{RANDOM}:{self.history.name}"
        rounds = ("&".join(self._text(fault) for fault in each) or NONE for each in self.rounds)
        return f"{self.subject.name}/{'+'.join(rounds) or NONE}"

    def _text(self, fault: Fault) -> str:
        if isinstance(fault, Cut):
            return f"wire:{fault.fault}#{fault.connection}"
        if isinstance(fault, SysFault):
            return str(fault)
        if isinstance(fault, Power):
            return f"power:{fault.call}.{fault.image}"
        named = "" if self.subject.owner(fault.point) == fault.process else f"{fault.process}:"
        return f"{f'{fault.kind}:' if isinstance(fault, Pause) else ''}{named}{fault.setting}"

    @property
    def struck(self) -> frozenset[str]:
        """The processes that die or are stopped."""
        return frozenset(fault.process for fault in self.faults if not isinstance(fault, Cut | Power))

    @property
    def power(self) -> Power | None:
        """The loss of power that the case begins with, where it does."""
        return next((fault for fault in self.faults if isinstance(fault, Power)), None)

    def armed(self, number: int, process: str) -> Death | Pause | SysFault | None:
        """Where `process` is to die or to be stopped in round `number` (from 1)."""
        at_points = (each for each in self._of(number) if not isinstance(each, Cut | Power))
        return next((each for each in at_points if each.process == process), None)

    def cuts(self, number: int) -> tuple[Cut, ...]:
        """What the relay is to do in round `number`."""
        return tuple(each for each in self._of(number) if isinstance(each, Cut))

    def deaths(self, number: int) -> tuple[Deadly, ...]:
        """Who is to die in round `number`."""
        return tuple(each for each in self._of(number) if is_death(each))

    def _of(self, number: int) -> tuple[Fault, ...]:
        return self.rounds[number - 1] if 0 < number <= len(self.rounds) else ()


_AT_POINT = re.compile(
    rf"(?:(?P<pause>{PAUSE}|{PAUSE_IN_LEASE}):)?(?:(?P<process>[a-z_]+):)?(?P<point>[a-z_]+(?:\.[a-z_]+)+)#(?P<number>[1-9]\d{{0,8}})"
)
_AT_LINE = re.compile(r"(?P<process>[a-z_]+):(?P<setting>(?P<point>[a-z0-9_.]+:\d+)#(?P<number>\d+))")
_POWER = re.compile(r"power:(?P<call>0|[1-9]\d{0,8})\.(?P<image>[1-9]\d{0,8})")
_CUT = re.compile(r"wire:(?P<fault>[a-z-]+(?::[a-z0-9-]+)?)#(?P<number>[1-9]\d{0,8})")


def parse(text: str, subjects: Sequence[Subject]) -> Case:
    """The case of this name. Raises BadInput for another form, for what does not exist, and for what cannot be played."""
    try:
        return _case(text, subjects)
    except BadInput as error:
        raise BadInput(f"{text!r} names no case: {error}") from None


def _case(text: str, subjects: Sequence[Subject]) -> Case:
    name, _, told = text.rpartition("/")
    subject = next((each for each in subjects if each.name == name), None)
    if subject is None:
        raise BadInput(f"there is no subject {name!r}; there are: {', '.join(each.name for each in subjects)}")
    if told == NONE:
        return Case(subject)
    if told.startswith(f"{RANDOM}:"):
        from scenarios.explore import randoms  # noqa: PLC0415 - it plays cases, and builds on this module

        return Case(subject, history=randoms.named(subject, told.removeprefix(f"{RANDOM}:")))
    rounds = tuple(() if part == NONE else tuple(_fault(each, subject) for each in part.split("&")) for part in told.split("+"))
    for number, struck in enumerate(rounds, 1):
        if any(isinstance(fault, Power) for fault in struck) and (number, len(struck)) != (1, 1):
            raise BadInput("a loss of power ends the recorded run, so it is the first fault, and alone in its round")
        at_points = [fault.process for fault in struck if not isinstance(fault, Cut | Power)]
        _can_come(at_points, "in one round; begin the next round with +")
    cuts = [f"connection {fault.connection}" for fault in chain.from_iterable(rounds) if isinstance(fault, Cut)]
    _can_come(cuts, "in one case; connections are counted through all rounds")
    if not rounds[-1]:
        raise BadInput(f"its last round is {NONE!r}; rounds without faults follow by themselves")
    return Case(subject, rounds)


def _can_come(struck: Sequence[str], within: str) -> None:
    """Refuse what is struck twice where the second fault could not come."""
    for what, count in Counter(struck).items():
        if count > 1:
            raise BadInput(f"{what} is struck twice {within}")


def _fault(text: str, subject: Subject) -> Fault:
    if (match := _CUT.fullmatch(text)) is not None:
        subject.role(RELAY)
        cut = Cut(match["fault"], int(match["number"]))
        wire.parse(cut.argument)
        return cut
    if (match := _AT_LINE.fullmatch(text)) is not None:
        line = lines.parse(match["setting"])
        return Death(subject.role(match["process"]).process, line.point, line.occurrence)
    if (struck := sysfaults.read(text)) is not None:
        subject.role(struck.process)
        sysfaults.check(struck)
        return struck
    if (match := _POWER.fullmatch(text)) is not None:
        return Power(int(match["call"]), int(match["image"]))
    match = _AT_POINT.fullmatch(text)
    process = match and (match["process"] or subject.owner(match["point"]))
    if match is None or process is None:
        raise BadInput(
            f"{text!r} is no fault; expected POINT#N, PROCESS:POINT#N, PROCESS:MODULE:LINE#N, pause:POINT#N or wire:FAULT#N, "
            "as a campaign prints it; of a system call PROCESS:sys:CALL#N or PROCESS:sys:CALL=ERROR#N"
        )
    if not subject.may_reach(process, match["point"]):
        raise BadInput(f"{process} has no point {match['point']}: that is one of {subject.owner(match['point'])}")
    role, number = subject.role(process), int(match["number"])
    faults.parse(f"{match['point']}#{number}", "POINT#N")
    if not match["pause"]:
        return Death(process, match["point"], number)
    if role.server or not role.stoppable:
        raise BadInput(f"{process} cannot be stopped in {subject.name}: nobody could overtake it")
    in_lease = match["pause"] == PAUSE_IN_LEASE
    if in_lease and role.lease_seconds is None:
        raise BadInput(f"{process} has no lease in {subject.name} within which it could be overtaken")
    return Pause(process, match["point"], number, in_lease)


# A line may be executed a thousand times in a run, and dying at each of them would tell nothing new. But a line that many
# call, as those that write a record, must be died at for each of the records that two operations come to.
FIRST_OF_LINE = 8
# What the processes of one round reached: process, in the subject's order, to point to count.
Reached = Mapping[str, Mapping[str, int]]


def deaths(reached: Reached) -> Iterator[Death]:
    """One death for each process, point and occurrence; of a line's many occurrences for the first eight and the last."""
    for process, points in reached.items():
        for point, count in points.items():
            for occurrence in range(1, count + 1):
                if occurrence <= FIRST_OF_LINE or occurrence == count or not lines.is_line(point):
                    yield Death(process, point, occurrence)

"""A history: what befalls the programs of a subject one after the other, as frozen values and as JSON that a person can read.

Each step is complete in itself, so any step can be left out and the rest is a history still: that is what shrinking needs. The
same holds for the JSON, of which `seeds/` keeps those that failed: it names processes, points and faults by their words, and
says nothing of how they were chosen.

    {"operations": 2, "wire": [{"connection": 1, "fault": "cut-response:headers"}], "steps": [
     {"do": "run", "process": "producer"},
     {"do": "serve", "fault": {"how": "kill", "at": "effect.append.written#1"}},
     {"do": "run", "process": "dispatcher", "fault": {"how": "stop", "at": "send.response#1"}, "meanwhile": [
      {"do": "clock", "seconds": 700}, {"do": "run", "process": "dispatcher"}]},
     {"do": "kill"}]}

`run` runs a program to its end, `serve` starts the receiver anew, `kill` kills it (SIGKILL) between two steps, and then it
stays down until it is to serve again; one that died otherwise is there again when the next program runs, as if somebody
watched it. `clock` moves the time that the programs are given. A fault strikes at a point and occurrence: `halt` is the end
with 23, `kill` a SIGKILL there; `stop` is a SIGSTOP, in which the steps `meanwhile` happen before SIGCONT. A receiver that
is stopped is continued when the program that waits for its answer has been killed; then it finishes and is started anew.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from outbox import faults
from outbox.errors import BadInput
from scenarios import wire

HALT, KILL, STOP = "halt", "kill", "stop"
HOW = (HALT, KILL, STOP)
RUN, SERVE, CLOCK = "run", "serve", "clock"
DO = (RUN, SERVE, KILL, CLOCK)
MOST_OPERATIONS = 6
# Further than any lease, backoff or request to wait, in either direction.
MOST_SECONDS = 100_000
MOST_STEPS = 200


@dataclass(frozen=True, slots=True)
class Strike:
    """`how` a process is struck when `point` is reached for the `occurrence`-th time."""

    how: str
    point: str
    occurrence: int = 1

    @property
    def setting(self) -> str:
        """What `HALT_AT` or `PAUSE_AT` is set to."""
        return f"{self.point}#{self.occurrence}"

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {"how": self.how, "at": self.setting}


@dataclass(frozen=True, slots=True)
class Step:
    """One step; `do` says which of the members count."""

    do: str
    process: str | None = None
    strike: Strike | None = None
    seconds: int = 0
    meanwhile: tuple["Step", ...] = ()

    def data(self) -> dict[str, Any]:
        """As JSON, without what does not count."""
        told: dict[str, Any] = {"do": self.do}
        if self.process is not None:
            told["process"] = self.process
        if self.strike is not None:
            told["fault"] = self.strike.data()
        if self.do == CLOCK:
            told["seconds"] = self.seconds
        if self.meanwhile:
            told["meanwhile"] = [step.data() for step in self.meanwhile]
        return told


@dataclass(frozen=True, slots=True)
class History:
    """So many operations, the faults of the wire by connection, and the steps."""

    operations: int = 1
    wire: tuple[tuple[int, str], ...] = ()
    steps: tuple[Step, ...] = ()

    def every_step(self) -> Iterator[Step]:
        """All steps, also those that come while another is stopped."""
        for step in self.steps:
            yield step
            yield from step.meanwhile

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "operations": self.operations,
            "wire": [{"connection": connection, "fault": fault} for connection, fault in self.wire],
            "steps": [step.data() for step in self.steps],
        }


@dataclass(frozen=True, slots=True)
class Named:
    """A history with the name that it has in a case: the seed that gives it, or that of a file in `seeds/`."""

    name: str
    history: History


def parse(data: Any) -> History:
    """The history of this JSON value. Raises BadInput for another form, and for words that mean nothing any more."""
    _members(data, {"operations", "wire", "steps"}, "a history")
    operations, steps = data["operations"], data["steps"]
    if type(operations) is not int or not 1 <= operations <= MOST_OPERATIONS:
        raise BadInput(f"operations {operations!r}: expected 1 to {MOST_OPERATIONS}")
    if not isinstance(steps, list) or len(steps) > MOST_STEPS:
        raise BadInput(f"steps: expected a list of at most {MOST_STEPS}")
    if not isinstance(data["wire"], list):
        raise BadInput("wire: expected a list")
    cuts = tuple(map(_cut, data["wire"]))
    if len({connection for connection, _fault in cuts}) < len(cuts):
        raise BadInput("wire: one connection is struck twice")
    return History(operations, cuts, tuple(_step(step, deep=False) for step in steps))


def _cut(data: Any) -> tuple[int, str]:
    _members(data, {"connection", "fault"}, "a fault of the wire")
    connection, _fault = wire.parse(f"{data['connection']}:{data['fault']}")
    return connection, data["fault"]


def _step(data: Any, *, deep: bool) -> Step:
    do = data.get("do") if isinstance(data, dict) else None
    if do == CLOCK:
        _members(data, {"do", "seconds"}, "a step of the clock")
        if type(data["seconds"]) is not int or abs(data["seconds"]) > MOST_SECONDS:
            raise BadInput(f"seconds {data['seconds']!r}: expected a whole number, at most {MOST_SECONDS} in either direction")
        return Step(CLOCK, seconds=data["seconds"])
    if do == KILL:
        _members(data, {"do"}, "a kill")
        return Step(KILL)
    if do == SERVE:
        _members(data, {"do"}, "a start of the receiver", {"fault"})
        return Step(SERVE, strike=_strike(data, HOW))
    if do != RUN:
        raise BadInput(f"step {data!r}: expected an object whose `do` is {', '.join(DO)}")
    _members(data, {"do", "process"}, "a run", {"fault", *(() if deep else ("meanwhile",))})
    if not isinstance(data["process"], str):
        raise BadInput(f"process {data['process']!r}: expected a name")
    strike = _strike(data, (HALT, KILL) if deep else HOW)
    meanwhile = data.get("meanwhile", [])
    if meanwhile and (strike is None or strike.how != STOP):
        raise BadInput("meanwhile: nothing is stopped there")
    if not isinstance(meanwhile, list):
        raise BadInput("meanwhile: expected a list of steps")
    return Step(RUN, data["process"], strike, meanwhile=tuple(_step(each, deep=True) for each in meanwhile))


def _strike(data: Mapping[str, Any], allowed: tuple[str, ...]) -> Strike | None:
    if "fault" not in data:
        return None
    told = data["fault"]
    _members(told, {"how", "at"}, "a fault")
    if told["how"] not in allowed:
        raise BadInput(f"fault {told['how']!r}: expected {', '.join(allowed)}")
    at = faults.parse(str(told["at"]), "at")
    return Strike(told["how"], at.point, at.occurrence)


def _members(data: Any, wanted: AbstractSet[str], what: str, more: AbstractSet[str] = frozenset()) -> None:
    if not isinstance(data, dict) or not wanted <= data.keys() <= wanted | more:
        raise BadInput(f"{what} has the members {', '.join(sorted(wanted | more))}; this is {data!r}")

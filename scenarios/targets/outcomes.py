"""What became of one case, as frozen values: one line of `results.jsonl` each.

A worker case is one death (or one fault of the receiver) and everything that was seen afterwards; a receiver case is one
expectation and the exchanges that it was held against. Nothing is judged here: `verdicts` says what follows from what was seen.
`data()` gives the JSON value, its members in the order in which evidence/README.md has them.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

LINE, SYSCALL, POINT, RECEIVER_FAULT = "line", "syscall", "point", "receiver"
FAULT_KINDS = (LINE, SYSCALL, POINT, RECEIVER_FAULT)
ROLES = ("setup", "enqueue", "work", "recover", "receiver")
# Noted where a thread came to the line while the process was ending by itself: it may have been quicker than its death.
ENDED_FIRST = "it ended by itself in the moment in which it was to die"
HALTED, KILLED = 23, "SIGKILL"
PENDING, BYTES = "pending", "bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Where somebody died. `where` is `huey/api.py:410` of a line (its path below the package's parent, or the script's name),
    the call's name of a system call, the point's name, or what the receiver does (`dies`, `refuses`, `hangs-up`)."""

    role: str
    kind: str
    where: str
    function: str | None = None
    occurrence: int = 1

    def data(self) -> dict[str, Any]:
        """As a JSON value, without the role."""
        return {"kind": self.kind, "where": self.where, "function": self.function, "occurrence": self.occurrence}


@dataclass(frozen=True, slots=True)
class Ended:
    """How the process that was to die ended; both are None where it was still running."""

    exit_code: int | None = None
    signal: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One request at our receiver. `status` is None where nothing was answered. `applied`: whether a receiver without keys has
    an effect of it; one that was refused on purpose, or was not read whole, has none."""

    job: str | None
    key: str | None
    status: int | None
    applied: bool
    after_restart: bool
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """How often one job took effect: at the keyed receiver, and at one without keys."""

    keyed: int
    unkeyed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerCase:
    """One case of a worker. `then` is the death of the recovery, at depth 2. `stored`: whether an undelivered job is still
    found where the worker keeps its jobs, None where nobody can tell or had to ask. `confirmed`: whether a case played against
    a real receiver without keys came to the same, None where none was played."""

    case: str
    fault: Fault
    ended: Ended
    fired: bool
    arrivals: tuple[Arrival, ...]
    effects: Mapping[str, Effect]
    canary: str
    verdict: str
    watched_seconds: float
    then: Fault | None = None
    stored: bool | None = None
    stored_by: str | None = None
    recovered_seconds: float | None = None
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    confirmed: bool | None = None

    @property
    def name(self) -> str:
        """By which it is asked for: `--only NAME`."""
        return self.case

    def data(self) -> dict[str, Any]:
        """The line, as a JSON value."""
        return {
            "case": self.case,
            "role": self.fault.role,
            "fault": self.fault.data(),
            "then": None if self.then is None else {"role": self.then.role, **self.then.data()},
            "ended": asdict(self.ended),
            "fired": self.fired,
            "arrivals": [asdict(each) for each in self.arrivals],
            "effects": {job: asdict(effect) for job, effect in sorted(self.effects.items())},
            "canary": self.canary,
            "stored": self.stored,
            "stored_by": self.stored_by,
            "recovered_seconds": self.recovered_seconds,
            "watched_seconds": self.watched_seconds,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "notes": list(self.notes),
            "confirmed": self.confirmed,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One request as it was sent."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: str

    def data(self) -> dict[str, Any]:
        """As a JSON value; a header that was sent twice stands there twice."""
        return {"method": self.method, "path": self.path, "headers": [list(each) for each in self.headers], "body": self.body}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and what came back: a status and a body, or an error in words."""

    request: Sent
    status: int | None = None
    body: str | None = None
    error: str | None = None
    seconds: float = 0.0

    def data(self) -> dict[str, Any]:
        """As a JSON value."""
        return {
            "request": self.request.data(),
            "status": self.status,
            "body": self.body,
            "error": self.error,
            "seconds": self.seconds,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverCase:
    """One expectation of a receiver, and what was seen. `before` and `after` are the counted effects, None where nobody
    counted."""

    expectation: str
    source: str
    severity: str
    verdict: str
    expected: str
    seen: str
    exchanges: tuple[Exchange, ...] = ()
    before: int | None = None
    after: int | None = None
    fault: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        """By which it is asked for: `--only NAME`."""
        return self.expectation

    def data(self) -> dict[str, Any]:
        """The line, as a JSON value."""
        return {
            "expectation": self.expectation,
            "source": self.source,
            "severity": self.severity,
            "verdict": self.verdict,
            "expected": self.expected,
            "seen": self.seen,
            "exchanges": [each.data() for each in self.exchanges],
            "effects": {"before": self.before, "after": self.after},
            "fault": None if self.fault is None else dict(self.fault),
            "notes": list(self.notes),
        }

"""What a scenario is: frozen values, and nothing that runs.

A scenario is a list of steps over named processes, and the counts that must come out. The engine reads the steps and never asks
which scenario it is running. Arguments may hold `{NAME.port}`: the port that the harness keeps for the receiver NAME, and
`{db}`: the scenario's own database.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from outbox import journal


@dataclass(frozen=True, slots=True)
class Counts:
    """E, R, H and A of DESIGN section 5: effects, receipts, complete history records, arrivals."""

    effects: int
    receipts: int
    history: int
    arrivals: int


@dataclass(frozen=True, slots=True)
class Rows:
    """What the tables of a dispatch outbox hold: rows by status, `attempts` (a claim each) and admin `events`.

    `stale`: rows that carry what no transition explains: an error of no recorded failure, or a retry that is due before its
    backoff is over.
    """

    pending: int = 0
    delivering: int = 0
    delivered: int = 0
    acked: int = 0
    dead_letter: int = 0
    expired: int = 0
    attempts: int = 0
    events: int = 0
    stale: int = 0


@dataclass(frozen=True, slots=True)
class Program:
    """A process of a scenario: its name there, and the module that `python -m` runs with these arguments."""

    process: str
    module: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Start:
    """Start a server and wait for its READY line."""

    do: ClassVar[str] = "start"
    program: Program
    halt_at: str | None = None
    pause_at: str | None = None


@dataclass(frozen=True, slots=True)
class Begin:
    """Start a program and go on at once; a later `Await` says how it must end."""

    do: ClassVar[str] = "begin"
    program: Program
    halt_at: str | None = None
    pause_at: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Run a program to its end, which must have this exit code."""

    do: ClassVar[str] = "run"
    program: Program
    exit_code: int = 0
    halt_at: str | None = None


@dataclass(frozen=True, slots=True)
class Together:
    """Run several programs at the same time, each to its end."""

    do: ClassVar[str] = "together"
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Stop:
    """Ask a started process to end (SIGTERM); it must do so with exit code 0."""

    do: ClassVar[str] = "stop"
    process: str


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill a started process (SIGKILL)."""

    do: ClassVar[str] = "kill"
    process: str


@dataclass(frozen=True, slots=True)
class Await:
    """Wait until a started process ends by itself, with this exit code."""

    do: ClassVar[str] = "await"
    process: str
    exit_code: int


@dataclass(frozen=True, slots=True)
class AwaitPaused:
    """Wait until a process has stopped at the point where it was to pause."""

    do: ClassVar[str] = "await_paused"
    process: str


@dataclass(frozen=True, slots=True)
class Resume:
    """Let a paused process go on (SIGCONT)."""

    do: ClassVar[str] = "resume"
    process: str


@dataclass(frozen=True, slots=True)
class Write:
    """Write a small text file, for instance the time on a receiver's clock."""

    do: ClassVar[str] = "write"
    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Flip:
    """Flip the lowest bit of one byte of a file. The same step once more restores it."""

    do: ClassVar[str] = "flip"
    path: str
    offset: int


@dataclass(frozen=True, slots=True)
class Move:
    """Give a file or folder another name: it is lost to its owner, and kept as evidence."""

    do: ClassVar[str] = "move"
    path: str
    to: str


@dataclass(frozen=True, slots=True)
class Check:
    """Keep a copy of the journals as they are now, as checkpoint `name`, and count them."""

    do: ClassVar[str] = "check"
    name: str
    counts: Counts


@dataclass(frozen=True, slots=True)
class Export:
    """Keep the tables of the scenario's database as `exports/NAME.json`, and count them. The last one is named `end`."""

    do: ClassVar[str] = "export"
    name: str
    rows: Rows


@dataclass(frozen=True, slots=True)
class LimitFiles:
    """From now on the kernel lets no file that a paused process writes grow beyond so many bytes: a disk that is full."""

    do: ClassVar[str] = "limit_files"
    process: str
    max_bytes: int


@dataclass(frozen=True, slots=True)
class KillDatabase:
    """Kill the scenario's database server and all its processes (SIGKILL)."""

    do: ClassVar[str] = "kill_database"


@dataclass(frozen=True, slots=True)
class StartDatabase:
    """Start the scenario's database server again, on the files that it left."""

    do: ClassVar[str] = "start_database"


Step = (
    Start
    | Begin
    | Run
    | Together
    | Stop
    | Kill
    | Await
    | AwaitPaused
    | Resume
    | Write
    | Flip
    | Move
    | Check
    | Export
    | LimitFiles
    | KillDatabase
    | StartDatabase
)

SQLITE, POSTGRES = "sqlite", "postgres"
STORES = (SQLITE, POSTGRES)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One declared experiment.

    `shows` is its row in the tables, `look_at` says which line of the evidence makes the point. A counterexample's wrong
    count is its expected count. `store` is the only database on which it can be run; None where any will do.
    """

    section: str
    name: str
    shows: str
    look_at: str
    steps: tuple[Step, ...]
    expected: Counts
    counterexample: bool = False
    store: str | None = None

    @property
    def path(self) -> str:
        """`section/name`: the scenario's identity, and its folder in the evidence."""
        return f"{self.section}/{self.name}"

    def data(self) -> dict[str, Any]:
        """The scenario as the JSON value that is archived and hashed (evidence/README.md)."""
        return {
            "section": self.section,
            "name": self.name,
            "shows": self.shows,
            "look_at": self.look_at,
            "counterexample": self.counterexample,
            "store": self.store,
            "steps": [_step_data(step) for step in self.steps],
            "expected": asdict(self.expected),
        }


def _step_data(step: Step) -> dict[str, Any]:
    if isinstance(step, Together):
        return {"do": step.do, "runs": [_step_data(run) for run in step.runs]}
    fields = asdict(step)
    program = fields.pop("program", None)
    if program is not None:
        fields |= program
        fields["arguments"] = list(fields["arguments"])
    return {"do": step.do, **fields}


def catalogue_data(scenarios: Sequence[Scenario]) -> list[dict[str, str]]:
    """The whole catalogue in short: each scenario's path, and the SHA-256 of its canonical JSON."""
    return [
        {"scenario": scenario.path, "sha256": journal.fingerprint(journal.canonical(scenario.data()).encode())}
        for scenario in scenarios
    ]


def protocol_sha256(scenarios: Sequence[Scenario]) -> str:
    """The hash that names a frozen catalogue: SHA-256 of the canonical JSON of `catalogue_data`."""
    return journal.fingerprint(journal.canonical(catalogue_data(scenarios)).encode())

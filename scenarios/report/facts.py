"""What an archive says, as frozen values: a run, its scenarios, their processes and journals. Nothing here reads or judges."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COUNTED = ("effects", "receipts", "history", "arrivals")


@dataclass(frozen=True, slots=True)
class Tally:
    """E, R, H and A: effects, receipts, complete history records, arrivals."""

    effects: int = 0
    receipts: int = 0
    history: int = 0
    arrivals: int = 0

    def values(self) -> tuple[int, int, int, int]:
        """The four in this order."""
        return self.effects, self.receipts, self.history, self.arrivals


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a journal: its place (from 1), what the record says, and the line as it is shown.

    A line that is no record has an empty type and id and no data.
    """

    number: int
    type: str
    id: str
    data: Mapping[str, Any]
    shown: str


@dataclass(frozen=True, slots=True)
class JournalFile:
    """A journal as the processes left it: `name` (effects, arrivals …), and its lines."""

    path: str
    name: str
    lines: tuple[Line, ...]
    left_out: int  # lines beyond the bound


@dataclass(frozen=True, slots=True)
class ExportFile:
    """The tables of a dispatch outbox as an export step kept them: rows, transitions and admin events, each a line."""

    path: str
    rows: tuple[Line, ...]
    transitions: tuple[Line, ...]
    events: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Process:
    """One child process, as `processes.json` tells of it. `fault` and `pause` are (point, occurrence)."""

    name: str
    incarnation: int
    step: int
    module: str
    arguments: tuple[str, ...]
    command: str
    environment: Mapping[str, Any]
    fault: tuple[str, int] | None
    pause: tuple[str, int] | None
    exit_code: int | None
    signal: str | None
    ended_by: str
    stdout: str
    stderr: str

    def option(self, name: str, default: str = "") -> str:
        """The value behind the option `name` of its command line."""
        given = self.arguments
        return given[given.index(name) + 1] if name in given[:-1] else default


@dataclass(frozen=True, slots=True)
class CheckFound:
    """What a check step in the middle found; `counts` is None where the archive does not tell."""

    name: str
    counts: Tally | None


@dataclass(frozen=True, slots=True)
class ExportFound:
    """What an export step found, as `model.Rows` counts; `rows` is None where the archive does not tell."""

    name: str
    rows: Mapping[str, int] | None


@dataclass(frozen=True, slots=True)
class ScenarioEvidence:
    """One scenario: what was declared, what the run says came of it, and its files."""

    section: str
    name: str
    shows: str
    look_at: str
    counterexample: bool
    steps: tuple[Mapping[str, Any], ...]
    expected: Tally | None
    counts: Tally | None
    checks: tuple[CheckFound, ...]
    problems: tuple[str, ...]
    verdict: str
    processes: tuple[Process, ...]
    journals: Mapping[str, JournalFile]
    small_files: Mapping[str, str]
    exports: Mapping[str, ExportFile] = field(default_factory=dict)
    exported: tuple[ExportFound, ...] = ()
    expected_rows: Mapping[str, int] | None = None

    @property
    def has_tables(self) -> bool:
        """Whether it is about a dispatch outbox, whose tables it exports."""
        return any(step.get("do") == "export" for step in self.steps)

    @property
    def path(self) -> str:
        """`section/name`."""
        return f"{self.section}/{self.name}"

    @property
    def receiver_kinds(self) -> tuple[str, ...]:
        """The kinds of receiver that it runs, in order, each once."""
        kinds = [each.arguments[0] for each in self.processes if each.module == "receivers" and each.arguments]
        return tuple(dict.fromkeys(kinds))


@dataclass(frozen=True, slots=True)
class Archive:
    """A finished run: its manifest's facts, the verdict of `results.json` and the scenarios in their order."""

    folder: Path
    run: Mapping[str, Any]
    protocol_version: int | None
    protocol_sha256: str
    complete: bool
    store: str
    verdict: str
    totals: Mapping[str, Any]
    scenarios: tuple[ScenarioEvidence, ...]

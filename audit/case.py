"""One scenario of an archive, gathered for the checks: its plan, its processes, its journals and its exports.

`gather` works out from the module and the `--dir` of every recorded process which journals the scenario must have left,
reads each of them, and reports what is missing. A `Ran` is one recorded process together with its place in the plan; a
`Store` is one directory of journals, under the name that it has at the end, with the processes that worked on it, in the
order of the steps. Nothing here judges what the records say.
"""

from __future__ import annotations

from audit import journals
from audit.first_step import FirstStep
from audit.journals import Journal
from audit.plan import NEVER, folder_at, launches, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.expectations.words import Expectation
    from audit.files import Tree
    from audit.findings import Note
    from audit.plan import Launch

PRODUCER, DISPATCHER, RECEIVER, CLIENT = "outbox.producer", "outbox.dispatcher", "receivers", "scenarios.client"
RELAY, PREFIXES = "scenarios.relay", "scenarios.prefixes"

WRITES: dict[str, tuple[str, ...]] = {
    PRODUCER: ("intentions",),
    DISPATCHER: ("attempts", "receipts", "history"),
    RECEIVER: ("effects", "arrivals"),
    CLIENT: ("requests",),
    RELAY: ("exchanges",),
    PREFIXES: ("prefixes",),
}
"""The journals that a program opens for append, in this order."""
COUNTED_TYPES = {"effects": "effect", "receipts": "receipt", "history": "history", "arrivals": "arrival"}
"""The journals that are counted, and the type of the records that count."""
KEEPS_KEYS = ("effect-then-key", "key-then-effect")
"""The kinds of receivers that have a journal `keys` as well."""
FORGETFUL = "forgetful"
"""The kind of receiver that has a clock."""
LOCK = "dispatcher.lock"
HALTED = 23


class Ran:
    """One recorded process; its record's members are its items."""

    __slots__ = ("launch", "module", "number", "record")

    def __init__(self, record: dict[str, Any], launch: Launch | None, number: int) -> None:
        self.record = record
        self.launch = launch
        self.number = number
        self.module = module_of(record)

    def __getitem__(self, member: str) -> Any:
        return self.record[member]

    @property
    def ends(self) -> int:
        """The step at whose end this process is certain to have ended."""
        return self.launch.ends if self.launch else int(self.record["step"])

    def alive(self, step: int) -> bool:
        """Whether this process runs, as planned, while a step is carried out."""
        return bool(self.record["step"] < step < self.ends)

    def kind(self) -> str:
        """The kind of a receiver."""
        command: list[str] = self.record["command"]
        return command[3] if self.module == RECEIVER and len(command) > 3 else ""

    def writes(self) -> tuple[str, ...]:
        """The journals that this process opens for append."""
        return (*WRITES.get(self.module, ()), *(("keys",) if self.kind() in KEEPS_KEYS else ()))


class Store:
    """One directory of journals and the processes that worked on it, in order; `torn` names the ones that a death left torn."""

    __slots__ = ("folder", "journals", "processes", "torn")

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.torn: set[str] = set()
        self.journals: dict[str, Journal] = {}
        self.processes: list[Ran] = []

    def __getitem__(self, name: str) -> Journal:
        """The journal of that name; an empty one where the store has none."""
        return self.journals.get(name) or Journal(f"{self.folder}/{name}.jsonl", name)

    def ran(self, module: str) -> list[Ran]:
        """The processes of one module."""
        return [process for process in self.processes if process.module == module]


class Case:
    """A scenario: what the protocol plans, what the audit expects, what the archive has.

    `exporting` says that it is one of a dispatch outbox, whose tables are exported.
    """

    __slots__ = (
        "checkpoints", "expectation", "exporting", "exports", "files", "first", "folder", "launches", "moves", "name", "note",
        "plan", "processes", "ran", "rows", "stores", "successes", "tally", "tree",
    )  # fmt: skip

    def __init__(
        self, plan: dict[str, Any], expectation: Expectation | None, processes: list[dict[str, Any]], tree: Tree
    ) -> None:
        self.name = f"{plan['section']}/{plan['name']}"
        self.folder = f"scenarios/{self.name}/"
        self.plan = plan
        self.expectation = expectation
        self.processes = processes
        self.launches = launches(plan["steps"])
        # What no step started is told by `processes` and not looked at any further: there may be any number of it.
        self.ran = [Ran(record, launch, n) for n, (record, launch) in enumerate(zip(processes, self.launches, strict=False))]
        self.tree = tree
        self.note: Note = tree.findings.about(self.name)
        self.stores: dict[str, Store] = {}
        self.files: set[str] = set()
        self.first = FirstStep(self.name, len(plan["steps"]), tree.findings)
        self.tally: Tally | None = None
        self.checkpoints: dict[str, tuple[int, int, int, int]] = {}
        self.exports: dict[str, dict[str, Any]] = {}
        self.rows: dict[str, tuple[int, ...]] = {}
        self.moves = self.successes = 0
        self.exporting = any(step["do"] == "export" for step in plan["steps"])

    def having(self, module: str) -> list[Store]:
        """The stores on which a module worked."""
        return [store for store in self.stores.values() if store.ran(module)]

    def having_run(self, module: str) -> list[Ran]:
        """The processes of one module, in order."""
        return [process for process in self.ran if process.module == module]

    def counts(self) -> tuple[int, int, int, int]:
        """Effects, receipts, history records and arrivals, from the journals and exports alone.

        Of a dispatch outbox the transitions are the history, and those that record a success its receipts.
        """
        told = self.tally or Tally(self)
        effects, receipts, history, arrivals = [told.records.get(each, 0) for each in COUNTED_TYPES.items()]
        return effects, receipts + self.successes, history + self.moves, arrivals

    def close(self) -> None:
        """The scenario was judged: from now on there are its counts, and its journals are let go."""
        self.tally = Tally(self)
        self.stores.clear()
        self.exports.clear()


class Tally:
    """How much of everything the journals of a scenario have, checkpoints left out."""

    __slots__ = ("journals", "lines", "records", "torn")

    def __init__(self, case: Case) -> None:
        journals = [journal for store in case.stores.values() for journal in store.journals.values()]
        self.journals = len(journals)
        self.lines = sum(len(journal.ends) for journal in journals)
        self.torn = sum(bool(journal.tail) for journal in journals)
        self.records: dict[tuple[str, str], int] = {}
        for journal in journals:
            for record in journal.records:
                each = journal.name, record.type
                self.records[each] = self.records.get(each, 0) + 1


def module_of(process: dict[str, Any]) -> str:
    """The module that a process ran; empty where the command is no `python -m MODULE`."""
    command: list[str] = process["command"]
    return command[2] if len(command) > 2 and command[:2] == ["python", "-m"] else ""


def option(process: Ran, name: str) -> str | None:
    """The value that follows an option in a command."""
    command: list[str] = process["command"]
    return command[command.index(name) + 1] if name in command[:-1] else None


def died(process: Ran) -> bool:
    """Whether a process halted at a fault point or was killed, so that it left work half done."""
    return process["exit_code"] == HALTED or process["signal"] is not None


def label(process: dict[str, Any] | Ran) -> str:
    """How sentences name a process."""
    return f"{process['process']} (incarnation {process['incarnation']})"


def gather(case: Case) -> None:
    """Read every journal that the scenario's processes must have left; the steps' own files are held at once."""
    steps = case.plan["steps"]
    for process in case.ran:
        named = option(process, "--dir")
        if named is None or not process.writes():
            continue
        folder = folder_at(steps, named, process["step"])
        store = case.stores.setdefault(folder, Store(case.folder + folder))
        store.processes.append(process)
        for name in process.writes():
            if name not in store.journals:
                _journal(case, store, name, process.kind() == FORGETFUL)
        if process.module == DISPATCHER and f"{store.folder}/{LOCK}" not in case.files:
            _lock(case, f"{store.folder}/{LOCK}")
    for path, content in written(steps, NEVER).items():
        _written(case, case.folder + path, content)


def _journal(case: Case, store: Store, name: str, timed: bool) -> None:
    path = f"{store.folder}/{name}.jsonl"
    case.files.add(path)
    if path in case.tree.sizes:
        store.journals[name] = journals.read(case.tree, path, name, case.note, timed)
    else:
        store.journals[name] = Journal(path, name)
        case.note(path, "the journal is missing, though a process ran that opens it")


def _lock(case: Case, path: str) -> None:
    case.files.add(path)
    size = case.tree.sizes.get(path)
    if size is None:
        case.note(path, "the lock file is missing, though a dispatcher ran")
    elif size:
        case.note(path, f"the lock file has {size} bytes, expected none")


def _written(case: Case, path: str, content: str) -> None:
    case.files.add(path)
    if path not in case.tree.sizes:
        case.note(path, "the file is missing, though a step wrote it")
    elif case.tree.read(path) != content.encode():
        case.note(path, f"is not what the last write step wrote, {content!r}")

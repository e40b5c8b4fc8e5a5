"""One scenario of an archive, gathered for the checks: its plan, its processes and its journals.

`gather` works out from the module and the `--dir` of every recorded process which journals the scenario must have left
(`WRITES`), reads each of them, and reports what is missing. A `Store` is one directory of journals with the processes
that worked on it, in the order of the steps. Nothing here judges what the records say.
"""

from __future__ import annotations

from audit import journals
from audit.journals import Journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.expectations.words import Expectation
    from audit.files import Tree
    from audit.findings import Note

PRODUCER, DISPATCHER, RECEIVER, CLIENT = "outbox.producer", "outbox.dispatcher", "receivers", "scenarios.client"

WRITES: dict[str, tuple[str, ...]] = {
    PRODUCER: ("intentions",),
    DISPATCHER: ("intentions", "attempts", "receipts", "history"),
    RECEIVER: ("effects", "arrivals"),
    CLIENT: ("requests",),
}
LOCK = "dispatcher.lock"
HALTED = 23


class Store:
    """One directory of journals and the processes that worked on it, in order."""

    __slots__ = ("folder", "journals", "processes")

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.journals: dict[str, Journal] = {}
        self.processes: list[dict[str, Any]] = []

    def __getitem__(self, name: str) -> Journal:
        """The journal of that name; an empty one where the store has none."""
        return self.journals.get(name) or Journal(f"{self.folder}/{name}.jsonl", name)

    def ran(self, module: str) -> list[dict[str, Any]]:
        """The processes of one module."""
        return [process for process in self.processes if module_of(process) == module]


class Case:
    """A scenario: what the protocol plans, what the audit expects, what the archive has."""

    __slots__ = ("checkpoints", "expectation", "files", "folder", "name", "note", "plan", "processes", "stores", "tree")

    def __init__(
        self, plan: dict[str, Any], expectation: Expectation | None, processes: list[dict[str, Any]], tree: Tree
    ) -> None:
        self.name = f"{plan['section']}/{plan['name']}"
        self.folder = f"scenarios/{self.name}/"
        self.plan = plan
        self.expectation = expectation
        self.processes = processes
        self.tree = tree
        self.note: Note = tree.findings.about(self.name)
        self.stores: dict[str, Store] = {}
        self.files: set[str] = set()
        self.checkpoints: dict[str, tuple[int, int, int, int]] = {}

    def having(self, module: str) -> list[Store]:
        """The stores on which a module worked."""
        return [store for store in self.stores.values() if store.ran(module)]

    def counts(self) -> tuple[int, int, int, int]:
        """Effects, receipts, history records and arrivals, from the journals alone."""
        return (
            sum(len(store["effects"].of("effect")) for store in self.stores.values()),
            sum(len(store["receipts"].of("receipt")) for store in self.stores.values()),
            sum(len(store["history"].of("history")) for store in self.stores.values()),
            sum(len(store["arrivals"].of("arrival")) for store in self.stores.values()),
        )

    def records(self) -> int:
        """How many journal records there are, checkpoints left out."""
        return sum(len(journal.ends) for store in self.stores.values() for journal in store.journals.values())


def module_of(process: dict[str, Any]) -> str:
    """The module that a process ran; empty where the command is no `python -m MODULE`."""
    command: list[str] = process["command"]
    return command[2] if len(command) > 2 and command[:2] == ["python", "-m"] else ""


def option(process: dict[str, Any], name: str) -> str | None:
    """The value that follows an option in a command."""
    command: list[str] = process["command"]
    return command[command.index(name) + 1] if name in command[:-1] else None


def died(process: dict[str, Any]) -> bool:
    """Whether a process halted at a fault point or was killed, so that it left work half done."""
    return process["exit_code"] == HALTED or process["signal"] is not None


def label(process: dict[str, Any]) -> str:
    """How sentences name a process."""
    return f"{process['process']} (incarnation {process['incarnation']})"


def gather(case: Case) -> None:
    """Read every journal that the scenario's processes must have left."""
    for process in case.processes:
        folder = option(process, "--dir")
        if folder is None or module_of(process) not in WRITES:
            continue
        store = case.stores.setdefault(folder, Store(case.folder + folder))
        store.processes.append(process)
        for name in WRITES[module_of(process)]:
            if name not in store.journals:
                _journal(case, store, name)
        if module_of(process) == DISPATCHER and f"{store.folder}/{LOCK}" not in case.files:
            _lock(case, f"{store.folder}/{LOCK}")


def _journal(case: Case, store: Store, name: str) -> None:
    path = f"{store.folder}/{name}.jsonl"
    case.files.add(path)
    if path in case.tree.sizes:
        store.journals[name] = journals.read(case.tree, path, name, case.note)
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

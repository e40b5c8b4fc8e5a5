"""Parts of a real archive as values: what `run.py` left of chosen scenarios, free to be edited and sealed again.

`Part` reads the scenarios' journals, files, processes and results, and `write` computes every checksum, chain, total, table
and manifest from whatever they say by then, as a careful forger would. The protocol, the run and the sources stay those of
the archive, so that a part that nobody edited is a valid archive of a selection.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from tests.audit import exported
from tests.audit.forge import COUNTED, REPOSITORY, Record, journal_bytes, sha, tables

TYPE_OF = {"effects": "effect", "receipts": "receipt", "history": "history", "arrivals": "arrival"}


def document(value: Any) -> bytes:
    """A JSON document in the layout in which the study writes it."""
    return json.dumps(value, indent=1).encode() + b"\n"


def freeze(root: Path, checkout: Path = REPOSITORY) -> Path:
    """A copy of the sources as they are now: whoever edits the checkout meanwhile does not disturb an audit against it."""
    for name in ("outbox", "receivers", "scenarios"):
        shutil.copytree(checkout / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(checkout / "run.py", root)
    return root


class Whole:
    """A real archive, read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = json.loads((folder / "manifest.json").read_text())
        self.processes = json.loads((folder / "processes.json").read_text())["processes"]
        self.results = json.loads((folder / "results.json").read_text())["scenarios"]
        self.names: list[str] = self.manifest["selection"]["scenarios"]
        lines = (folder / "tables.md").read_text().split("\n")
        self.introductions = {line[3:].lower(): lines[at + 2] for at, line in enumerate(lines) if line.startswith("## ")}
        self._parts: dict[str, Part] = {}

    def part(self, *names: str) -> Part:
        """The part that holds these scenarios, a fresh copy each time."""
        key = " ".join(names)
        if key not in self._parts:
            self._parts[key] = Part(self, [name for name in self.names if name in names])
        return self._parts[key].copy()


def _numbered(processes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The processes with the databases of each server numbered from 1, as a run of their scenarios alone has them."""
    found: dict[str, set[int]] = {}
    for process in processes:
        server, mark, number = process["substitutions"].get("db", "").rpartition("/halt23_")
        if mark:
            found.setdefault(server, set()).add(int(number))
    names = {
        f"{server}/halt23_{number}": f"{server}/halt23_{at}"
        for server, numbers in found.items()
        for at, number in enumerate(sorted(numbers), 1)
    }
    return [
        {**process, "substitutions": {name: names.get(value, value) for name, value in process["substitutions"].items()}}
        for process in processes
    ]


class Part:
    """Some scenarios of a real archive as values."""

    def __init__(self, whole: Whole, names: list[str]) -> None:
        self.whole = whole
        self.names = names
        self.processes: list[dict[str, Any]] = _numbered([p for p in whole.processes if p["scenario"] in names])
        self.results: list[dict[str, Any]] = [r for r in whole.results if r["scenario"] in names]
        self.journals: dict[str, list[Record]] = {}
        self.extra: dict[str, bytes] = {}
        for name in names:
            for path in sorted((whole.folder / "scenarios" / name).rglob("*")):
                relative = path.relative_to(whole.folder).as_posix()
                if path.suffix == ".jsonl":
                    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
                    self.journals[relative] = [{key: line[key] for key in ("type", "id", "data")} for line in lines]
                elif path.is_file():
                    self.extra[relative] = path.read_bytes()

    def copy(self) -> Part:
        fresh = object.__new__(Part)
        fresh.whole, fresh.names, fresh.extra = self.whole, self.names, dict(self.extra)
        fresh.processes, fresh.results = deepcopy(self.processes), deepcopy(self.results)
        fresh.journals = deepcopy(self.journals)
        return fresh

    def journal(self, path: str) -> list[Record]:
        """The records of a journal, by its path below the (first) scenario."""
        return self.journals[f"scenarios/{self.names[0]}/{path}.jsonl"]

    def data(self, path: str, line: int) -> dict[str, Any]:
        found: dict[str, Any] = self.journal(path)[line - 1]["data"]
        return found

    def export(self, name: str, edit: Callable[[dict[str, Any]], object]) -> None:
        """Edit an export of the (first) scenario."""
        path = f"scenarios/{self.names[0]}/exports/{name}.json"
        tables = json.loads(self.extra[path])
        edit(tables)
        self.extra[path] = document(tables)

    def process(self, name: str, incarnation: int = 1) -> dict[str, Any]:
        return next(p for p in self.processes if (p["process"], p["incarnation"]) == (name, incarnation))

    def _counts(self, name: str) -> dict[str, int]:
        found = dict.fromkeys(COUNTED, 0)
        for path, records in self.journals.items():
            journal = Path(path).stem
            if path.startswith(f"scenarios/{name}/") and "/checkpoints/" not in path and journal in found:
                found[journal] += sum(record["type"] == TYPE_OF[journal] for record in records)
        receipts, history = exported.receipts_and_history(self.extra.get(f"scenarios/{name}/exports/end.json", b""))
        return {**found, "receipts": found["receipts"] + receipts, "history": found["history"] + history}

    def _export(self, name: str, entry: dict[str, Any]) -> None:
        """The rows of one export, as results.json tells them."""
        rows = exported.rows_of(self.extra.get(f"scenarios/{name}/exports/{entry['name']}.json", b""))
        entry["rows"] = rows or entry["rows"]

    def _tables(self) -> str:
        return tables(self.results, self.processes, self.whole.introductions)

    def told(self) -> dict[str, bytes]:
        """The conveniences: they say what the journals say."""
        for entry in self.results:
            entry["counts"] = self._counts(entry["scenario"])
            for each in entry["exports"]:
                self._export(entry["scenario"], each)
        main = {path: records for path, records in self.journals.items() if "/checkpoints/" not in path}
        totals = {
            "scenarios": len(self.names),
            "processes": len(self.processes),
            "requests": sum(record["type"] == "arrival" for records in main.values() for record in records),
            "records": sum(map(len, main.values())),
        }
        results = {"format": "halt23.results", "format_version": 1, "scenarios": self.results, "totals": totals}
        return {"results.json": document({**results, "verdict": "PASS"}), "tables.md": self._tables().encode()}

    def files(self) -> dict[str, bytes]:
        """Every file but the manifest."""
        found = {path: journal_bytes(Path(path).stem, records) for path, records in self.journals.items()}
        processes = {"format": "halt23.processes", "format_version": 1, "processes": self.processes}
        return {**found, "processes.json": document(processes), **self.told(), **self.extra}

    def manifest(self, files: dict[str, bytes]) -> dict[str, Any]:
        whole = self.whole.manifest
        plans = whole["protocol"]["scenarios"]
        chosen = [plan for plan in plans if f"{plan['section']}/{plan['name']}" in self.names]
        changed = {
            "protocol": {**whole["protocol"], "scenarios": chosen},
            "selection": {
                **whole["selection"],
                "scenarios": self.names,
                "complete": whole["selection"]["complete"] and self.names == self.whole.names,
            },
            "files": {path: {"bytes": len(data), "sha256": sha(data)} for path, data in sorted(files.items())},
        }
        return {**whole, **changed}

    def sealed(self) -> dict[str, bytes]:
        """Every file, the manifest last."""
        files = self.files()
        return {**files, "manifest.json": document(self.manifest(files))}

    def write(self, folder: Path) -> Path:
        for path, data in self.sealed().items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        return folder

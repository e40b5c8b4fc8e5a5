"""A forger of archives: builds valid ones from the contract, and false ones that are consistent in every checksum.

It follows `evidence/README.md` alone and shares no code with the harness or with the audit. An `Archive` is values,
free to be edited (`play.study()` makes a valid one). `write` computes checksums, chains and the manifest from whatever
the values say by then, as a careful forger would; `reseal` does so for an archive that was edited on the disk.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any

from tests.audit import exported

Record = dict[str, Any]
REPOSITORY = Path(__file__).resolve().parent.parent.parent
COUNTED = ("effects", "receipts", "history", "arrivals")
SOURCES = {
    "run.py": "print('run')\r\n",
    "outbox/__init__.py": "",
    "outbox/dispatcher.py": "# dispatcher\n",
    "receivers/__init__.py": "# receivers\n",
    "scenarios/catalogue/delivery.py": "# delivery\n",
    "scenarios/catalogue/notes.txt": "no Python, and a source all the same\n",
}
NO_SOURCES = {
    "outbox/__pycache__/dispatcher.pyc": "x",
    "scenarios/.hidden": "x",
    "scenarios/.cache/file": "x",
}


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def payload(data: bytes) -> dict[str, str]:
    return {"content": data.decode(), "encoding": "utf-8"}


def journal_bytes(name: str, records: list[Record]) -> bytes:
    """The bytes of a journal that holds these records (`type`, `id`, `data`)."""
    previous = sha(f"halt23 journal 1 {name}".encode())
    lines = []
    for number, record in enumerate(records, 1):
        sequence = record.get("sequence", number)
        members = {"previous": previous, "sequence": sequence, "type": record["type"], "id": record["id"]}
        rest = json.dumps(members, separators=(",", ":"))[1:-1] + f',"data":{compact(record["data"])}}}'
        previous = sha(rest.encode())
        lines.append(f'{{"sha256":"{previous}",{rest}\n')
    return "".join(lines).encode()


TABLE_HEAD = ("| Scenario | Receiver effects | Receipts | Complete history records | Arrivals |", "|---|---|---|---|---|")
INTRODUCTION = (
    "A dispatcher sends an intention, gets the response and dies before it can write the receipt. Recovery sends "
    "again, with the same key and the same bytes. Whether that applies the operation twice is decided at the "
    "receiver."
)


class Archive:
    """An archive as values."""

    def __init__(self, catalogue: list[dict[str, Any]]) -> None:
        self.protocol: dict[str, Any] = {"version": 1, "scenarios": catalogue}
        self.selection = [f"{plan['section']}/{plan['name']}" for plan in catalogue]
        self.processes: list[dict[str, Any]] = []
        self.results: dict[str, Any] = {"format": "halt23.results", "format_version": 1, "scenarios": []}
        self.journals: dict[str, list[Record]] = {}
        self.extra: dict[str, bytes] = {}
        self.tables: str | None = None
        self.run: dict[str, Any] = {
            "spawn": "fork", "jobs": 1, "started_at": "2026-01-01T00:00:00Z", "wall_seconds": 9.5, "cores": 2,
            "python": "3.11.7", "implementation": "CPython", "platform": "Linux", "file_system": "ext4",
            "packages": {"aiohttp": "3.10.0", "attrs": "26.1.0"},
            "sqlite": {"package": "sqlite3", "version": "3.40.1", "journal_mode": "truncate"}, "postgres": None,
            "commit": "0123456789abcdef" * 2 + "01234567", "clean": True,
        }  # fmt: skip

    def copy(self) -> Archive:
        return deepcopy(self)

    def journal(self, scenario: str, name: str) -> list[Record]:
        folder = {"intentions": "outbox", "attempts": "outbox", "receipts": "outbox", "history": "outbox", "requests": "client"}
        return self.journals[f"scenarios/delivery/{scenario}/{folder.get(name, 'receiver')}/{name}.jsonl"]

    def data(self, scenario: str, name: str, line: int) -> dict[str, Any]:
        found: dict[str, Any] = self.journal(scenario, name)[line - 1]["data"]
        return found

    def process(self, scenario: str, name: str, incarnation: int = 1) -> dict[str, Any]:
        wanted = (f"delivery/{scenario}", name, incarnation)
        return next(p for p in self.processes if (p["scenario"], p["process"], p["incarnation"]) == wanted)

    def finish(self) -> None:
        """Work out totals and tables from the journals as they are now."""
        main = {path: records for path, records in self.journals.items() if "/checkpoints/" not in path}
        requests = sum(r["type"] == "arrival" for records in main.values() for r in records)
        self.results["totals"] = {
            "scenarios": len(self.selection),
            "processes": len(self.processes),
            "requests": requests,
            "records": sum(map(len, main.values())),
        }
        self.results.setdefault("verdict", "PASS")
        self.tables = tables(self.results["scenarios"], self.processes, {"delivery": INTRODUCTION})

    def files(self) -> dict[str, bytes]:
        """Every file but the manifest."""
        found = {path: journal_bytes(Path(path).stem, records) for path, records in self.journals.items()}
        document = {"format": "halt23.processes", "format_version": 1, "processes": self.processes}
        found["processes.json"] = json.dumps(document, indent=1).encode() + b"\n"
        found["results.json"] = json.dumps(self.results, indent=1).encode() + b"\n"
        found["tables.md"] = (self.tables or "").encode()
        return found | self.extra

    def manifest(self, files: dict[str, bytes]) -> dict[str, Any]:
        plans = self.protocol["scenarios"]
        chosen = [plan for plan in plans if f"{plan['section']}/{plan['name']}" in self.selection]
        sums = {"sha256": protocol_hash(plans), "catalogue": catalogue_sums(plans)}
        protocol = {"version": self.protocol["version"], **sums, **self.protocol, "scenarios": chosen}
        complete = len(self.selection) == len(self.protocol["scenarios"])
        return {
            "format": "halt23.evidence",
            "format_version": 1,
            "protocol": protocol,
            "selection": {"scenarios": self.selection, "store": "sqlite", "complete": complete},
            "run": self.run,
            "sources": {name: sha(text.replace("\r\n", "\n").encode()) for name, text in sorted(SOURCES.items())},
            "files": {path: {"bytes": len(data), "sha256": sha(data)} for path, data in sorted(files.items())},
        }

    def write(self, folder: Path) -> Path:
        files = self.files()
        for path, data in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        manifest = self.manifest(files)
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
        return folder


def tables(entries: list[dict[str, Any]], processes: list[dict[str, Any]], introductions: dict[str, str]) -> str:
    """`tables.md` as the study lays it out, from the entries of results.json and the records of processes.json."""
    lines = ["# Scenario tables", ""]
    for section in dict.fromkeys(entry["scenario"].split("/")[0] for entry in entries):
        chosen = [entry for entry in entries if entry["scenario"].startswith(f"{section}/")]
        exporting = any(entry["exports"] for entry in chosen)
        head = exported.HEAD if exporting else TABLE_HEAD
        lines += [f"## {section.capitalize()}", "", introductions[section], "", *head]
        for entry in chosen:
            mark = " (counterexample)" if entry["counterexample"] else ""
            cells = [str(entry["counts"][name]) for name in COUNTED]
            cells += exported.cells(entry["exports"][-1]["rows"]) if exporting else ()
            lines.append(f"| `{entry['scenario'].split('/')[1]}`: {entry['shows']}{mark} | {' | '.join(cells)} |")
        lines += ["", _sums(chosen, processes), ""]
    return "\n".join([*lines, "## Altogether", "", _sums(entries, processes), ""])


def _sums(entries: list[dict[str, Any]], processes: list[dict[str, Any]]) -> str:
    names = [entry["scenario"] for entry in entries]
    wrong = sum(bool(entry["counterexample"]) for entry in entries)
    started = sum(process.get("scenario") in names for process in processes)
    requests = sum(entry["counts"]["arrivals"] for entry in entries)
    return f"{len(names)} scenarios, counterexamples among them: {wrong}; {started} child processes, {requests} requests."


def reseal(folder: Path) -> None:
    """Make the manifest's file hashes those of the files on the disk."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    found = sorted(p for p in folder.rglob("*") if p.is_file() and p != path)
    manifest["files"] = {
        p.relative_to(folder).as_posix(): {"bytes": p.stat().st_size, "sha256": sha(p.read_bytes())} for p in found
    }
    path.write_text(json.dumps(manifest, indent=1) + "\n")


def canonical_sha(value: object) -> str:
    return sha(json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=True).encode())


def catalogue_sums(plans: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [{"scenario": f"{plan['section']}/{plan['name']}", "sha256": canonical_sha(plan)} for plan in plans]


def protocol_hash(plans: list[dict[str, Any]]) -> str:
    return canonical_sha(catalogue_sums(plans))


def checkout(folder: Path, protocol_sha256: str) -> Path:
    """A checkout with small sources and a copy of the real audit in which the protocol is pinned anew."""
    for name, text in {**SOURCES, **NO_SOURCES}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
    shutil.copytree(REPOSITORY / "audit", folder / "audit", ignore=shutil.ignore_patterns("__pycache__"))
    with (folder / "audit" / "expectations" / "__init__.py").open("a") as pins:
        pins.write(f'\nPROTOCOLS[1] = "{protocol_sha256}"\n')
    return folder

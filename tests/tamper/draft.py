"""An archive under the forger's hands, and how careful the forger is.

A `Draft` opens the files of a base as values (a journal: its lines as objects; a document: an object) and is edited. `sealed`
gives the changed files: care `a` writes the edit and nothing else; `b` computes every checksum, chain, sequence number,
protocol hash and manifest entry anew; `c` adapts the counts of `results.json` and `tables.md` to the journals as well. A
member whose name ends in `TWICE` is written under the name without it, so that an object can have a member twice; marks `FIRST`
before a name keep it from being sorted among the others; the character behind `ESCAPED` is written as a JSON escape.
"""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

from tests.audit.forge import canonical_sha, sha
from tests.audit.real import document
from tests.tamper.ground import Base

MANIFEST, PROCESSES = "manifest.json", "processes.json"
EXPORTS = "/exports/"
TWICE, ESCAPED, FIRST = "\0", "\1", "\2"
_MARKS = re.compile(rb'\\u0001([ -!#-[\]-~])|\\u0001\\(["\\n])|\\u0002|\\u0000(?=":)')


def parsed(path: str, data: bytes) -> Any:
    return [json.loads(line) for line in data.splitlines()] if path.endswith(".jsonl") else json.loads(data)


class Draft:
    """A base that is being edited."""

    def __init__(self, base: Base) -> None:
        self.base = base
        self.raw: dict[str, bytes | None] = {}
        self.keeps_sequence = False
        self._opened: dict[str, Any] = {}

    def open(self, path: str) -> Any:
        """A file as values, free to be changed."""
        if path not in self._opened:
            self._opened[path] = parsed(path, self.base.files[path])
        return self._opened[path]

    def sealed(self, care: str) -> dict[str, bytes | None]:
        """The files that differ from the base."""
        changes = dict(self.raw)
        for path, value in self._opened.items():
            if path.endswith(".jsonl"):
                changes[path] = self._chained(path, value) if care > "a" else b"".join(map(_line, value))
            else:
                changes[path] = _written(value)
        if care == "c":
            changes.update(self._counted())
        if care > "a":
            self._list(changes)
        return {path: data for path, data in changes.items() if data != self.base.files.get(path)}

    def _chained(self, path: str, lines: list[Any]) -> bytes:
        previous = sha(f"halt23 journal 1 {Path(path).stem}".encode())
        found = []
        for number, record in enumerate(lines, 1):
            members = {name: value for name, value in record.items() if name.rstrip(TWICE) not in ("sha256", "previous")}
            if "sequence" in members and not self.keeps_sequence:
                members["sequence"] = number
            rest = _line({"previous": previous, **members})[1:-1]
            previous = sha(rest)
            found.append(b'{"sha256":"' + previous.encode() + b'",' + rest + b"\n")
        return b"".join(found)

    def _counted(self) -> dict[str, bytes]:
        """`results.json` and `tables.md` as the journals have it by now."""
        part = self.base.part()
        for path in self.raw:
            if path.endswith(".jsonl"):
                part.journals[path] = []
            elif EXPORTS in path:
                part.extra[path] = self.raw[path] or b""
        for path, value in self._opened.items():
            if path.endswith(".jsonl"):
                part.journals[path] = [record for record in value if isinstance(record.get("type"), str)]
            elif path == PROCESSES and isinstance(value.get("processes"), list):
                part.processes = [process for process in value["processes"] if isinstance(process, dict)]
            elif EXPORTS in path:
                part.extra[path] = _written(value)
        files = part.told()
        mine = self._opened.keys() | self.raw.keys()
        return {path: files[path] for path in ("results.json", "tables.md") if path not in mine}

    def _list(self, changes: dict[str, bytes | None]) -> None:
        """The manifest's entries of the changed files, and its sums of the protocol."""
        manifest = copy.deepcopy(self._opened[MANIFEST]) if MANIFEST in self._opened else None
        same_names = all(data is not None and path in self.base.files for path, data in changes.items())
        if MANIFEST in self.raw:
            return
        if manifest is None and same_names:
            text = self.base.files[MANIFEST]
            for path, data in changes.items():
                text = text.replace(_entry(path, self.base.files[path]), _entry(path, data or b""))
            changes[MANIFEST] = text
            return
        manifest = json.loads(self.base.files[MANIFEST]) if manifest is None else manifest
        files = {path: data for path, data in {**self.base.files, **changes}.items() if data is not None and path != MANIFEST}
        if "files" in manifest:
            manifest["files"] = {path: _sums(data) for path, data in sorted(files.items())}
        try:
            protocol = manifest["protocol"]
            meant = json.loads(_written(protocol["scenarios"]))
            sums = {f"{plan['section']}/{plan['name']}": canonical_sha(plan) for plan in meant}
            for entry in protocol["catalogue"]:
                if entry["scenario"] in sums:
                    entry["sha256"] = sums[entry["scenario"]]
            if "sha256" in protocol:
                protocol["sha256"] = canonical_sha(json.loads(_written(protocol["catalogue"])))
        except (KeyError, TypeError):
            pass
        changes[MANIFEST] = _written(manifest)


def _sums(data: bytes) -> dict[str, Any]:
    return {"bytes": len(data), "sha256": sha(data)}


def _entry(path: str, data: bytes) -> bytes:
    """A file's entry as it stands in the text of a manifest."""
    text = document({"files": {path: _sums(data)}}).decode()
    return text[text.index('"' + path) : text.rindex('"')].encode()


def _line(record: Any) -> bytes:
    data = {name: _sorted(value) for name, value in record.items()}
    return _unmarked(json.dumps(data, separators=(",", ":")).encode()) + b"\n"


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value


def _written(value: Any) -> bytes:
    return _unmarked(document(value))


def _unmarked(text: bytes) -> bytes:
    """A text with its marks carried out."""
    return _MARKS.sub(_unmark, text) if b"\\u000" in text else text


def _unmark(mark: re.Match[bytes]) -> bytes:
    character = mark[1] or (b"\n" if mark[2] == b"n" else mark[2])
    return b"\\u%04X" % character[0] if character else b""

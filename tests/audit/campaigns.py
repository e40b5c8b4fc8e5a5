"""Small campaigns for the tests of the audit, and a forger of theirs who seals what was edited.

`python -m tests.audit.campaigns` prints the hashes of the subjects, as the audit pins them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from audit.archive import Report
from audit.campaign import audit_campaign
from audit.hashing import digest
from audit.inventory import Checkout
from audit.strict_json import encode
from scenarios.explore import strace
from scenarios.explore.archive import subject_data
from scenarios.explore.subjects import SUBJECTS
from tests.audit.forge import sha
from tests.audit.real import document

SYSCALLS = ("--mode", "syscalls", "--subject", "journal/unkeyed", "--budget", "120", "--keep", "all")
OPTIONS: dict[str, tuple[str, ...]] = {
    "points": ("--subject", "dispatch/keyed", "--depth", "2", "--budget", "29", "--keep", "all"),
    "wire": ("--mode", "wire", "--subject", "journal/unkeyed", "--budget", "6", "--keep", "all"),
    "pauses": ("--mode", "pauses", "--subject", "journal/keyed", "--budget", "5", "--keep", "all"),
    "lines": ("--mode", "lines", "--subject", "journal/keyed", "--budget", "12", "--keep", "all"),
    **({} if strace.why_not() else {"syscalls": SYSCALLS}),
    "failed": ("--subject", "journal/keyed", "--budget", "12"),
}
# An unkeyed receiver of which it is said that it applies everything once.
VIOLATED = """
import sys
from dataclasses import replace
from pathlib import Path
from scenarios.explore.campaign import Plan
from scenarios.explore.command import Exploring, choose, explore
from scenarios.explore.model import Allowed
if __name__ == "__main__":
    subject = replace(choose(["journal/unkeyed"])[0], allowed=Allowed())
    sys.exit(explore(Exploring(Path(sys.argv[1]), Plan((subject,), budget=34), "fork"), sys.stdout))
"""


def play(root: Path, out: Path, name: str) -> Path:
    """Run one of the small campaigns with the sources at `root`."""
    options = ["-c", VIOLATED, str(out)] if name == "violated" else ["run.py", "explore", "--out", str(out), *OPTIONS[name]]
    done = subprocess.run([sys.executable, *options], cwd=root, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == (name == "violated"), done.stdout + done.stderr
    return out


def pins() -> dict[str, str]:
    """The hash of every subject."""
    return {subject.name: digest(encode(json.loads(json.dumps(subject_data(subject)))).encode()) for subject in SUBJECTS}


class Forger:
    """Edits one campaign in place, seals it, lets the audit judge it, and puts everything back."""

    def __init__(self, folder: Path, checkout: Checkout) -> None:
        self.folder, self._checkout = folder, checkout
        self._before: dict[Path, bytes | None] = {}

    def judge(self) -> Report:
        """The audit's report on the campaign as it is now."""
        return audit_campaign(str(self.folder), self._checkout)

    def json(self, name: str) -> Any:
        """A document of the campaign."""
        return json.loads((self.folder / name).read_bytes())

    def lines(self, name: str) -> list[Any]:
        """The values of a file's lines."""
        return [json.loads(line) for line in (self.folder / name).read_bytes().splitlines()]

    def write(self, name: str, data: bytes | None) -> None:
        """Write a file, or take it away, until the end of the edit."""
        path = self.folder / name
        self._before.setdefault(path, path.read_bytes() if path.exists() else None)
        if data is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def journal(self, name: str, records: list[Any]) -> None:
        """Write a journal with new sums and sequence numbers."""
        previous = sha(f"halt23 journal 1 {Path(name).stem}".encode())
        whole = b""
        for number, record in enumerate(records, 1):
            record["previous"], record["sequence"] = previous, number
            kept = {member: record[member] for member in ("previous", "sequence", "type", "id", "data")}
            rest = json.dumps(kept, separators=(",", ":"))[1:].encode()
            previous = sha(rest)
            whole += b'{"sha256":"' + previous.encode() + b'",' + rest + b"\n"
        self.write(name, whole)

    def results(self, lines: list[Any]) -> None:
        """Write the results in their one form."""
        self.write("results.jsonl", b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines))

    def seal(self) -> None:
        """Bring the manifest's list of files up to date."""
        manifest = self.json("manifest.json")
        for path in self._before:
            name = path.relative_to(self.folder).as_posix()
            manifest["files"].pop(name, None)
            if path.exists() and name != "manifest.json":
                data = path.read_bytes()
                manifest["files"][name] = {"bytes": len(data), "sha256": sha(data)}
        manifest["files"] = dict(sorted(manifest["files"].items()))
        self.write("manifest.json", document(manifest))

    @contextmanager
    def edited(self, edit: Callable[[Forger], None]) -> Iterator[Report]:
        """The report on the campaign after an edit, sealed."""
        try:
            edit(self)
            self.seal()
            yield self.judge()
        finally:
            for path, data in self._before.items():
                if data is None:
                    path.unlink(missing_ok=True)
                    if path.parent != self.folder and not any(path.parent.iterdir()):
                        path.parent.rmdir()
                else:
                    path.write_bytes(data)
            self._before.clear()


Place = tuple[str | int, ...]


def leaves(value: Any, place: Place = ()) -> Iterator[Place]:
    """The place of every scalar and of every empty container."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = list(inner)
    if not found:
        yield place
    for name, each in found:
        yield from leaves(each, (*place, name))


def changed(value: Any, place: Place) -> Any:
    """A copy of a value with another one of the same kind at a place."""
    copy = json.loads(json.dumps(value))
    holder = copy
    for name in place[:-1]:
        holder = holder[name]
    holder[place[-1]] = another(holder[place[-1]])
    return copy


def another(value: Any) -> Any:
    """Another value of the same kind, and of the same form where it is a hash or an id."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        is_hex = len(value) in (32, 64) and set(value) <= set("0123456789abcdef")
        return value[:-1] + ("0" if value[-1] != "0" else "1") if is_hex else f"{value}x"
    return ["x"] if isinstance(value, list) else {"x": 1} if isinstance(value, dict) else "x"


if __name__ == "__main__":
    print(json.dumps(pins(), indent=4))

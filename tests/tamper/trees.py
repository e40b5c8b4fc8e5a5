"""Trees that no run leaves, and archives that are ten times as large: each audited by the command, in a process of its own.

`strange_trees` puts one oddity after the other into an archive: every one must end with exit code 1, 2 or 3, a finding and no
traceback. `grown` makes a scenario's journal longer and longer and measures how time and memory follow.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.audit.forge import REPOSITORY
from tests.tamper.ground import Ground

COMMAND_SECONDS = 60
EXTRA_FILES = 100_000
SPARSE_BYTES = 2**40
TREE_MEMORY_BYTES = 160 * 1024 * 1024


def _listed(name: str) -> Callable[[Path], object]:
    """A path put into the manifest's list of files."""

    def put(folder: Path) -> None:
        manifest = folder / "manifest.json"
        entry = '"files": {\n  "' + name + '": {\n   "bytes": 0,\n   "sha256": "' + "0" * 64 + '"\n  },'
        manifest.write_text(manifest.read_text().replace('"files": {', entry, 1))

    return put


def _instead(make: Callable[[str], object], name: str) -> Callable[[Path], object]:
    """Something else in the place of a file."""

    def put(folder: Path) -> None:
        (folder / name).unlink()
        make(str(folder / name))

    return put


def _link(target: str) -> Callable[[str], object]:
    return lambda path: os.symlink(target, path)


def _sparse(path: str) -> None:
    with open(path, "wb") as file:
        try:
            file.truncate(SPARSE_BYTES)
        except OSError:
            file.truncate(2**33)


def _socket(path: str) -> None:
    here = os.getcwd()
    os.chdir(os.path.dirname(path))  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.basename(path))
    os.chdir(here)


def _many(folder: Path) -> None:
    (folder / "many").mkdir()
    for number in range(EXTRA_FILES):
        os.close(os.open(folder / "many" / str(number), os.O_CREAT | os.O_WRONLY))


def _deep(folder: Path) -> None:
    here = os.getcwd()
    os.chdir(folder)
    for _ in range(300):
        os.mkdir("d")
        os.chdir("d")
    os.chdir(here)


def _device(path: str) -> None:
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))


def _write(name: str | bytes, data: bytes = b"") -> Callable[[Path], object]:
    def put(folder: Path) -> None:
        path = os.path.join(os.fsencode(folder), name if isinstance(name, bytes) else name.encode())
        with open(path, "wb") as file:
            file.write(data)

    return put


KEYED = "delivery/keyed_delivery"
JOURNAL = f"scenarios/{KEYED}/receiver/effects.jsonl"
TREES: dict[str, Callable[[Path], object]] = {
    "a link in place of a journal": _instead(_link("/etc/hostname"), JOURNAL),
    "a link to itself in place of the manifest": _instead(_link("manifest.json"), "manifest.json"),
    "a link to /dev/zero in place of the processes": _instead(_link("/dev/zero"), "processes.json"),
    "a link to the folder above": lambda folder: os.symlink("..", folder / "scenarios" / "up"),
    "a FIFO in place of a journal": _instead(os.mkfifo, JOURNAL),
    "a FIFO in place of the manifest": _instead(os.mkfifo, "manifest.json"),
    "a FIFO in place of the tables": _instead(os.mkfifo, "tables.md"),
    "a socket in place of a journal": _instead(_socket, JOURNAL),
    "a device (zero) in place of a journal": _instead(_device, JOURNAL),
    "a device (zero) in place of the manifest": _instead(_device, "manifest.json"),
    "a folder in place of a journal": _instead(os.mkdir, JOURNAL),
    "a folder in place of the manifest": _instead(os.mkdir, "manifest.json"),
    "a sparse file of a tebibyte in place of a journal": _instead(_sparse, JOURNAL),
    "a sparse file of a tebibyte beside the others": lambda folder: _sparse(str(folder / "sparse")),
    "a path with .. in the manifest": _listed("../../etc/passwd"),
    "an absolute path in the manifest": _listed("/etc/passwd"),
    "a path with a NUL in the manifest": _listed("a\\u0000b"),
    "a lone surrogate in the manifest": _listed("\\ud800"),
    "a name that differs in its case": _write("Manifest.json", b"{}\n"),
    "a journal that differs in its case": _write(JOURNAL.replace("effects", "Effects")),
    "a name that is no UTF-8": _write(b"\xff\xfe"),
    "a name with control characters": _write("\x1b[31m\n"),
    "a folder that is empty": lambda folder: (folder / "empty").mkdir(),
    "300 folders in one another": _deep,
    "100,000 extra files": _many,
    "an endless line": _write(JOURNAL, b"x" * (32 * 2**20)),
    "six million empty arrays in the results": _write("results.json", b'{"a":[' + b"[]," * 6_000_000 + b"[]]}\n"),
    "deep nesting in the manifest": _write("manifest.json", b'{"a":' * 2**20 + b"\n"),
}

MEASURING = """
import gc
gc.disable()  # as audit.py does
import sys
sys.path.insert(0, sys.argv[1])
from audit.cli import main
code = main([sys.argv[2]], sys.argv[3])
peak = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]  # ru_maxrss has the parent's, too
print("PEAK", int(peak[0]) * 1024)
sys.exit(code)
"""


def audited(folder: Path, root: Path) -> tuple[int, str, int, float]:
    """Exit code, output, peak memory and seconds of the command on one folder."""
    began = time.monotonic()
    command = [sys.executable, "-c", MEASURING, str(REPOSITORY), str(folder), str(root)]
    done = subprocess.run(command, capture_output=True, timeout=COMMAND_SECONDS, check=False)
    text = (done.stdout + done.stderr).decode("utf-8", "replace")
    peak = re.search(r"PEAK (\d+)", text)
    return done.returncode, text, int(peak[1]) if peak else 0, time.monotonic() - began


def strange_trees(ground: Ground, names: tuple[str, ...] = tuple(TREES)) -> tuple[dict[str, str], list[str]]:
    """What the audit says of each tree, and what is wrong with that."""
    told, bad = {}, []
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "archive"
            shutil.copytree(ground.folder, folder)
            try:
                TREES[name](folder)
            except OSError as error:
                told[name] = f"not possible here: {error.strerror}"
                continue
            try:
                code, text, peak, seconds = audited(folder, ground.root)
            except subprocess.TimeoutExpired:
                bad.append(f"{name}: no end within {COMMAND_SECONDS} s")
                continue
            told[name] = f"exit code {code}, {seconds:.2f} s, {peak / 2**20:.0f} MiB"
            if code not in (1, 2, 3) or "Traceback" in text or "foresaw" in text or peak > TREE_MEMORY_BYTES:
                bad.append(f"{name}: {told[name]}: {text[-500:]}")

    return told, bad


def grown(ground: Ground, lines: int = 20_000, times: int = 10) -> tuple[dict[str, float], list[str]]:
    """Seconds for an archive whose journals are long, and for one whose journals are `times` as long."""
    figures: dict[str, float] = {}
    for factor in (1, times):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "archive"
            shutil.copytree(ground.folder, folder)
            _lengthen(folder, lines * factor)
            runs = [audited(folder, ground.root) for _ in range(2)]
            figures[f"seconds, {lines * factor} records"] = round(min(run[3] for run in runs), 3)
            figures[f"peak bytes, {lines * factor} records"] = runs[0][2]
            figures[f"exit code, {lines * factor} records"] = runs[0][0]
    seconds = [value for name, value in figures.items() if name.startswith("seconds")]
    figures["ratio"] = round(seconds[1] / seconds[0], 2)
    return figures, [f"{times} times the records take {figures['ratio']} times as long"] if figures[
        "ratio"
    ] > times * 1.5 else []


def peaks(one: Ground, several: Ground, lines: int) -> tuple[int, int, int]:
    """Peak memory for one scenario with long journals and for several of them; the size of one scenario's journals."""
    found, size = [], 0
    for ground in (one, several):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "archive"
            shutil.copytree(ground.folder, folder)
            for name in ground.base.names:
                size = _lengthen(folder, lines, name)
            found.append(audited(folder, ground.root)[2])
    return found[0], found[1], size


def _lengthen(folder: Path, count: int, scenario: str = KEYED) -> int:
    """A receiver's journals with this many valid records more, which the processes never caused; their size."""
    from tests.audit.forge import Record, journal_bytes, payload, sha  # noqa: PLC0415

    effects: list[Record] = []
    arrivals: list[Record] = []
    body, route = sha(b"{}"), {"method": "POST", "route": "/"}
    for number in range(1, count // 3 + 1):
        text = f'{{"answer":"The counter is now {number}.","counter":{number}}}'.encode()
        name, key = f"arrival-{number}", f"key-{number}"
        arrival = {
            "attempt": None,
            "body_bytes": 2,
            "fingerprint": body,
            "key": key,
            "sender": None,
            **route,
        }
        answer = {"effect": key, "outcome": "applied", "reason": None, "result_sha256": sha(text), "status": 200}
        effect = {"arrival": name, "fingerprint": body, "key": key, "number": number, "result": payload(text), "status": 200}
        arrivals += [{"type": "arrival", "id": name, "data": arrival}, {"type": "answer", "id": name, "data": answer}]
        effects.append({"type": "effect", "id": key, "data": effect})
    store = folder / "scenarios" / scenario / "receiver"
    return sum(
        (store / f"{name}.jsonl").write_bytes(journal_bytes(name, records))
        for name, records in (("effects", effects), ("arrivals", arrivals))
    )

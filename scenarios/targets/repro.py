"""`--repro DIR`: each finding as a folder that stands alone, to be handed to whoever maintains the program.

    DIR/1-lost-worker.py-65/
        target/            the target file and the files beside it, as they were given
        reproduce.sh       plays this one case again
        expected.json      what was expected, and whose expectation it is
        actual.json        the line of the case
        seen/              what the processes wrote, and the folder that they worked in, as far as it was kept
        REPORT.md          a draft of a bug report

The words of the report are in `repro_words`. At most the worst five findings are written: a program with fifty is not helped by
fifty folders.
"""

import json
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outbox.errors import BadInput
from scenarios.targets import handed, repro_words
from scenarios.targets.handed import Handed
from scenarios.targets.results import CASES, TARGET, folder_name

MOST = 5
MOST_BYTES, MOST_FILES = 8 << 20, 500
# What lies beside a target file and is made anew by whoever runs it.
LEFT_OUT = ("__pycache__", "node_modules")
SCRIPT = """#!/bin/sh
# Plays one case of a check again: {case}
# It needs halt23: a clone of it, and an interpreter in which `pip install -e CLONE` was done. Name them in HALT23 and PYTHON.
# The program that is checked has to be installed there, too{install}, or for the interpreter TARGET_PYTHON.
# Exit code 1: it came to the same again. 0: it did not. 2: the program cannot be checked here. 3: nobody can tell.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if ! "${{PYTHON:=python3}}" "${{HALT23:=}}/run.py" check --help >/dev/null; then
    echo "halt23 does not start: HALT23=$HALT23 is to be a clone of it, PYTHON=$PYTHON an interpreter that has it installed" >&2
    exit 2
fi
exec "$PYTHON" "$HALT23/run.py" \\
    check {kind} "$here/target/{file}" --only {only} --out "${{1:-$here/out}}" ${{TARGET_PYTHON:+--python "$TARGET_PYTHON"}}
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: its window, the line of its example, and its place."""

    number: int
    window: Mapping[str, Any]
    line: Mapping[str, Any]

    @property
    def case(self) -> str:
        """The name by which it is played again."""
        return str(self.line.get("case") or self.line["expectation"])

    @property
    def folder(self) -> str:
        """The name of its folder."""
        kind = self.window["verdict"] if "tried" in self.window else self.window["severity"]
        return f"{self.number}-{kind}-{re.sub(r'[^A-Za-z0-9._-]+', '-', self.window['where'])}"


def refuse(to: Path) -> None:
    """Raise BadInput where `to` exists: nothing is overwritten."""
    if to.exists() or to.is_symlink():
        raise BadInput(f"--repro {to}: it exists, and nothing is overwritten; name a new folder")


def write(check: Handed, to: Path, file: Path) -> list[Path]:
    """Write the findings of a check of the target in `file`; their folders, none where there is no finding. Raises OSError."""
    written = []
    for finding in _findings(check):
        to.mkdir(parents=True, exist_ok=True)
        folder = to / finding.folder
        folder.mkdir()
        left_out = _copy_target(file, folder / "target", (to, check.folder))
        _write(folder / "expected.json", expected(check, finding.line))
        _write(folder / "actual.json", finding.line)
        _reproduce(check, finding, folder / "reproduce.sh", file)
        seen = check.folder / CASES / folder_name(finding.case)
        if seen.is_dir():
            shutil.copytree(seen, folder / "seen", symlinks=True)
        text = repro_words.report(check, finding.window, finding.line, file.parent, left_out)
        (folder / "REPORT.md").write_text(text, encoding="utf-8", newline="\n")
        written.append(folder)
    return written


def _findings(check: Handed) -> Iterator[Finding]:
    for number, window in enumerate(check.findings()[:MOST], 1):
        yield Finding(number, window, check.lines[window["example" if check.is_worker else "where"]])


def expected(check: Handed, line: Mapping[str, Any]) -> dict[str, Any]:
    """What was expected, by whom."""
    if not check.is_worker:
        return {name: line[name] for name in ("expectation", "source", "expected")}
    claims = check.summary["claims"]
    return {
        "claims": claims or repro_words.NO_CLAIM,
        "source": "the target file" if claims else "halt23, since the target file claims nothing",
        "verdict": check.allowed,
    }


def _reproduce(check: Handed, finding: Finding, path: Path, file: Path) -> None:
    package = check.plan["target"]["package"]
    text = SCRIPT.format(
        case=finding.case,
        install=f" ({package['install']})" if package else "",
        kind=check.summary["kind"],
        file=file.name,
        only=shlex.quote(finding.case),
    )
    path.write_text(text, encoding="utf-8", newline="\n")
    path.chmod(0o755)


def _copy_target(file: Path, to: Path, but: Iterable[Path]) -> str | None:
    """Copy the target file and what lies beside it; None, or what was left out and why."""
    to.mkdir()
    own = {each.resolve() for each in but}
    found = list(_files(file.parent, own))
    size = sum(path.stat().st_size for path in found)
    if size > MOST_BYTES or len(found) > MOST_FILES:
        shutil.copyfile(file, to / file.name)
        return f"only {TARGET} is in target/: beside it lie {len(found)} files with {size} bytes"
    for path in found:
        place = to / path.relative_to(file.parent)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    return None


def _files(folder: Path, but: set[Path]) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in LEFT_OUT or path.is_symlink() or path.resolve() in but:
            continue
        if path.is_dir() and not (path / "pyvenv.cfg").exists():
            yield from _files(path, but)
        elif path.is_file():
            yield path


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=True) + "\n", encoding="ascii")


def write_of(folder: Path, to: Path, file: Path) -> list[Path]:
    """Write the findings of the check in `folder`. Raises BadInput and OSError."""
    refuse(to)
    return write(handed.read(folder), to, file)

"""Reads an archive for those who look at it: frozen values, whatever the files hold.

Nothing is judged here; the audit does that. A file that is missing or no JSON document is an error that names it, everything
below that is taken as it comes: a member of another type counts as absent, a line that is no record is kept as a line. No
link is followed, and what is read of one file is bounded. The format is that of evidence/README.md.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from outbox.errors import BadInput
from outbox.files import open_regular
from scenarios.report import exports
from scenarios.report.facts import (
    COUNTED,
    Archive,
    CheckFound,
    ExportFile,
    JournalFile,
    Line,
    Process,
    ScenarioEvidence,
    Tally,
)
from scenarios.report.words import MAX_LINE, number_of, plain, short_hashes, shown_json, text_of

MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_LINES = 20_000
MAX_SMALL_BYTES = 4096
MAX_FILES = 1000
MAX_DEPTH = 16
MANIFEST, PROCESSES, RESULTS, PAGE = "manifest.json", "processes.json", "results.json", "report.html"
CHECKPOINTS, EXPORTS = "checkpoints", "exports"
_DATA = ',"data":'
# What says nothing. Within a JSON text a quotation mark would be escaped.
_SAYS_NOTHING = re.compile(r',"\w{1,40}":null|(?<=\{)"\w{1,40}":null,|,"encoding":"utf-8"')
_CHAIN = len('{"sha256":"","previous":"",') + 128  # what stands in a line before its own content


def read(folder: Path, manifest: Mapping[str, Any] | None = None) -> Archive:
    """Read the archive `folder`; `manifest` stands for the file while a run is being written.

    Raises BadInput where there is no finished archive or where one of its documents cannot be read.
    """
    if manifest is None:
        _hold_finished(folder)
        manifest = _document(folder / MANIFEST)
    results, processes = _document(folder / RESULTS), _document(folder / PROCESSES)
    by_scenario: dict[str, list[Process]] = {}
    for each in _mappings(processes.get("processes")):
        by_scenario.setdefault(text_of(each, "scenario"), []).append(_process(each))
    told = {text_of(each, "scenario"): each for each in _mappings(results.get("scenarios"))}
    protocol, selection = _mapping(manifest.get("protocol")), _mapping(manifest.get("selection"))
    plans = _mappings(protocol.get("scenarios"))
    paths = [f"{text_of(plan, 'section')}/{text_of(plan, 'name')}" for plan in plans]
    return Archive(
        folder=folder,
        run=_mapping(manifest.get("run")),
        protocol_version=number_of(protocol, "version"),
        protocol_sha256=text_of(protocol, "sha256"),
        complete=selection.get("complete") is True,
        store=text_of(selection, "store"),
        verdict=text_of(results, "verdict"),
        totals=_mapping(results.get("totals")),
        scenarios=tuple(
            _scenario(folder, plan, told.get(path, {}), by_scenario.get(path, []))
            for plan, path in zip(plans, paths, strict=True)
        ),
    )


def _hold_finished(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is not a directory; name an archive that run.py --out made")
    if not folder.is_dir():
        raise BadInput(f"{folder}: there is no such directory; name an archive that run.py --out made")
    if (folder / MANIFEST).exists():
        return
    if any((folder / name).exists() for name in ("scenarios", PROCESSES, RESULTS)):
        raise BadInput(
            f"{folder} is an interrupted run: it has no {MANIFEST}, so it is no evidence; run again into a new directory"
        )
    raise BadInput(f"{folder} is no archive: it has no {MANIFEST}; make one with: python run.py --out DIR")


def _document(path: Path) -> Mapping[str, Any]:
    try:
        content = _bytes(path, MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise BadInput(f"{path}: there is no such file; an archive that run.py finished has it") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > MAX_FILE_BYTES:
        raise BadInput(f"{path}: is larger than the {MAX_FILE_BYTES:,} bytes that are read of one file")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: is no JSON document: {plain(error)}") from None
    if not isinstance(value, dict):
        raise BadInput(f"{path}: is not what evidence/README.md describes: it holds no object")
    return value


def _bytes(path: Path, limit: int) -> bytes:
    with open(open_regular(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:  # noqa: PTH123 - an open descriptor, not a path
        return file.read(limit)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _texts(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _tally(value: object) -> Tally | None:
    numbers = [number_of(_mapping(value), name) for name in COUNTED]
    return None if None in numbers else Tally(*(each or 0 for each in numbers))


def _fault(value: object) -> tuple[str, int] | None:
    point, occurrence = _mapping(value).get("point"), number_of(_mapping(value), "occurrence")
    return (point, occurrence) if isinstance(point, str) and occurrence is not None else None


def _process(data: Mapping[str, Any]) -> Process:
    command = _texts(data.get("command"))
    known = len(command) > 2 and command[1] == "-m"
    return Process(
        name=text_of(data, "process"),
        incarnation=number_of(data, "incarnation") or 0,
        step=number_of(data, "step") or 0,
        module=command[2] if known else "",
        arguments=command[3:] if known else (),
        command=" ".join(command),
        environment=_mapping(data.get("environment")),
        fault=_fault(data.get("fault")),
        pause=_fault(data.get("pause")),
        exit_code=number_of(data, "exit_code"),
        signal=data["signal"] if isinstance(data.get("signal"), str) else None,
        ended_by=text_of(data, "ended_by"),
        stdout=text_of(data, "stdout"),
        stderr=text_of(data, "stderr"),
    )


def _scenario(folder: Path, plan: Mapping[str, Any], told: Mapping[str, Any], processes: Sequence[Process]) -> ScenarioEvidence:
    section, name = text_of(plan, "section"), text_of(plan, "name")
    files = _Files(folder, section, name)
    steps = tuple(_mappings(plan.get("steps")))
    return ScenarioEvidence(
        section=section,
        name=name,
        shows=text_of(plan, "shows"),
        look_at=text_of(plan, "look_at"),
        counterexample=plan.get("counterexample") is True,
        steps=steps,
        expected=_tally(plan.get("expected")),
        counts=_tally(told.get("counts")),
        checks=tuple(CheckFound(text_of(each, "name"), _tally(each.get("counts"))) for each in _mappings(told.get("checks"))),
        problems=_texts(told.get("problems")),
        verdict=text_of(told, "verdict") or "UNKNOWN",
        processes=tuple(processes),
        journals=files.journals,
        small_files=files.small,
        exports=files.exports,
        exported=tuple(exports.found(each) for each in _mappings(told.get("exports"))),
        expected_rows=next(
            (exports.counted_rows(step.get("rows")) for step in steps[::-1] if step.get("do") == "export"), None
        ),
    )


class _Files:
    """The journals of a scenario, its exports by name and its small files, by path below it; the copies of check steps are left
    out."""

    def __init__(self, folder: Path, section: str, name: str) -> None:
        self.journals: dict[str, JournalFile] = {}
        self.exports: dict[str, ExportFile] = {}
        self.small: dict[str, str] = {}
        if {section, name} & {"", ".", ".."} or any("/" in part or "\0" in part for part in (section, name)):
            return  # no folder of this archive can be meant
        for relative, path in sorted(_walk(folder, ("scenarios", section, name))):
            try:
                self._take(relative, path)
            except OSError as error:
                self.small[relative] = f"cannot be read: {error.strerror}"

    def _take(self, relative: str, path: Path) -> None:
        if relative.endswith(".jsonl"):
            self.journals[relative] = _journal(relative, path)
        elif relative == f"{EXPORTS}/{path.stem}.json" and (read := exports.export(relative, _bytes(path, MAX_FILE_BYTES))):
            self.exports[path.stem] = read
        elif not relative.endswith(".lock"):
            self.small[relative] = plain(_bytes(path, MAX_SMALL_BYTES).decode("utf-8", "backslashreplace"))


def _walk(folder: Path, parts: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """The files below a folder of the archive, so many and so deep as a scenario may have; through no link."""
    top = folder
    for part in parts:
        top = top / part
        if top.is_symlink():
            return
    waiting, left = [(top, 0)], MAX_FILES
    while waiting and left:
        directory, depth = waiting.pop()
        try:
            entries = sorted(os.scandir(directory), key=lambda entry: entry.name)[:left]
        except (OSError, UnicodeEncodeError):
            continue  # what cannot be listed is not there for us; its absence is told by the story
        for entry in entries:
            left -= 1
            if not entry.is_dir(follow_symlinks=False):
                yield Path(entry.path).relative_to(top).as_posix(), Path(entry.path)
            elif depth < MAX_DEPTH and not (depth == 0 and entry.name == CHECKPOINTS):
                waiting.append((Path(entry.path), depth + 1))


def _journal(relative: str, path: Path) -> JournalFile:
    content = _bytes(path, MAX_FILE_BYTES)
    rows = content.split(b"\n")
    if not rows[-1]:
        rows.pop()
    lines = tuple(_line(number, row) for number, row in enumerate(rows[:MAX_LINES], 1))
    return JournalFile(relative, path.stem, lines, max(0, len(rows) - MAX_LINES))


def _line(number: int, row: bytes) -> Line:
    text = row.decode("utf-8", "backslashreplace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not isinstance(value.get("data"), dict):
        return Line(number, "", "", {}, plain(text, MAX_LINE))
    content, kind, identity = value["data"], text_of(value, "type"), text_of(value, "id")
    begin = text.find(_DATA, _CHAIN)
    known = begin > 0 and text[_CHAIN - 1 : begin].startswith(',"sequence":') and text.endswith("}}")
    if known and len(text) <= MAX_LINE and text.isprintable():
        shown = short_hashes(f"{kind} {identity} {_SAYS_NOTHING.sub('', text[begin + len(_DATA) : -1])}")
    else:
        shown = shown_json({key: each for key, each in value.items() if key not in ("sha256", "previous", "sequence")})
    return Line(number, kind, identity, content, shown)

"""The published schemas: valid, those of their script, in agreement with real runs, with the audit and with the contract."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from audit import check, check_lines, exports, journals, processes, protocol, records, results
from tests.evidence.checks import CHECK
from tests.evidence.forms import Schema
from tests.evidence.schemas import CAMPAIGN, DRAFT, EXPORTS, FOLDER, JOURNALS, schemas, text
from tests.support import ROOT
from tests.whole import whole_run

STUDY = ROOT / "evidence" / "study"
README = (ROOT / "evidence" / "README.md").read_text("utf-8")
DOCUMENTS = ("manifest", "processes", "results", EXPORTS)
SECTIONS = ("ledger", "delivery", "unknown", "dispatch")
PUBLISHED: dict[str, Schema] = {
    path.name.removesuffix(".schema.json"): json.loads(path.read_text("ascii")) for path in sorted(FOLDER.iterdir())
}
VALID = {name: Draft202012Validator(schema) for name, schema in PUBLISHED.items()}


def values(archive: Path) -> Iterator[tuple[str, str, Any]]:
    """Every value of an archive that has a schema: the schema's name, the place, the value."""
    for path in sorted(archive.rglob("*")):
        if path.suffix == ".json":
            name = EXPORTS if path.parent.name == "exports" else path.stem
            yield name, path.relative_to(archive).as_posix(), json.loads(path.read_text("ascii"))
        if path.suffix == ".jsonl":
            for number, line in enumerate(path.read_text("ascii").splitlines(), 1):
                yield path.stem, f"{path.relative_to(archive)}:{number}", json.loads(line)


def wrong(archive: Path) -> list[str]:
    return [
        f"{place}: {error.json_path}: {error.message[:200]}"
        for name, place, value in values(archive)
        for error in VALID[name].iter_errors(value)
    ]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole_run(tmp_path_factory).out


def test_there_is_a_schema_for_each_document_and_each_journal_and_nothing_else() -> None:
    assert set(PUBLISHED) == {*DOCUMENTS, *CAMPAIGN, *CHECK, *records.SHAPES}


def test_the_published_schemas_are_those_of_the_script() -> None:
    written = {path.name: path.read_text("ascii") for path in FOLDER.iterdir()}
    assert written == {name: text(schema) for name, schema in schemas().items()}, "run: python -m tests.evidence.schemas"


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_schema_is_valid_itself(name: str) -> None:
    assert PUBLISHED[name]["$schema"] == DRAFT
    Draft202012Validator.check_schema(PUBLISHED[name])
    for pattern in patterns(PUBLISHED[name]):
        assert re.compile(pattern)


def patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        for value in schema.values():
            yield from patterns(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from patterns(value)


def test_every_file_of_the_archived_study_validates() -> None:
    assert (STUDY / "manifest.json").is_file(), "evidence/study is missing; run the study: python run.py --out evidence/study"
    assert wrong(STUDY) == []


def test_every_file_of_a_fresh_run_validates(fresh: Path) -> None:
    assert wrong(fresh) == []
    assert {name for name, _, _ in values(fresh)} >= {*DOCUMENTS, "intentions", "attempts", "receipts", "history", "arrivals"}


def test_the_audit_passes_the_schemas_by(fresh: Path) -> None:
    command = [sys.executable, str(ROOT / "audit" / "audit.py"), str(ROOT / "evidence"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert not any("schemas" in each["archive"] for each in json.loads(done.stdout)["archives"])
    assert json.loads(done.stdout)["problems"] == []


# The schemas and the audit's shapes.


def inside(schema: Schema, *path: str) -> Schema:
    """The schema of a member, through arrays, maps and "or null"."""
    for name in path:
        schema = schema["anyOf"][0] if "anyOf" in schema else schema
        if name == "[]":
            schema = schema["items"]
        elif name == "{}":
            schema = schema["additionalProperties"]
        else:
            schema = schema["properties"][name]
    return schema["anyOf"][0] if "anyOf" in schema and path else schema


def pairs_of_checks() -> Iterator[tuple[str, Schema, Any]]:
    """The same of a check of somebody else's program."""
    worker, receiver = PUBLISHED["check-worker-result"], PUBLISHED["check-receiver-result"]
    yield "check", PUBLISHED["check-manifest"], check.SHAPE
    yield "check.run", inside(PUBLISHED["check-manifest"], "run"), check.RUN
    yield "check plan", PUBLISHED["check-plan"], check.PLANNED
    yield "check summary", PUBLISHED["check-summary"], check.SUMMED
    yield "check worker", worker, check_lines.OF_A_WORKER
    yield "check fault", inside(worker, "fault"), check_lines.FAULT
    yield "check ended", inside(worker, "ended"), check_lines.ENDED
    yield "check arrival", inside(worker, "arrivals", "[]"), check_lines.ARRIVAL
    yield "check effect", inside(worker, "effects", "{}"), check_lines.EFFECT
    yield "check receiver", receiver, check_lines.OF_A_RECEIVER
    yield "check exchange", inside(receiver, "exchanges", "[]"), check_lines.EXCHANGE
    yield "check request", inside(receiver, "exchanges", "[]", "request"), check_lines.REQUEST
    yield "check counted", inside(receiver, "effects"), check_lines.COUNTED


def pairs() -> Iterator[tuple[str, Schema, Any]]:
    """Each object that both a schema and the audit describe."""
    manifest, process, result = PUBLISHED["manifest"], PUBLISHED["processes"], PUBLISHED["results"]
    yield "manifest", manifest, protocol.MANIFEST
    yield "protocol", inside(manifest, "protocol"), protocol.PROTOCOL
    yield "catalogue", inside(manifest, "protocol", "catalogue", "[]"), protocol.ENTRY
    yield "selection", inside(manifest, "selection"), protocol.SELECTION
    yield "run", inside(manifest, "run"), protocol.RUN
    plan = inside(manifest, "protocol", "scenarios", "[]")
    yield "plan", plan, protocol.PLAN
    yield "plan.expected", inside(plan, "expected"), protocol.COUNTS
    steps = {each["properties"]["do"]["const"]: each for each in inside(plan, "steps", "[]")["oneOf"]}
    assert steps.keys() == protocol.STEPS.keys()
    for do, step in steps.items():
        yield f"step {do}", step, protocol.STEPS[do]
    yield "step together.runs", inside(steps["together"], "runs", "[]"), protocol.STEPS["run"]
    yield "step check.counts", inside(steps["check"], "counts"), protocol.COUNTS
    yield "step export.rows", inside(steps["export"], "rows"), protocol.ROW_COUNTS
    each = inside(process, "processes", "[]")
    yield "process", each, processes.PROCESS
    for member, shape in (("expected_exit", processes.EXIT), ("resources", processes.RESOURCES), ("fault", processes.FAULT)):
        yield f"process.{member}", inside(each, member), shape
    yield "process.pause", inside(each, "pause"), processes.FAULT
    yield "results", result, results.RESULTS
    yield "results.totals", inside(result, "totals"), results.TOTALS
    scenario = inside(result, "scenarios", "[]")
    yield "results.scenarios", scenario, results.SCENARIO
    yield "results.counts", inside(scenario, "counts"), protocol.COUNTS
    yield "results.checks", inside(scenario, "checks", "[]"), results.CHECK
    yield "results.exports", inside(scenario, "exports", "[]"), results.EXPORT
    yield "results.exports.rows", inside(scenario, "exports", "[]", "rows"), protocol.ROW_COUNTS
    yield "export", PUBLISHED[EXPORTS], exports.FILE
    yield from pairs_of_checks()
    for name, shape in exports.TABLES.items():
        yield f"export {name}", inside(PUBLISHED[EXPORTS], name, "[]"), shape
    for name, types in records.SHAPES.items():
        yield f"{name} line", PUBLISHED[name], journals.LINES[name]
        ways = {way["properties"]["type"]["const"]: way["properties"]["data"] for way in PUBLISHED[name]["oneOf"]}
        assert ways.keys() == types.keys()
        for kind, data in ways.items():
            yield f"{name} {kind}", data, records.TIMED if kind == "effect" else types[kind]


PAIRS = {name: (schema, shape) for name, schema, shape in pairs()}
NOT_REQUIRED = {"effects effect": {records.AT_SECONDS}}
SHA = "0123456789abcdef" * 4
PROBES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 99, 100, 199, 200, 299, 300, 600, 2**53, 2**53 + 1, 0.5, -0.5,
    "", "x", "/", "a#0", "a#1", "a b", "\u00e9", SHA, SHA[:40], SHA.upper(), SHA[:-1], "SIGKILL",
    "2026-01-01T00:00:00Z", "2026-01-01T00:00:00", [], ["x"], [1], {}, {"a": 1}, {"a": SHA}, {"a": "x"},
    {"content": "x", "encoding": "utf-8"}, {"content": "x", "encoding": "latin-1"}, {"content": "x"},
)  # fmt: skip
# What the harness may write though no archive that passes has it.
WIDER = {("results.scenarios", "counts")}
# JSON Schema does not tell 7200 from 7200.0; the audit asks for the form that is written.
WIDER |= {("attempts outcome", "not_before"), ("effects effect", "at_seconds")}
WIDER |= {(f"export {name}", member) for name, shape in exports.TABLES.items() for member in shape if member.endswith("_at")}


@pytest.mark.parametrize("name", PAIRS)
def test_schema_and_audit_have_the_same_members(name: str) -> None:
    schema, shape = PAIRS[name]
    assert set(schema["properties"]) == set(shape)
    assert set(schema["required"]) == set(shape) - NOT_REQUIRED.get(name, set())
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize("name", PAIRS)
def test_what_a_schema_takes_the_audit_takes(name: str) -> None:
    schema, shape = PAIRS[name]
    for member, kind in shape.items():
        part = schema["properties"][member]
        way = Draft202012Validator(part)
        for value in (*PROBES, *part.get("enum", ()), *([part["const"]] if "const" in part else ())):
            if way.is_valid(value) and (name, member) not in WIDER:
                assert kind.test(value), f"{member}: the schema takes {value!r}, the audit asks for {kind.words}"


@pytest.mark.parametrize("name", [name for name in PAIRS if not name.startswith(("manifest", "results", "process"))])
def test_what_the_audit_takes_of_plain_values_a_schema_takes(name: str) -> None:
    schema, shape = PAIRS[name]
    narrower = {
        "do",
        "id",
        "arrival",
        "fault",
        "reason",
        "exit_code",
        "scenario",
        "signal",
    }  # the audit holds these by other checks
    for member, kind in shape.items():
        for value in PROBES:
            if member not in narrower and type(value) not in (list, dict) and kind.test(value):
                assert Draft202012Validator(schema["properties"][member]).is_valid(value), f"{member}: {value!r}"


# The schemas and the contract.


def table(heading: str) -> list[list[str]]:
    """The rows of the tables below a heading, their cells."""
    part = README.partition(f"\n{heading}\n")[2]
    part = re.split(r"\n##+ ", part)[0]
    rows = [line for line in part.splitlines() if line.startswith("| ") and not line.startswith("|---")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


def words(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_contract_names_the_members_of_every_record() -> None:
    told = {
        (row[0], row[1].strip("`")): row[3] for row in table("## Journals (`*.jsonl`)") if len(row) == 4 and row[0] in JOURNALS
    }
    assert set(told) == {(name, kind) for name, kinds in JOURNALS.items() for kind in kinds}
    for (name, kind), cell in told.items():
        members = {words(part)[0] for part in cell.split(";") if words(part)}
        data = PAIRS[f"{name} {kind}"][0]
        assert members == set(data["properties"]), f"{name} {kind}"


def test_the_contract_names_the_columns_of_every_table_of_an_export() -> None:
    told: dict[str, list[str]] = {}
    for row in table("## `exports/NAME.json`"):
        if words(row[0]) and len(row) == 4:
            told.setdefault(words(row[0])[0], []).extend(words(row[1]))
    assert told == {name: list(shape) for name, shape in exports.TABLES.items()}


def test_the_contract_names_the_members_of_every_line() -> None:
    row = [word for cells in table("## Journals (`*.jsonl`)") if len(cells) == 3 for word in words(cells[0])]
    assert row == list(PUBLISHED["history"]["properties"])


def test_the_contract_names_the_members_of_every_process() -> None:
    rows = table("## `processes.json`")
    assert [word for row in rows for word in words(row[0])] == list(PAIRS["process"][0]["properties"])
    resources = next(row[2] for row in rows if row[0] == "`resources`")
    assert words(resources) == list(PAIRS["process.resources"][0]["properties"])


def test_the_contract_names_the_members_of_the_manifest_and_of_the_results() -> None:
    told = {word.partition(".")[0] for row in table("## `manifest.json`") for word in words(row[0])}
    assert told == set(PUBLISHED["manifest"]["properties"])
    run = next(row[2] for row in table("## `manifest.json`") if row[0] == "`run`")
    assert set(words(run)) - {"fork", "exec"} == set(PAIRS["run"][0]["properties"])
    entry = {word.split(".")[-1].strip("[]") for row in table("## `results.json`") for word in words(row[0]) if "." in word}
    assert entry == set(PAIRS["results.scenarios"][0]["properties"])
    totals = next(row[2] for row in table("## `results.json`") if row[0] == "`totals`")
    assert words(totals) == list(PAIRS["results.totals"][0]["properties"])


def test_the_contract_names_the_steps_and_their_members() -> None:
    told = {words(row[0])[0]: set(words(row[1])) - {"run"} for row in table("### Steps")[1:]}
    assert told == {
        name[5:]: set(schema["properties"]) - {"do"} for name, (schema, _) in PAIRS.items() if name[5:] in protocol.STEPS
    }


# Planted wrong values.


def plant(*path: str | int, value: Any = None, drop: bool = False) -> Callable[[Any], None]:
    def edit(document: Any) -> None:
        for part in path[:-1]:
            document = document[part]
        if drop:
            del document[path[-1]]
        else:
            document[path[-1]] = value

    return edit


PLANTED: tuple[tuple[str, Callable[[Any], None]], ...] = (
    ("manifest", plant("format", value="halt23.other")),
    ("manifest", plant("format_version", value=2)),
    ("manifest", plant("extra", value=1)),
    ("manifest", plant("run", "commit", value="ABC")),
    ("manifest", plant("run", "clean", value="yes")),
    ("manifest", plant("run", "file_system", drop=True)),
    ("manifest", plant("run", "spawn", value="thread")),
    ("manifest", plant("run", "started_at", value="yesterday")),
    ("manifest", plant("files", "results.json", "sha256", value="0" * 63)),
    ("manifest", plant("files", "results.json", "bytes", value=-1)),
    ("manifest", plant("protocol", "scenarios", 0, "steps", 0, "do", value="explode")),
    ("manifest", plant("protocol", "scenarios", 0, "expected", "effects", value=True)),
    ("processes", plant("processes", 0, "exit_code", value=256)),
    ("processes", plant("processes", 0, "pid", value=0)),
    ("processes", plant("processes", 0, "ended_by", value="chance")),
    ("processes", plant("processes", 0, "environment", "PATH", value="/bin")),
    ("processes", plant("processes", 0, "resources", "max_rss_bytes", drop=True)),
    ("processes", plant("processes", 0, "started_seconds", value="1")),
    ("results", plant("verdict", value="MAYBE")),
    ("results", plant("scenarios", 0, "counts", "arrivals", value=1.5)),
    ("results", plant("scenarios", 0, "shows", drop=True)),
    ("effects", plant("data", "status", value=404)),
    ("effects", plant("id", value="")),
    ("effects", plant("sequence", value=0)),
    ("effects", plant("previous", drop=True)),
    ("attempts", plant("id", value="no number")),
    ("attempts", plant("data", "outcome", value="perhaps")),
    ("receipts", plant("data", "via", value="hearsay")),
    ("receipts", plant("type", value="effect")),
    ("history", plant("data", "answer", "encoding", value="latin-1")),
    ("arrivals", plant("data", "at", value=1)),
    ("intentions", plant("data", "route", value="no path")),
    ("manifest", plant("selection", "store", value="oracle")),
    ("processes", plant("processes", 0, "substitutions", value={"db": "/tmp/state/dispatch.db"})),
    ("results", plant("scenarios", 0, "exports", value=[{"name": "end"}])),
    (EXPORTS, plant("format", value="halt23.results")),
    (EXPORTS, plant("dispatch_outbox", value=[{"id": "1"}])),
    (EXPORTS, plant("status_transitions", 0, "reason_code", value="dispatch.pending.attempt")),
    (EXPORTS, plant("status_transitions", 0, "entity_id", value="0" * 32 + "\n")),
    (EXPORTS, plant("status_transitions", 0, "metadata", value="[]")),
    (EXPORTS, plant("status_transitions", 0, "id", value=1)),
    (EXPORTS, plant("admin_events", drop=True)),
    ("manifest", plant("run", "commit", value="0" * 40 + "\n")),
    ("manifest", plant("run", "started_at", value="2026-01-01T00:00:00Z\n")),
    ("manifest", plant("protocol", "sha256", value="0" * 64 + "\n")),
    ("processes", plant("processes", 0, "scenario", value="ledger/replay\n")),
    ("processes", plant("processes", 0, "ready", value="READY 127.0.0.1:4000\n")),
    ("effects", plant("data", "arrival", value="arrival-1\n")),
    ("effects", plant("sha256", value="0" * 64 + "\n")),
    ("effects", plant("id", value="effect-1\n")),
)


@pytest.mark.parametrize("number", range(len(PLANTED)), ids=lambda number: f"{PLANTED[number][0]}-{number}")
def test_a_planted_wrong_value_is_refused(fresh: Path, number: int) -> None:
    name, edit = PLANTED[number]
    value = copy.deepcopy(next(value for kind, _, value in values(fresh) if kind == name))
    assert VALID[name].is_valid(value)
    edit(value)
    assert not VALID[name].is_valid(value)

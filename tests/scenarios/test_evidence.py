"""What a run archives: the same every time but for the volatile fields, never stale, and under a frozen protocol."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from outbox.sqlite_choice import choose
from scenarios.catalogue import PROTOCOL_VERSION, SCENARIOS
from scenarios.engine.sources import source_hashes
from scenarios.explore.archive import plan_data
from scenarios.explore.campaign import Plan
from scenarios.explore.subjects import SUBJECTS
from scenarios.model import POSTGRES, SQLITE, catalogue_data, protocol_sha256
from scenarios.selection import runnable
from tests.scenarios.layout import files_below, layout
from tests.support import ROOT
from tests.whole import WholeRun, whole_run

EVIDENCE = ROOT / "evidence"
STUDY = EVIDENCE / "study"
DIRECT = ("aiohttp", "aiosqlite", "jinja2", "markupsafe", "psutil", "rich", "sqlalchemy", "yarl")
RUN_AGAIN = "run the study again: rm -r evidence/study && python run.py --out evidence/study, and commit it with the sources"

# The members that differ from run to run, file by file. The only such list here; it is held against evidence/README.md below.
VOLATILE: Mapping[str, frozenset[str]] = {
    "processes.json": frozenset(
        {"substitutions", "ready", "stderr", "pid", "started_seconds", "ended_seconds", "resources"},
    ),
    "manifest.json": frozenset({"run"}),
}
# The hash of a file whose members are volatile is so too.
VOLATILE_HASHES = frozenset({"processes.json", "report.html"})
# Made from the others, for people: it shows pids and times, and is no evidence.
DERIVED = "report.html"


def steady(archive: Path, name: str) -> Any:
    """What must be the same in every run: the file's bytes, or its value without its volatile members."""
    content = (archive / name).read_bytes()
    if name == DERIVED:
        return None
    if name not in VOLATILE:
        return content
    value = json.loads(content)
    records = value["processes"] if name == "processes.json" else [value]
    for record in records:
        for member in VOLATILE[name]:
            del record[member]
        for hashed in VOLATILE_HASHES & record.get("files", {}).keys():
            del record["files"][hashed]
    return json.dumps(value)  # as text: the order of the members counts


def names(archive: Path) -> list[str]:
    return sorted(path.relative_to(archive).as_posix() for path in archive.rglob("*") if path.is_file())


def run_study(out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "run.py"), "--out", str(out), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """One section in each spawn mode, side by side and one after the other. (All of them: `python -m tests.equality`.)"""
    made = {}
    for spawn, jobs in (("fork", 2), ("fork", 1), ("exec", 2)):
        made[f"{spawn}-{jobs}"] = out = tmp_path_factory.mktemp("evidence") / "run"
        run_study(out, "--spawn", spawn, "--jobs", str(jobs), "--section", "delivery")
    return made


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> WholeRun:
    """The whole study, made now."""
    return whole_run(tmp_path_factory)


@pytest.fixture(scope="module")
def whole(made: WholeRun) -> Path:
    """Where it is."""
    return made.out


def test_the_whole_study_passes_and_leaves_exactly_the_files_of_the_contract(
    made: WholeRun,
) -> None:
    out = made.out
    assert made.stderr.count("PASS ") == 214, made.stderr
    name = re.escape(str(out))
    pattern = rf"PASS {name}: 214 scenarios, 1005 child processes, \d+\.\d\d s; tables in {name}/tables\.md"
    assert re.fullmatch(pattern, made.stdout.splitlines()[0])
    assert f"python audit/audit.py {out}" in made.stdout.splitlines()[1]
    assert files_below(out) == layout()
    assert (out / "scenarios/delivery/keyed_delivery/outbox/dispatcher.lock").read_bytes() == b""


@pytest.mark.parametrize("other", ["fork-1", "exec-2"])
def test_runs_are_equal_in_everything_but_the_volatile_members(runs: Mapping[str, Path], other: str) -> None:
    first, second = runs["fork-2"], runs[other]
    assert names(first) == names(second)
    different = [name for name in names(first) if steady(first, name) != steady(second, name)]
    assert different == []


def test_the_volatile_members_are_those_that_the_contract_marks() -> None:
    marked: dict[str, set[str]] = {}
    section = ""
    for line in (ROOT / "evidence" / "README.md").read_text("utf-8").splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ").strip("`")
        elif line.startswith("|") and "**volatile**" in line:
            first = line.split("|")[1]
            marked.setdefault(section, set()).update(re.findall(r"`([^`]+)`", first))
    del marked["What a campaign holds"]  # another kind of archive
    assert marked == VOLATILE


def test_the_comparison_sees_a_change_of_one_steady_byte(runs: Mapping[str, Path], tmp_path: Path) -> None:
    text = (runs["fork-2"] / "processes.json").read_text()
    (tmp_path / "processes.json").write_text(text.replace('"exit_code": 23', '"exit_code": 22', 1))
    assert steady(tmp_path, "processes.json") != steady(runs["fork-2"], "processes.json")


def head() -> str | None:
    """The commit that is checked out; None in sources that are no checkout."""
    try:
        told = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return told.stdout.strip()


def test_the_run_says_how_it_was_made(runs: Mapping[str, Path]) -> None:
    commit = head()
    for name, out in runs.items():
        facts = json.loads((out / "manifest.json").read_text())["run"]
        assert f"{facts['spawn']}-{facts['jobs']}" == name
        assert facts["wall_seconds"] > 0
        assert {name: facts["packages"][name] for name in DIRECT} == {name: version(name) for name in DIRECT}
        assert facts["packages"].keys() >= {"multidict", "markdown-it-py"}, "what the direct packages need is left out"
        assert all(version(name) == told for name, told in facts["packages"].items())
        assert (facts["commit"], facts["clean"] is None) == (commit, commit is None)
        chosen = choose()
        assert facts["sqlite"] == {
            "package": chosen.package,
            "version": chosen.version,
            "journal_mode": chosen.journal_mode,
        }
        assert facts["postgres"] is None
        assert facts["file_system"] is None or facts["file_system"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", facts["started_at"])


def test_every_process_of_the_study_ended_as_expected_and_only_armed_ones_halted(whole: Path) -> None:
    records = json.loads((whole / "processes.json").read_text())["processes"]
    assert len(records) == 1005
    for record in records:
        assert record["expected_exit"] == {"code": record["exit_code"], "signal": record["signal"]}
        assert (record["exit_code"] == 23) == (record["fault"] is not None)
        assert 0 <= record["started_seconds"] <= record["ended_seconds"]
        if record["fault"]:
            where = f"{record['fault']['point']}#{record['fault']['occurrence']}"
            assert record["environment"] == {"HALT_AT": where}
            assert record["stderr"].endswith(f"halt(23) at {where}\n")


def test_every_declared_fault_point_was_fired(whole: Path) -> None:
    records = json.loads((whole / "processes.json").read_text())["processes"]
    fired = {record["fault"]["point"] for record in records if record["exit_code"] == 23}
    told = subprocess.run([sys.executable, "run.py", "points", "--json"], cwd=ROOT, capture_output=True, check=True).stdout
    assert fired == {point["point"] for point in json.loads(told)}


def test_the_evidence_of_the_whole_study_stays_small(whole: Path) -> None:
    assert sum((whole / name).stat().st_size for name in names(whole) if name != DERIVED) < 3_000_000


def test_evidence_files_are_plain_json_that_ends_with_one_newline(runs: Mapping[str, Path]) -> None:
    for name in ("manifest.json", "processes.json", "results.json"):
        content = (runs["fork-2"] / name).read_bytes()
        assert content.isascii()
        assert content.endswith(b"}\n")


# The archive beside the sources.


def archived(name: str, archive: Path = STUDY) -> str:
    path = archive / name
    if not path.is_file():
        pytest.fail(f"{path} is missing: {RUN_AGAIN}", pytrace=False)
    return path.read_text("utf-8")


# Every study of this checkout, the whole one and what was made with other options; a campaign is no study.
ARCHIVES = sorted(path.parent for path in EVIDENCE.glob("*/results.json"))
CAMPAIGN = EVIDENCE / "explore"


@pytest.mark.parametrize("archive", [STUDY, *(each for each in ARCHIVES if each != STUDY)], ids=lambda path: path.name)
def test_an_archive_was_made_with_these_sources_and_this_protocol(archive: Path) -> None:
    again = f"{archive.relative_to(ROOT)} is stale: make it again, and commit it with the sources"
    manifest = json.loads(archived("manifest.json", archive))
    then, now = manifest["sources"], source_hashes(ROOT)
    changed = sorted(path for path in then.keys() | now.keys() if then.get(path) != now.get(path))
    assert changed == [], f"{', '.join(changed)} changed since; {again}"
    assert manifest["protocol"]["version"] == PROTOCOL_VERSION, again
    assert manifest["protocol"]["sha256"] == protocol_sha256(SCENARIOS), again
    declared = {each.path: each.data() for each in SCENARIOS}
    chosen = manifest["selection"]["scenarios"]
    assert manifest["protocol"]["scenarios"] == [declared[path] for path in chosen], again
    results = json.loads(archived("results.json", archive))
    assert results["verdict"] == "PASS"
    assert [each["scenario"] for each in results["scenarios"]] == chosen


def test_the_archived_study_is_the_whole_of_this_protocol() -> None:
    manifest = json.loads(archived("manifest.json"))
    protocol = {
        "version": PROTOCOL_VERSION,
        "sha256": protocol_sha256(SCENARIOS),
        "catalogue": catalogue_data(SCENARIOS),
        "scenarios": [scenario.data() for scenario in runnable(SCENARIOS, SQLITE)],
    }
    assert manifest["protocol"] == protocol, f"evidence/study has another protocol: {RUN_AGAIN}"
    chosen = [scenario.path for scenario in runnable(SCENARIOS, SQLITE)]
    assert manifest["selection"] == {"scenarios": chosen, "store": SQLITE, "complete": True}
    assert json.loads(archived("results.json"))["verdict"] == "PASS"


def test_the_archive_on_postgresql_is_its_whole_section_and_holds_the_same_bytes_as_the_study() -> None:
    # A run of it takes half a minute; what the tests run of it is in test_stores.py.
    again = "make it with: python run.py --out evidence/study-postgres --store postgres --section dispatch"
    archive = EVIDENCE / "study-postgres"
    if archive not in ARCHIVES:
        pytest.fail(f"{archive} is missing: {again}", pytrace=False)
    chosen = [each.path for each in runnable(SCENARIOS, POSTGRES) if each.section == "dispatch"]
    selection = json.loads(archived("manifest.json", archive))["selection"]
    assert selection == {"scenarios": chosen, "store": POSTGRES, "complete": False}, again
    for path in (each for each in chosen if (STUDY / "scenarios" / each).is_dir()):
        first, second = (each / "scenarios" / path for each in (STUDY, archive))
        assert names(first) == names(second), path
        assert [name for name in names(first) if (first / name).read_bytes() != (second / name).read_bytes()] == [], path


def test_the_archived_campaign_is_every_case_of_every_subject_and_all_of_them_held() -> None:
    # Playing it again takes half a minute; the same campaign twice is compared in tests/explore.
    again = "it is stale; make it again with: python run.py explore --out evidence/explore"
    manifest = json.loads(archived("manifest.json", CAMPAIGN))
    sources = source_hashes(ROOT)
    assert manifest["sources"] == sources, again
    assert manifest["plan"] == json.loads(json.dumps(plan_data(Plan(SUBJECTS), SQLITE, sources))), again
    assert (manifest["verdict"], manifest["totals"]["cases"]) == ("PASS", manifest["totals"]["held"]), again


def test_the_archived_study_is_equal_to_a_run_made_now(whole: Path) -> None:
    archived("manifest.json")
    assert names(STUDY) == names(whole)
    different = [name for name in names(STUDY) if steady(STUDY, name) != steady(whole, name)]
    assert different == [], f"evidence/study is stale: {RUN_AGAIN}"


def rows(markdown: str) -> list[str]:
    """The rows of scenario tables: a name, what it shows, and four counts."""
    return [line for line in markdown.splitlines() if line.startswith("| `") and line.count(" | ") == 4]


def test_the_readme_shows_the_tables_of_the_archived_study() -> None:
    shown = rows((ROOT / "README.md").read_text("utf-8"))
    assert shown
    assert set(shown) <= set(rows(archived("tables.md"))), (
        "README.md shows other rows than evidence/study/tables.md; write them again: "
        "python -m scenarios.report.chapters evidence/study docs README.md"
    )


# The protocol is frozen.


def test_the_protocol_is_the_one_that_this_version_names() -> None:
    frozen = (3, "369d0a992dc626fa11649583bf6f6bf191804f1486dfb58d3e9f429c14554f9a")
    assert (PROTOCOL_VERSION, protocol_sha256(SCENARIOS)) == frozen, (
        "the catalogue changed: that is a new protocol. Raise PROTOCOL_VERSION, say in CHANGELOG.md what changed and why, "
        f"pin the new hash here, teach it to the audit, and {RUN_AGAIN}"
    )


def test_the_changelog_names_the_protocols_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(rf"\bprotocol\b[^\n]*\b{PROTOCOL_VERSION}\b", changelog, re.IGNORECASE), "CHANGELOG.md lacks this protocol"


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_sources_hash_alike_whatever_the_line_ends(tmp_path: Path, line_end: bytes) -> None:
    for path in ("run.py", "outbox/a.py", "receivers/b.py", "scenarios/deep/c.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(line_end.join([b"one", b"two", b""]))
    for left_out in ("outbox/__pycache__/a.pyc", "scenarios/.hidden", ".git/x", "tests/t.py", "audit/audit.py"):
        (tmp_path / left_out).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / left_out).write_bytes(b"left out")
    hashes = source_hashes(tmp_path)
    assert list(hashes) == ["outbox/a.py", "receivers/b.py", "run.py", "scenarios/deep/c.txt"]
    assert set(hashes.values()) == {"c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8"}  # of "one\ntwo\n"

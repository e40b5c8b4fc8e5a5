"""`--compare`: two archives that are equal, that differ in one place, and whatever cannot be compared."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from audit.cli import main
from audit.compare import NOT_JUDGED
from audit.compare_files import MOST_DIFFERENCES
from audit.inventory import CHECKOUT
from audit.volatile import VOLATILE, VOLATILE_HASHES
from tests.audit import forge
from tests.audit.play import study

Command = Callable[..., tuple[int, str, str]]
KEYED = "delivery/keyed_delivery"


@pytest.fixture
def compare(capsys: pytest.CaptureFixture[str]) -> Command:
    def call(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments], "/nowhere")
        captured = capsys.readouterr()
        assert captured.out.isascii()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def other(archive: forge.Archive, tmp_path: Path) -> Path:
    return archive.write(tmp_path / "other")


def edit_json(path: Path, edit: Callable[[Any], None]) -> None:
    value = json.loads(path.read_text())
    edit(value)
    path.write_text(json.dumps(value, indent=1) + "\n")


def differences(compare: Command, run: Path, other: Path) -> list[str]:
    code, out, err = compare(run, "--compare", other)
    assert (code, err) == (1, "")
    *lines, last = out.replace(str(run), "RUN").replace(str(other), "OTHER").splitlines()
    assert last == f"different: RUN and OTHER: {len(lines)} difference{'s' if len(lines) > 1 else ''}"
    return lines


# What cannot be compared.


@pytest.mark.parametrize(
    "arguments",
    [["--compare"], ["--compare", "a"], ["a", "--compare"], ["a", "b", "--compare", "c"], ["a", "--compare", "b", "--explain"]],
)
def test_bad_usage(compare: Command, arguments: list[str]) -> None:
    code, out, err = compare(*arguments)
    assert (code, out) == (2, "")
    assert "usage: python audit/audit.py DIR --compare OTHER" in err


def test_a_missing_archive(compare: Command, run: Path, tmp_path: Path) -> None:
    for pair in ((run, tmp_path / "no"), (tmp_path / "no", run)):
        code, out, err = compare(pair[0], "--compare", pair[1])
        assert (code, out, err) == (2, "", f"{tmp_path / 'no'}: there is no such directory\n")


def test_a_file_in_place_of_a_directory(compare: Command, run: Path) -> None:
    code, out, err = compare(run, "--compare", run / "manifest.json")
    assert (code, out) == (2, "")
    assert "is not a directory" in err


def test_a_directory_that_is_no_archive(compare: Command, run: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    code, out, err = compare(run, "--compare", tmp_path / "empty")
    assert (code, out) == (2, "")
    assert "is no archive" in err


def test_a_checkout_is_no_archive(compare: Command, run: Path) -> None:
    code, out, err = compare(run, "--compare", forge.REPOSITORY)
    assert (code, out) == (2, "")
    assert err == f"{forge.REPOSITORY}: {CHECKOUT}\n"


def test_two_false_archives_are_equal_and_nobody_calls_them_true(compare: Command, run: Path, other: Path) -> None:
    for folder in (run, other):
        edit_json(folder / "results.json", lambda value: value.update(verdict="FAIL"))
        forge.reseal(folder)
    code, out, _ = compare(run, "--compare", other)
    assert code == 0
    assert out.splitlines()[1:] == [NOT_JUDGED]
    assert "PASS" not in out


def test_a_name_that_is_no_path(compare: Command, run: Path) -> None:
    assert compare(run, "--compare", "a\0b")[0] == 2


def test_an_interrupted_run_is_unknown_on_either_side(compare: Command, run: Path, other: Path) -> None:
    (other / "manifest.json").unlink()
    for pair in ((run, other), (other, run)):
        code, out, err = compare(pair[0], "--compare", pair[1])
        assert (code, err) == (3, "")
        assert out == f"UNKNOWN {other}: manifest.json is missing: the run was interrupted\n"


HOSTILE = (
    b"", b"{", b"[]\n", b"null\n", b"{}\n", b"\xff\xfe\n", b"\xef\xbb\xbf{}\n", b'{"a":1,"a":2}\n', b'{"a":NaN}\n',
    b'{"a":1e999}\n',
    b'{"a":' + b"9" * 5000 + b"}\n",
    b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"\n",
    b'{"processes":[1,null,{"scenario":[]},{"scenario":"x/y","process":{}}],"selection":{"scenarios":[1]}}\n',
    b'{"selection":[],"files":[],"protocol":"x","scenarios":{"a":{}},"processes":{}}\r\n',
    b'{"sha256":"x","previous":1,"type":"effect","id":"\\ud800\\u001b[31m","data":[]}\n',
)  # fmt: skip


@pytest.mark.parametrize("name", ["manifest.json", "processes.json", "results.json", "tables.md", "journal", "lock"])
def test_hostile_content_is_told_and_never_raises(compare: Command, run: Path, other: Path, name: str) -> None:
    outbox = f"scenarios/{KEYED}/outbox"
    path = other / {"journal": f"{outbox}/receipts.jsonl", "lock": f"{outbox}/dispatcher.lock"}.get(name, name)
    for content in HOSTILE:
        if (name, content) == ("lock", b""):
            continue
        path.write_bytes(content)
        for pair in ((run, other), (other, run)):
            code, out, err = compare(pair[0], "--compare", pair[1])
            assert code in (1, 2), content[:80]
            assert out or err
            assert "Traceback" not in out + err
            assert "could not be finished" not in err, content[:80]
            assert "\x1b" not in out + err


def test_a_hostile_name_is_escaped(compare: Command, run: Path, other: Path) -> None:
    (other / "x\x1b[31m\n\u00e9").write_text("")
    assert differences(compare, run, other) == ["x\\x1b[31m\\n\\xe9: the file is only in OTHER"]


def test_a_symbolic_link_is_not_followed(compare: Command, run: Path, other: Path) -> None:
    path = other / "scenarios" / KEYED / "receiver" / "effects.jsonl"
    path.unlink()
    path.symlink_to(run / "scenarios" / KEYED / "receiver" / "effects.jsonl")
    code, out, err = compare(run, "--compare", other)
    assert code == 1
    assert f"{KEYED}: receiver/effects.jsonl: the file is only in {run}\n" in out
    assert "is a symbolic link" in err


def test_a_fifo_does_not_block(compare: Command, run: Path, other: Path) -> None:
    os.mkfifo(other / "fifo")
    code, out, err = compare(run, "--compare", other)
    assert (code, out) == (2, "")
    assert "is a FIFO" in err


def test_an_unreadable_document_is_no_equality(compare: Command, run: Path, other: Path) -> None:
    for each in (run, other):
        (each / "processes.json").write_text("{")
    code, out, err = compare(run, "--compare", other)
    assert (code, out) == (2, "")
    assert err.count("processes.json: cannot be read") == 2


def test_a_directory_that_can_be_listed_and_not_entered(
    compare: Command, run: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `chmod 444` leaves it, which the superuser does not notice: no file in it can be looked at."""
    real, lexists = os.stat, os.path.lexists

    def stat(path: Any, **options: Any) -> os.stat_result:
        if str(path).startswith(f"{other}/"):
            raise PermissionError(13, "Permission denied")
        return real(path, **options)

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(os.path, "lexists", lambda path: not str(path).startswith(f"{other}/") and lexists(path))
    for arguments in ((run, "--compare", other), (other, "--compare", run), (other,)):
        code, out, err = compare(*arguments)
        assert (code, out) == (2, "")
        assert f"{other}: cannot be listed and entered: Permission denied" in err


# Equal.


def test_two_archives_of_the_same_values(compare: Command, run: Path, other: Path) -> None:
    assert compare(run, "--compare", other) == (
        0, f"equal: {run} and {other}: 5 scenarios, 46 files, all but the volatile fields\n{NOT_JUDGED}\n", "",
    )  # fmt: skip


def test_the_same_directory_is_equal_and_says_so(compare: Command, run: Path) -> None:
    code, out, _ = compare("--compare", run, run)
    assert code == 0
    assert "(it is the same directory)" in out


def test_the_volatile_fields_may_differ(compare: Command, run: Path, other: Path) -> None:
    changed: dict[str, Any] = {
        "substitutions": {"receiver.port": "1"}, "ready": "READY 127.0.0.1:1", "stderr": "other", "pid": 7,
        "started_seconds": 99.0, "ended_seconds": 100.5,
        "resources": {"user_cpu_seconds": 7, "system_cpu_seconds": 0.5, "max_rss_bytes": 1},
    }  # fmt: skip
    assert set(changed) == set(VOLATILE["processes.json"])

    def edit(value: Any) -> None:
        for process in value["processes"]:
            process.update(changed)

    edit_json(other / "processes.json", edit)
    edit_json(other / "manifest.json", lambda value: value["run"].update(spawn="exec", clean=False))
    forge.reseal(other)
    assert compare(run, "--compare", other)[0] == 0


def test_the_list_of_volatile_fields_is_the_contract_s() -> None:
    marked: dict[str, set[str]] = {}
    section = ""
    contract = (forge.REPOSITORY / "evidence" / "README.md").read_text("utf-8")
    for line in contract.splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ").strip("`")
        elif line.startswith("|") and "**volatile**" in line:
            marked.setdefault(section, set()).update(re.findall(r"`([^`]+)`", line.split("|")[1]))
    assert marked.pop("What a campaign holds") == {"run", "sources", "files"}
    assert {name: set(members) for name, members in VOLATILE.items()} == marked
    told = re.search(r"The hashes of (.*?) in `files` change with its volatile fields", contract)
    assert told is not None
    assert re.findall(r"`([^`]+)`", told[1]) == list(VOLATILE_HASHES)


@pytest.mark.parametrize("member", VOLATILE["processes.json"])
def test_a_volatile_field_must_be_there(compare: Command, run: Path, other: Path, member: str) -> None:
    edit_json(other / "processes.json", lambda value: value["processes"][0].pop(member))
    (line,) = differences(compare, run, other)
    assert line.startswith(f"{KEYED}: processes.json receiver (incarnation 1).{member}: is only in RUN: ")


@pytest.mark.parametrize(
    ("member", "value", "sentence"),
    [
        ("pid", "7", "is '7', expected an integer from 1 that a process id can be (in OTHER)"),
        ("pid", 0, "is 0, expected an integer from 1 that a process id can be (in OTHER)"),
        ("ready", 1, "is 1, expected a string or null (in OTHER)"),
        ("stderr", None, "is None, expected a string (in OTHER)"),
        ("started_seconds", "1.0", "is '1.0', expected a number from 0 (in OTHER)"),
        ("substitutions", {"receiver.port": 1}, "expected an object, each value a string (in OTHER)"),
        ("resources", [], "is [], expected an object (in OTHER)"),
    ],
)
def test_a_volatile_field_is_of_its_kind(  # noqa: PLR0917 (a case and its fixtures)
    compare: Command, run: Path, other: Path, member: str, value: Any, sentence: str
) -> None:
    edit_json(other / "processes.json", lambda document: document["processes"][0].update({member: value}))
    (line,) = differences(compare, run, other)
    assert line.startswith(f"{KEYED}: processes.json receiver (incarnation 1).{member}: ")
    assert line.endswith(sentence)


def test_the_resources_and_the_run_have_their_members(compare: Command, run: Path, other: Path) -> None:
    edit_json(run / "processes.json", lambda document: document["processes"][0]["resources"].pop("max_rss_bytes"))
    edit_json(other / "manifest.json", lambda manifest: manifest["run"].update(jobs="1"))
    assert differences(compare, run, other) == [
        f"{KEYED}: processes.json receiver (incarnation 1).resources.max_rss_bytes: the member is missing (in RUN)",
        "manifest.json: run.jobs: is '1', expected an integer from 1 (in OTHER)",
    ]


SERVER = {"version": "15.14", "fsync": "on", "synchronous_commit": "on"}


def test_the_server_of_a_run_may_be_another_and_has_its_members(compare: Command, run: Path, other: Path) -> None:
    edit_json(run / "manifest.json", lambda manifest: manifest["run"].update(postgres=SERVER))
    edit_json(other / "manifest.json", lambda manifest: manifest["run"].update(postgres={**SERVER, "version": "16.2"}))
    assert compare(run, "--compare", other)[0] == 0
    edit_json(other / "manifest.json", lambda manifest: manifest["run"]["postgres"].update(fsync="off"))
    assert differences(compare, run, other) == ["manifest.json: run.postgres.fsync: is 'off', expected 'on' (in OTHER)"]


# Different.


def test_one_byte_of_a_journal(compare: Command, run: Path, other: Path) -> None:
    path = other / "scenarios" / KEYED / "receiver" / "effects.jsonl"
    path.write_text(path.read_text().replace('"status":200', '"status":201'))
    name = json.loads(path.read_text())["id"]
    assert differences(compare, run, other) == [
        f"{KEYED}: receiver/effects.jsonl:1 (effect '{name}') data.status: is 200 in RUN, but 201 in OTHER"
    ]


def test_one_record_of_a_journal_sealed_anew(compare: Command, run: Path, archive: forge.Archive, tmp_path: Path) -> None:
    archive.data("keyed_delivery", "attempts", 1)["key"] = "another"
    other = archive.write(tmp_path / "other")
    (line,) = differences(compare, run, other)
    assert line.startswith(f"{KEYED}: outbox/attempts.jsonl:1 (attempt ")
    assert line.endswith("but 'another' in OTHER")


@pytest.mark.parametrize("member", ["sha256", "previous"])
def test_a_checksum_alone(compare: Command, run: Path, other: Path, member: str) -> None:
    path = other / "scenarios" / KEYED / "outbox" / "attempts.jsonl"
    lines = path.read_text().splitlines()
    value = json.loads(lines[1])[member]
    lines[1] = lines[1].replace(value, "0" * 64)
    path.write_text("\n".join(lines) + "\n")
    (line,) = differences(compare, run, other)
    assert f"outbox/attempts.jsonl:2 (attempt 'keyed_delivery-1#2') {member}: is '{value}' in RUN" in line


def test_a_record_of_one_side(compare: Command, run: Path, archive: forge.Archive, tmp_path: Path) -> None:
    del archive.journal("keyed_delivery", "attempts")[0]
    other = archive.write(tmp_path / "other")
    (line,) = differences(compare, run, other)
    assert line.startswith(f"{KEYED}: outbox/attempts.jsonl:1 (attempt ")
    assert line.endswith("the record is only in RUN")


def test_two_records_swapped(compare: Command, run: Path, archive: forge.Archive, tmp_path: Path) -> None:
    archive.journal("keyed_delivery", "arrivals").reverse()
    (line,) = differences(compare, run, archive.write(tmp_path / "other"))
    assert line.startswith(f"{KEYED}: receiver/arrivals.jsonl:1: the order differs: ")


def test_a_cut_journal(compare: Command, run: Path, other: Path) -> None:
    path = other / "scenarios" / KEYED / "outbox" / "history.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    (line,) = differences(compare, run, other)
    assert line.startswith(f"{KEYED}: outbox/history.jsonl:2: is '' in RUN, but None in OTHER")


def test_one_exit_code(compare: Command, run: Path, other: Path) -> None:
    def edit(value: Any) -> None:
        halted = next(process for process in value["processes"] if process["exit_code"] == 23)
        halted["exit_code"] = 22

    edit_json(other / "processes.json", edit)
    (line,) = differences(compare, run, other)
    assert line == f"{KEYED}: processes.json dispatcher (incarnation 1).exit_code: is 23 in RUN, but 22 in OTHER"


@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_another_type_is_another_value(compare: Command, run: Path, other: Path, value: Any) -> None:
    edit_json(other / "processes.json", lambda document: document["processes"][0].update(step=value))
    (line,) = differences(compare, run, other)
    assert line.endswith(f"is 1 in RUN, but {value!r} in OTHER")


def test_an_extra_file(compare: Command, run: Path, other: Path) -> None:
    (other / "scenarios" / KEYED / "outbox" / "note").write_text("x")
    assert differences(compare, run, other) == [f"{KEYED}: outbox/note: the file is only in OTHER"]
    forge.reseal(other)
    assert differences(compare, run, other) == [f"{KEYED}: outbox/note: the file is only in OTHER"]


def test_an_extra_file_of_the_manifest(compare: Command, run: Path, other: Path) -> None:
    edit_json(other / "manifest.json", lambda value: value["files"].update(note={"bytes": 1, "sha256": "0" * 64}))
    (line,) = differences(compare, run, other)
    assert line.startswith("manifest.json: files.note: is only in OTHER")


def test_another_protocol(compare: Command, run: Path, other: Path) -> None:
    def edit(value: Any) -> None:
        value["protocol"]["version"] = 9
        value["protocol"]["scenarios"][0]["steps"][0]["process"] = "listener"

    edit_json(other / "manifest.json", edit)
    lines = differences(compare, run, other)
    assert lines[0] == "manifest.json: protocol.version: is 1 in RUN, but 9 in OTHER"
    assert lines[1] == f"{KEYED}: manifest.json steps[0].process: is 'receiver' in RUN, but 'listener' in OTHER"


def test_other_sources(compare: Command, run: Path, other: Path) -> None:
    edit_json(other / "manifest.json", lambda value: value["sources"].update({"run.py": "0" * 64}))
    (line,) = differences(compare, run, other)
    assert line.startswith("manifest.json: sources['run.py']: is ")


def test_results_and_tables(compare: Command, run: Path, other: Path) -> None:
    edit_json(other / "results.json", lambda value: value["scenarios"][0]["counts"].update(effects=2))
    (other / "tables.md").write_text((other / "tables.md").read_text().replace("# Scenario tables", "# Scenario table"))
    lines = differences(compare, run, other)
    assert lines == [
        f"{KEYED}: results.json counts.effects: is 1 in RUN, but 2 in OTHER",
        "tables.md: line 1: is '# Scenario tables' in RUN, but '# Scenario table' in OTHER",
    ]


def test_bytes_that_no_value_shows(compare: Command, run: Path, other: Path) -> None:
    (other / "results.json").write_text(json.dumps(json.loads((other / "results.json").read_text())) + "\n")
    (line,) = differences(compare, run, other)
    assert line == "results.json: is not in the study's layout in OTHER"


@pytest.mark.parametrize("name", ["manifest.json", "processes.json", "results.json"])
def test_the_same_values_in_another_layout(compare: Command, run: Path, other: Path, name: str) -> None:
    for indent, spoilt in ((None, other), (2, other), (None, run)):
        before = (spoilt / name).read_text()
        (spoilt / name).write_text(json.dumps(json.loads(before), indent=indent) + "\n")
        (line,) = differences(compare, run, other)
        assert line == f"{name}: is not in the study's layout in {'RUN' if spoilt == run else 'OTHER'}"
        (spoilt / name).write_text(before)


def test_processes_in_another_order(compare: Command, run: Path, other: Path) -> None:
    edit_json(other / "processes.json", lambda value: value["processes"].insert(0, value["processes"].pop()))
    (line,) = differences(compare, run, other)
    assert line.startswith("processes.json: processes: stands in another order: ")


def test_partial_selections_compare_what_both_have(compare: Command, run: Path, tmp_path: Path) -> None:
    part = study(["keyed_delivery", "unkeyed_delivery"]).write(tmp_path / "part")
    lines = differences(compare, run, part)
    assert len([line for line in lines if line.endswith(": the scenario is only in RUN")]) == 3
    assert lines[3:] == ["manifest.json: selection.complete: is True in RUN, but False in OTHER"]
    path = part / "scenarios" / KEYED / "receiver" / "effects.jsonl"
    path.write_text(path.read_text().replace('"status":200', '"status":201'))
    assert len(differences(compare, run, part)) == 5


def test_a_section_of_one_side_is_told_once(compare: Command, run: Path, archive: forge.Archive, tmp_path: Path) -> None:
    for plan in archive.protocol["scenarios"]:
        plan["section"] = "elsewhere"
    archive.selection = [name.replace("delivery/", "elsewhere/") for name in archive.selection]
    lines = differences(compare, run, archive.write(tmp_path / "elsewhere"))
    assert lines[:2] == [
        "delivery: the section, 5 scenarios, is only in RUN",
        "elsewhere: the section, 5 scenarios, is only in OTHER",
    ]


def test_the_list_of_differences_is_bounded(compare: Command, run: Path, other: Path) -> None:
    for number in range(MOST_DIFFERENCES + 5):
        (other / f"extra-{number:03}").write_text("")
    code, out, _ = compare(run, "--compare", other)
    lines = out.splitlines()
    assert code == 1
    assert len(lines) == MOST_DIFFERENCES + 2
    assert lines[-2] == "and 5 differences more"
    assert lines[-1].endswith(f"{MOST_DIFFERENCES + 5} differences")


def test_json(compare: Command, run: Path, other: Path, tmp_path: Path) -> None:
    code, out, _ = compare(run, "--compare", other, "--json")
    document = json.loads(out)
    assert (code, document["verdict"], document["judged"], document["differences"]) == (0, "equal", False, [])
    assert document["volatile"] == {name: list(members) for name, members in VOLATILE.items()}
    (other / "x").write_text("")
    code, out, _ = compare("--json", run, "--compare", other)
    document = json.loads(out)
    assert (code, document["verdict"]) == (1, "different")
    assert document["differences"] == [{"subject": "x", "place": "", "sentence": f"the file is only in {other}"}]
    (other / "manifest.json").unlink()
    assert json.loads(compare(run, "--compare", other, "--json")[1])["verdict"] == "UNKNOWN"
    shutil.rmtree(other)
    assert json.loads(compare(run, "--compare", other, "--json")[1])["verdict"] == "unreadable"


def test_the_audit_alone_loads_none_of_it(run: Path) -> None:
    script = (
        "import sys; from audit.cli import main; main(sys.argv[1:], '.');"
        "late = {'audit.compare', 'audit.compare_files', 'audit.compare_volatile', 'audit.unlike', 'audit.explain',"
        "'audit.promises', 'audit.exports', 'audit.scans', 'audit.databases'};"
        "books = [name for name in sys.modules if name.startswith(('audit.books', 'audit.expectations.dispatch'))];"
        "assert not late.intersection(sys.modules) and not books"
    )
    done = subprocess.run([sys.executable, "-c", script, str(run)], cwd=forge.REPOSITORY, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("option", [[], ["--explain"], ["--compare"]])
def test_malformed_json_in_a_process_of_its_own(run: Path, other: Path, option: list[str]) -> None:
    """Here the json package was not loaded before, as it is in the tests: the scanner has no words of its own for an error."""
    (other / "manifest.json").write_text('{"a" 1}\n')
    words = [str(other), *option, *([str(run)] if "--compare" in option else [])]
    command = [sys.executable, str(forge.REPOSITORY / "audit" / "audit.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == (2 if "--compare" in option else 1)
    assert "manifest.json: cannot be read: it is not JSON" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr

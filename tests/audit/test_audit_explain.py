"""`--explain`: what it says of a PASS, a FAIL and an UNKNOWN, and that its numbers are the archive's."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from audit import promises
from audit.archive import Report
from audit.cli import main
from audit.explain import FIRST, MEANS_NOT, SHOWN, WIDTH
from audit.findings import Finding
from tests.audit import forge
from tests.audit.play import study

Explain = Callable[..., tuple[int, str]]


@pytest.fixture
def explain(checkout: Path, capsys: pytest.CaptureFixture[str]) -> Explain:
    def call(*arguments: object) -> tuple[int, str]:
        code = main(["--explain", *map(str, arguments)], str(checkout))
        captured = capsys.readouterr()
        assert captured.err == ""
        assert captured.out.isascii()
        return code, captured.out

    return call


def flat(text: str) -> str:
    return " ".join(text.split())


def test_it_does_not_go_with_json(run: Path, checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(run), "--explain", "--json"], str(checkout)) == 2
    assert "does not go with --json" in capsys.readouterr().err


def test_an_interrupted_run(explain: Explain, run: Path) -> None:
    (run / "manifest.json").unlink()
    code, out = explain(run)
    assert code == 3
    assert "the run was interrupted" in out
    assert "PASS means" not in out
    assert out.endswith(f"UNKNOWN {run}: 1 finding\n")


def test_a_manifest_that_cannot_be_read(explain: Explain, run: Path) -> None:
    (run / "manifest.json").write_text("{")
    code, out = explain(run)
    assert code == 1
    assert "Nothing beyond a first look" in out


def test_a_fail_is_told_by_promises(explain: Explain, run: Path) -> None:
    path = run / "scenarios" / "delivery" / "keyed_delivery" / "receiver" / "effects.jsonl"
    path.write_text(path.read_text().replace('"status":200', '"status":201'))
    code, out = explain(run)
    assert code == 1
    assert f"{promises.FILES} (1 finding):" in out
    assert f"{promises.CHAIN} (1 finding):" in out
    assert f"{promises.RECEIVER} (" in out
    assert "PASS means" not in out
    assert "An archive that fails is no evidence." in flat(out)


def test_many_findings_of_one_promise_are_counted(explain: Explain, run: Path) -> None:
    for number in range(SHOWN + 2):
        (run / f"extra-{number}").write_text("")
    _, out = explain(run)
    assert f"{promises.FILES} ({2 * (SHOWN + 2)} findings):" in out
    assert f"    and {SHOWN + 4} more\n" in out


def test_a_pass_has_the_numbers_of_the_archive(explain: Explain, run: Path, archive: forge.Archive) -> None:
    code, out = explain(run)
    text = flat(out)
    assert code == 0

    def of(journal: str, kind: str) -> int:
        found = [
            records for path, records in archive.journals.items() if Path(path).stem == journal and "/checkpoints/" not in path
        ]
        return sum(record["type"] == kind for records in found for record in records)

    files = [path for path in run.rglob("*") if path.is_file()]
    assert f"Files. {len(files)} files with {sum(path.stat().st_size for path in files)} bytes." in text
    assert f"{len(forge.SOURCES)} sources of the run" in text
    assert f"Processes. {len(archive.processes)} processes" in text
    assert f"{sum(process['exit_code'] == 23 for process in archive.processes)} halted with code 23" in text
    assert "5 scenarios ran (1 of them counterexamples)" in text
    assert f"{of('attempts', 'attempt')} attempts" in text
    assert (
        f"{of('arrivals', 'arrival')} arrivals, {of('arrivals', 'answer')} answers, {of('effects', 'effect')} effects" in text
    )
    assert f"{of('history', 'history')} history records" in text


def test_a_pass_says_what_it_means_and_what_not(explain: Explain, run: Path) -> None:
    _, out = explain(run)
    text = flat(out)
    assert "PASS means: every promise above was looked at" in text
    for sentence in MEANS_NOT:
        assert flat(sentence) in text
    for words in ("rebuilds a whole consistent archive", "happened on the machine", "power loss", "counterexample is right"):
        assert words in text


def test_a_pass_of_a_part_is_not_one_of_the_whole(explain: Explain, run: Path, tmp_path: Path) -> None:
    assert "the archive holds all 5 scenarios of the catalogue, completely" in flat(explain(run)[1])
    part = study(["key_conflict", "keyed_delivery"]).write(tmp_path / "part")
    text = flat(explain(part)[1])
    assert "holds 2 of the 5 scenarios of the catalogue (nothing is said of the others), and these completely" in text
    assert "all 5 scenarios" not in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "made with CPython 3.11.7, SQLite 3.40.1 of sqlite3 and aiohttp 3.10.0, attrs 26.1.0, on Linux (files on ext4)"),
        ({}, "at commit 0123456789abcdef0123456789abcdef01234567. The tree was clean."),
        ({"clean": False}, "The tree was not clean: it held changes that the commit does not have"),
        ({"clean": None, "commit": None}, "outside a repository, so that no commit is known. Nothing vouches"),
        ({"file_system": None}, "(files on an unknown file system)"),
        ({"packages": 7}, "Its manifest does not say in the contract's form how it was made."),
    ],
)
def test_how_the_run_was_made(
    explain: Explain, archive: forge.Archive, tmp_path: Path, change: dict[str, object], words: str
) -> None:
    archive.run.update(change)
    text = flat(explain(archive.write(tmp_path / "changed"))[1])
    assert words in text
    assert ("not clean" in text) == (change == {"clean": False})


def test_the_first_illegal_step_is_told_first(explain: Explain, archive: forge.Archive, tmp_path: Path) -> None:
    archive.data("keyed_delivery", "attempts", 2)["key"] = "another"
    text = flat(explain(archive.write(tmp_path / "changed"))[1])
    assert f"by the promise that it breaks {'-' * 100} {FIRST} (1 finding): delivery/keyed_delivery: the first illegal" in text


def test_it_fits_two_screens(explain: Explain, run: Path) -> None:
    lines = explain(run)[1].splitlines()
    assert len(lines) <= 60
    assert all(len(line) <= WIDTH for line in lines if str(run) not in line)


def test_two_archives_are_explained_one_after_the_other(explain: Explain, archive: forge.Archive, tmp_path: Path) -> None:
    for name in ("one", "two"):
        archive.write(tmp_path / "both" / name)
    code, out = explain(tmp_path / "both")
    assert code == 0
    assert len(re.findall(r"^What was checked in ", out, re.MULTILINE)) == 2


@pytest.mark.parametrize(
    ("subject", "place", "sentence", "promise"),
    [
        ("manifest.json", "sources 'run.py'", "is not listed", promises.SOURCES),
        ("manifest.json", "protocol.sha256", "is x", promises.PLAN),
        ("manifest.json", "run.clean", "is x", promises.RUN),
        ("manifest.json", "", "cannot be read", promises.FILES),
        ("processes.json", "processes[3].pid", "is x", promises.PROCESSES),
        ("a/b", "processes.json receiver (incarnation 1).ready", "is x", promises.PROCESSES),
        ("a/b", "scenarios/a/b/outbox/receipts.jsonl:1 previous", "is x", promises.CHAIN),
        ("a/b", "scenarios/a/b/checkpoints/one/outbox/receipts.jsonl", "is no prefix", promises.CHAIN),
        ("a/b", "scenarios/a/b/outbox/receipts.jsonl:1 data.via", "is x", promises.SENDER),
        ("a/b", "scenarios/a/b/relay/exchanges.jsonl:1", "is x", promises.WIRE),
        ("a/b", "counts", "the journals have", promises.COUNTS),
        ("results.json", "totals.records", "is 1", promises.CLAIMS),
        (".", "", "whatever", promises.WHOLE),
    ],
)
def test_which_promise_a_finding_breaks(subject: str, place: str, sentence: str, promise: str) -> None:
    assert promises.promise(Finding(subject, place, sentence)) == promise
    assert promise in promises.ORDER


def test_nothing_is_kept_unless_asked_for(judge: Callable[[Path], Report], run: Path) -> None:
    assert judge(run).kept is None

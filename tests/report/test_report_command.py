"""`run.py report`: where it writes, what it refuses, and what the audit says of an archive with such a page."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

import run
from audit.archive import audit_archive
from audit.compare import compare
from tests.audit.real import Whole, freeze
from tests.support import ROOT
from tests.tamper.ground import own_pins

NAMES = ("delivery/keyed_delivery", "delivery/unkeyed_delivery")
PAGE = "report.html"


class Done(NamedTuple):
    """What a command said, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def old(whole: Whole, folder: Path) -> Path:
    """A small archive without a page, as they were made before there was one."""
    return whole.part(*NAMES).write(folder)


@pytest.fixture
def listed(old: Path) -> Path:
    """The same with a page that its manifest lists."""
    assert report(old).returncode == 0
    content = (old / PAGE).read_bytes()
    manifest = json.loads((old / "manifest.json").read_text())
    sha256 = hashlib.sha256(content).hexdigest()
    manifest["files"] = dict(sorted({**manifest["files"], PAGE: {"bytes": len(content), "sha256": sha256}}.items()))
    (old / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return old


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return freeze(tmp_path_factory.mktemp("frozen"))


def report(*arguments: Path | str) -> Done:
    """`run.py report`, in this process."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = run.main(["report", *map(str, arguments)])
    return Done(code, out.getvalue(), err.getvalue())


def findings(archive: Path, frozen: Path) -> list[str]:
    """What the audit finds, but for the sources: the archive may be older than the checkout."""
    with own_pins():
        found = audit_archive(str(archive), str(frozen)).findings
    return [str(finding) for finding in found if "sources" not in finding.place]


# What it refuses.


def test_a_page_that_is_there_is_not_overwritten(old: Path) -> None:
    (old / PAGE).write_text("mine")
    done = report(old)
    assert done.returncode == 2
    assert f"{old / PAGE} exists, and nothing is overwritten; open it, or name another file with --out FILE" in done.stderr
    assert (old / PAGE).read_text() == "mine"


@pytest.mark.parametrize("option", ["--out", "--svg", "--mermaid"])
def test_what_is_in_the_way_is_refused_and_nothing_is_written(old: Path, tmp_path: Path, option: str) -> None:
    blocked = tmp_path / "blocked"
    blocked.symlink_to(tmp_path / "nowhere")  # a link that leads nowhere is in the way as well
    other = tmp_path / "other"
    done = report(old, option, blocked, "--mermaid" if option != "--mermaid" else "--svg", other)
    assert done.returncode == 2
    assert f"{option} {blocked}: it exists, and nothing is overwritten" in done.stderr
    assert not other.exists()


def test_a_file_where_a_folder_should_be_is_refused(old: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = report(old, "--out", tmp_path / "file" / "page.html")
    assert done.returncode == 2
    assert "what stands above it is no directory" in done.stderr


def test_an_interrupted_run_gets_no_page(old: Path) -> None:
    (old / "manifest.json").unlink()
    done = report(old)
    assert done.returncode == 2
    assert "is an interrupted run: it has no manifest.json" in done.stderr
    assert not (old / PAGE).exists()


def test_a_machine_that_refuses_is_told(old: Path) -> None:
    done = report(old, "--out", "/proc/page.html")  # nobody may write there, not even root
    assert done.returncode == 3
    assert "/proc/page.html: cannot be written" in done.stderr


# What it writes.


def test_it_writes_the_page_and_the_pictures_and_says_where(old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = report(old, "--out", "new/page.html", "--svg", "pictures", "--mermaid", "texts")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("written: new/page.html: 2 scenarios, ")
    assert "written: pictures: 2 files *.svg" in done.stdout
    assert (tmp_path / "new/page.html").read_bytes().startswith(b"<!doctype html>")
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {
        "delivery-keyed_delivery.svg",
        "delivery-unkeyed_delivery.svg",
    }
    assert (tmp_path / "texts/delivery-unkeyed_delivery.mmd").read_text().startswith("sequenceDiagram\n")
    assert not (old / PAGE).exists()


def test_pictures_alone_leave_the_archive_as_it_is(old: Path, tmp_path: Path) -> None:
    (old / PAGE).write_text("mine")
    assert report(old, "--svg", tmp_path / "pictures").returncode == 0
    assert (old / PAGE).read_text() == "mine"


def test_it_goes_into_the_archive_where_nothing_else_is_named(old: Path) -> None:
    done = report(old)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"written: {old / PAGE}: 2 scenarios")


# What the audit says.


def test_an_archive_passes_without_a_page_with_one_and_with_a_listed_one(old: Path, frozen: Path) -> None:
    assert findings(old, frozen) == []
    assert report(old).returncode == 0
    assert findings(old, frozen) == []


def test_a_quiet_edit_of_a_listed_page_is_seen(listed: Path, frozen: Path) -> None:
    assert findings(listed, frozen) == []
    content = (listed / PAGE).read_bytes()
    (listed / PAGE).write_bytes(content.replace(b"PASS", b"FAIL", 1))
    assert any(PAGE in each and "SHA-256" in each for each in findings(listed, frozen))
    (listed / PAGE).unlink()
    assert any("is listed in manifest.json, but the file is missing" in each for each in findings(listed, frozen))


def test_two_archives_are_equal_whatever_their_pages(whole: Whole, listed: Path, tmp_path: Path) -> None:
    other = whole.part(*NAMES).write(tmp_path / "other")
    assert compare(str(listed), str(other)).verdict == "equal"
    (other / PAGE).write_text("another page")
    assert compare(str(other), str(listed)).verdict == "equal"


@pytest.mark.parametrize(("one", "other"), [("same", "same"), ("above", "above/below")])
def test_two_things_in_one_place_are_refused_and_nothing_is_written(old: Path, tmp_path: Path, one: str, other: str) -> None:
    done = report(old, "--svg", tmp_path / one, "--out", tmp_path / other)
    assert (done.returncode, (tmp_path / one).exists()) == (2, False)
    assert "names the same place, or one above it" in done.stderr


def test_a_page_in_its_archive_is_the_same_wherever_the_archive_lies(listed: Path, tmp_path: Path, frozen: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(listed, moved)
    (moved / PAGE).unlink()
    assert report(moved).returncode == 0
    assert (moved / PAGE).read_bytes() == (listed / PAGE).read_bytes()
    assert findings(moved, frozen) == []


def test_names_that_no_folder_can_have_and_folders_without_end_are_read_past(old: Path, tmp_path: Path) -> None:
    manifest = json.loads((old / "manifest.json").read_text())
    manifest["protocol"]["scenarios"][0]["name"] = "a\ud800"
    (old / "manifest.json").write_text(json.dumps(manifest))
    deep = old / "scenarios" / NAMES[1]
    for _ in range(100):
        deep = deep / "d"
    deep.mkdir(parents=True)
    assert report(old, "--out", tmp_path / "page.html", "--svg", tmp_path / "svg").returncode == 0


def test_a_scenario_that_is_told_twice_gets_a_picture_each_time(old: Path, tmp_path: Path) -> None:
    manifest = json.loads((old / "manifest.json").read_text())
    manifest["protocol"]["scenarios"] *= 2
    (old / "manifest.json").write_text(json.dumps(manifest))
    assert report(old, "--svg", tmp_path / "svg").returncode == 0
    assert len(list((tmp_path / "svg").iterdir())) == 2 * len(NAMES)


def test_a_run_whose_page_cannot_be_made_has_its_evidence_all_the_same(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['jinja2'] = None; import run; "
        f"sys.exit(run.main(['--out', {str(tmp_path / 'out')!r}, '--only', 'delivery/keyed_delivery']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "report.html could not be made" in done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(
        ["manifest.json", "processes.json", "results.json", "scenarios", "tables.md"]
    )
    audit = [sys.executable, str(ROOT / "audit" / "audit.py"), str(tmp_path / "out")]
    assert subprocess.run(audit, capture_output=True, timeout=60, check=False).returncode == 0

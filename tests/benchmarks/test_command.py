"""`python -m benchmarks`: what it refuses, what it writes, and that every family runs."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import families, floor, results
from benchmarks.__main__ import main
from benchmarks.measuring import Part

# Those that take a run of the study or of an exploration: what they start is tested where it lives.
SLOW = {"study", "explore", "memory", "peers"}


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    try:
        code = main(arguments)
    except SystemExit as error:
        code = int(str(error.code))
    assert code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nothing"], "no family is called nothing; there are: study"),
        (["idle", "--rounds", "0"], "'0' is no number of rounds"),
        (["idle", "--rounds", "x"], "'x' is no number of rounds"),
        (["idle", "--out", "x.txt"], "does not end in .json"),
        (["idle", "--out", "/nowhere/x.json"], "there is no folder /nowhere"),
        (["idle", "--quick", "--plots", "/nowhere"], "needs --out"),
        (["idle", "--unknown"], "unrecognized arguments"),
    ],
)
def test_bad_usage_is_exit_code_2_and_says_what_is_wrong(
    capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert told in refused(capsys, *arguments)


def test_a_file_that_is_none_of_ours_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.json"
    file.write_text("mine")
    assert "x.json holds no results" in refused(capsys, "idle", "--quick", "--out", str(file))
    assert file.read_text() == "mine"


def test_a_file_that_cannot_be_written_is_told_before_anything_is_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.__main__._family", lambda *_given: pytest.fail("it was measured"))
    assert "nothing can be written there" in refused(capsys, "idle", "--quick", "--out", "/proc/x.json")


def test_a_family_that_fails_is_told_and_the_next_one_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_quick: bool) -> Iterator[Part]:
        raise OSError(28, "No space left on device")
        yield

    monkeypatch.setattr("benchmarks.families.imports.parts", full)
    assert main(["imports", "idle", "--quick", "--out", str(tmp_path / "x.json")]) == 1
    assert "imports was not measured: OSError: [Errno 28]" in capsys.readouterr().err
    assert [family.name for family in results.read(tmp_path / "x.json")] == ["idle"]


def test_a_receiver_ends_with_whoever_started_it() -> None:
    program = (
        "import os\nfrom benchmarks.receiver import receiver\n"
        "with receiver() as url:\n    print(url, flush=True)\n    os._exit(9)\n"
    )
    # It holds this pipe, too: the output ends when nobody has it any more.
    done = subprocess.run([sys.executable, "-c", program], cwd=floor.ROOT, check=False, stdout=subprocess.PIPE, timeout=30)
    assert (done.returncode, done.stdout[:7]) == (9, b"http://")


def test_the_list_names_every_family_with_its_title(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in told] == list(families.NAMES)
    assert all(len(line.split()) > 2 for line in told)


def test_quick_writes_nothing_unless_told_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.__main__.RESULTS", tmp_path / "results.json")
    assert main(["idle", "--quick"]) == 0
    assert "an idle fault point" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_a_run_of_one_family_is_written_beside_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    assert main(["imports", "--quick", "--out", str(file)]) == 0
    assert main(["idle", "--quick", "--out", str(file)]) == 0
    assert [family.name for family in results.read(file)] == ["idle", "imports"]
    assert (tmp_path / "x.md").read_text("utf-8") == results.as_markdown(results.read(file))


@pytest.mark.parametrize("name", sorted(set(families.NAMES) - SLOW))
def test_every_family_runs(name: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    assert main([name, "--quick", "--out", str(file)]) == 0
    (family,) = results.read(file)
    assert family.parts
    assert all(line.values or line.skipped for part in family.parts for line in part.lines)


# A whole round of these takes long. What they do not share with a run of run.py is their floors and how they count.
PIECES = {
    "the study's floor, of what strace counts": (
        "from benchmarks.families.study import Runs, bare, counted\n"
        "runs = Runs(Path(folder))\n"
        "counts = counted(runs, ['--only', 'points/intention_append_before'])\n"
        "assert min(counts.forks, counts.syncs, counts.requests) > 0, counts\n"
        "assert bare(runs, counts) > 0"
    ),
    "a case's floor and passes alone": (
        "from benchmarks.families.explore import alone, passes, sent_and_synced\n"
        "assert min(alone(half, 2, 2, Path(folder), 0) for half in (passes, sent_and_synced)) > 0"
    ),
    "the peak of a run": (
        "from benchmarks.families.memory import Peaks, scenarios\n"
        "from benchmarks.floor import Failed\n"
        "peaks, one = Peaks(Path(folder)), ['--only', 'points/intention_append_before']\n"
        "assert 10 < peaks.of(one, scenarios, 1) < 1000\n"
        "try:\n"
        "    peaks.of(one, scenarios, 2)\n"
        "except Failed as error:\n"
        "    assert 'was of 1, not of 2' in str(error), error\n"
        "else:\n"
        "    raise AssertionError('a run of another size was taken')"
    ),
}


@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES)
def test_what_the_long_families_measure_with_runs(piece: str, tmp_path: Path) -> None:
    # A process of its own: the floors fork it.
    program = f"from pathlib import Path\nfolder = {str(tmp_path)!r}\n{piece}"
    done = subprocess.run([sys.executable, "-c", program], cwd=floor.ROOT, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")

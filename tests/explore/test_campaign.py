"""Campaigns: the same one gives the same results, an interrupted one goes on, and nothing is written over."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

import run
from outbox.errors import BadInput
from scenarios.engine import postgres
from scenarios.engine.directories import alone_in
from scenarios.explore import archive, command, results
from scenarios.explore.campaign import CASES
from scenarios.explore.command import Exploring, explore
from scenarios.explore.model import Subject
from scenarios.explore.progress import shown
from scenarios.explore.rounds import KEEP_ALL
from tests.explore.ground import CHEAP, KEYED, SMALL_BROKEN, UNKEYED, Ground, plan, told_by
from tests.scenarios.watch import Watch
from tests.support import ROOT

BOUND_SECONDS = 60
OPTIONS = ("--subject", CHEAP.name, "--jobs", "1")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of the cheap subject that nothing interrupted."""
    out = tmp_path_factory.mktemp("whole") / "out"
    assert explore(Exploring(out, plan(CHEAP), "fork"), io.StringIO()) == 0
    return out


@dataclass(frozen=True, slots=True)
class Stopped:
    """A campaign that was ended in the middle: where, with what exit code and what it said."""

    out: Path
    code: int
    said: str


def stop(folder: Path, number: signal.Signals) -> Stopped:
    """Begin the same campaign as a process, wait until its sixth case has begun, and end it with this signal."""
    gate, out = folder / "gate", folder / "out"
    os.mkfifo(gate)
    asked = [sys.executable, "-m", "tests.explore.harness", "explore", *OPTIONS, "--out", str(out)]
    environment = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen(asked, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as process:
        with gate.open() as file:
            assert file.read() == "here"
        watch = Watch(child.pid for child in psutil.Process(process.pid).children(recursive=True))
        assert len(watch) >= 4
        process.send_signal(number)
        _output, said = process.communicate(timeout=BOUND_SECONDS)
        watch.assert_all_end()
    gate.unlink()
    return Stopped(out, process.returncode, said)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    return stop(tmp_path_factory.mktemp("killed"), signal.SIGKILL)


def main(*arguments: object, subjects: tuple[Subject, ...] = (CHEAP,)) -> int:
    """`run.py` in this process, with these subjects."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command.choose, "__defaults__", (subjects,))
        patch.setattr(command, "SUBJECTS", subjects)
        return run.main([*map(str, arguments)])


def test_kill_9_in_the_middle_leaves_what_was_done_and_no_process(killed: Stopped, whole: Path) -> None:
    assert killed.code == -signal.SIGKILL
    assert not (killed.out / "manifest.json").exists()
    assert (whole / results.RESULTS).read_bytes().startswith((killed.out / results.RESULTS).read_bytes())
    assert len(told_by(killed.out)) == 5


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--budget", "7"), "budget"),
        (("--depth", "2"), "depth"),
        (("--keep", "all"), "keep"),
        (("--mode", "pauses", "--depth", "3"), "mode, depth"),
    ],
)
def test_it_does_not_go_on_with_other_options(
    killed: Stopped, options: tuple[str, ...], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (killed.out / results.RESULTS).read_bytes()
    assert main("explore", *OPTIONS, "--out", killed.out, "--resume", *options) == 2
    assert f"was begun with another plan ({what}); go on with the options of the first run" in capsys.readouterr().err
    assert (killed.out / results.RESULTS).read_bytes() == before


def test_it_does_not_go_on_with_other_sources(killed: Stopped, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sources of this checkout stand for the later ones."""
    shutil.copytree(killed.out, tmp_path / "c")
    begun = tmp_path / "c" / "plan.json"
    begun.write_text(json.dumps({**json.loads(begun.read_bytes()), "sources": "0" * 64}))
    assert main("explore", *OPTIONS, "--out", tmp_path / "c", "--resume") == 2
    assert "was begun with another plan (sources)" in capsys.readouterr().err
    begun.write_text("[]")
    assert main("explore", *OPTIONS, "--out", tmp_path / "c", "--resume") == 2
    assert "holds no campaign that could go on: plan.json: it is no JSON object" in capsys.readouterr().err


def test_it_goes_on_to_the_same_results(killed: Stopped, whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (killed.out / results.RESULTS).open("ab") as file:
        file.write(b'{"case":"small/cheap/oth')
    assert main("explore", *OPTIONS, "--out", killed.out, "--resume", "--jobs", "2") == 0
    assert f"PASS {killed.out}: 12 cases, 0 violated, 0 unknown" in capsys.readouterr().out
    assert (killed.out / results.RESULTS).read_bytes() == (whole / results.RESULTS).read_bytes()
    assert stable(killed.out) == stable(whole)
    assert main("explore", *OPTIONS, "--out", killed.out, "--resume") == 2
    assert "is finished; there is nothing to go on with" in capsys.readouterr().err


def stable(out: Path) -> object:
    """What of a manifest is the same in every run."""
    manifest = json.loads((out / "manifest.json").read_bytes())
    return [manifest[name] for name in ("format", "plan", "derived", "declared", "totals", "sources")]


def test_ctrl_c_ends_every_process_and_says_how_to_go_on(tmp_path: Path) -> None:
    stopped = stop(tmp_path, signal.SIGINT)
    assert stopped.code == 3
    assert f"stopped by SIGINT: {stopped.out} holds an incomplete run" in stopped.said
    assert "--resume" in stopped.said
    assert "Traceback" not in stopped.said
    assert len(told_by(stopped.out)) == 5


@contextlib.contextmanager
def no_file_larger(limit: int) -> Iterator[None]:
    """While this lasts no file of this process and of those that it starts may grow past the limit: a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(("limit", "there"), [(4_500, True), (9_000, True), (900, False)])
def test_a_full_disk_is_no_verdict(tmp_path: Path, limit: int, there: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """The results do not fit, then the manifest, then not even the plan."""
    with no_file_larger(limit):
        assert main("explore", *OPTIONS, "--out", tmp_path / "out") == 3
    printed = capsys.readouterr()
    assert "the run is incomplete: " in printed.err
    assert "File too large" in printed.err
    assert "--resume" in printed.err
    assert "PASS" not in printed.out
    assert (tmp_path / "out" / results.RESULTS).exists() == there
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_the_same_campaign_twice_gives_the_same_bytes(ground: Ground, tmp_path: Path) -> None:
    both = plan(SMALL_BROKEN, UNKEYED, depth=2, budget=9)
    one, two = (ground.campaign(both, tmp_path / name) for name in ("one", "two"))
    found = [(tmp_path / name / results.RESULTS).read_bytes() for name in ("one", "two")]
    assert found[0] == found[1]
    assert one.totals == two.totals
    assert found[0].count(b"\n") == 9


def test_results_have_one_order_whoever_is_ready_first(tmp_path: Path) -> None:
    numbers = [3, 1, 0, 4, 2]
    with results.Results(tmp_path, 0) as written:
        for number in numbers:
            written.put(number, whole_result(str(number)))
            there = [each["case"] for each in results.read(tmp_path)]
            assert there == [str(each) for each in range(len(there))]
    assert len(there) == 5


def whole_result(case: str) -> dict[str, object]:
    lists: dict[str, object] = {name: [] for name in ("kinds", "violations", "doubts", "deaths")}
    return {**lists, "case": case, "verdict": "held", "counts": {}, "rounds": 1, "processes": 1}


@pytest.mark.parametrize(
    "wrong", [{"verdict": "bogus"}, {"deaths": 3}, {"deaths": [{}]}, {"processes": "x"}, {"counts": 7}, {"case": 1}]
)
def test_what_is_no_result_is_not_gone_on_with(wrong: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / results.RESULTS).write_text(json.dumps({**whole_result("a"), **wrong}) + "\n")
    with pytest.raises(BadInput, match="line 1: it is no result"):
        list(results.read(tmp_path))


def test_nobody_goes_on_with_a_campaign_that_is_at_work(killed: Stopped, capsys: pytest.CaptureFixture[str]) -> None:
    before = (killed.out / results.RESULTS).read_bytes()
    with alone_in(killed.out):
        assert main("explore", *OPTIONS, "--out", killed.out, "--resume") == 2
    assert "another run is at work in it" in capsys.readouterr().err
    assert (killed.out / results.RESULTS).read_bytes() == before


def test_a_name_that_evidence_cannot_hold_is_refused_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("explore", *OPTIONS, "--out", tmp_path / os.fsdecode(b"\xff")) == 2
    assert "its name is not UTF-8" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_budget_is_the_number_of_cases(ground: Ground, tmp_path: Path) -> None:
    assert ground.campaign(plan(KEYED, UNKEYED, budget=3), tmp_path).totals.cases == 3
    assert ground.listener.levels == [("small/keyed, depth 1", 3)]
    assert len(told_by(tmp_path)) == 3


def test_a_subject_that_the_budget_did_not_reach_is_unknown(ground: Ground, tmp_path: Path) -> None:
    campaign = ground.campaign(plan(KEYED, UNKEYED, budget=3), tmp_path)
    told = (
        "small/unkeyed: the budget of 3 cases was spent before it, so nothing is known of it; "
        "raise --budget, or choose subjects"
    )
    assert [each.doubts for each in campaign.derived] == [(), (told,)]
    assert archive.verdict(campaign.derived, campaign.totals) == "UNKNOWN"


def test_all_files_stay_where_all_are_asked_for(ground: Ground, tmp_path: Path) -> None:
    assert ground.campaign(plan(CHEAP, budget=2, keep=KEEP_ALL), tmp_path).totals.held == 2
    assert sorted(path.name for path in (tmp_path / CASES).iterdir()) == ["000000", "000001"]
    for folder in (tmp_path / CASES).iterdir():
        assert (folder / "processes.json").is_file()
        assert (folder / "receiver" / "effects.jsonl").is_file()


def test_a_campaign_of_a_shipped_subject_is_true_to_the_audit(tmp_path: Path) -> None:
    out = tmp_path / "campaign"
    asked = ("explore", "--subject", "journal/keyed", "--budget", "3", "--keep", "all", "--out", out)
    for argv in ((ROOT / "run.py", *asked), (ROOT / "audit" / "audit.py", out)):
        done = subprocess.run([sys.executable, *map(str, argv)], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "3 cases (3 held), 3 derived from their files" in done.stdout


def test_no_files_stay_of_what_held(whole: Path) -> None:
    assert not (whole / CASES).exists()


@pytest.mark.parametrize("what", ["folder", "file", "dangling link"])
def test_what_exists_is_never_written_over(tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    match what:
        case "folder":
            out.mkdir()
        case "file":
            out.touch()
        case _:
            out.symlink_to("nowhere")
    for asked in (("explore", *OPTIONS), ("replay", "small/cheap/none"), ("shrink", "small/cheap/none")):
        assert main(*asked, "--out", out) == 2
        assert "it exists, and nothing is overwritten" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--subject", "journal/*", "nowhere/*"), "--subject 'nowhere/*' matches no subject; there are: journal/keyed, "),
        (("--budget", "0"), "--budget 0: expected a positive number"),
        (("--jobs", "-1"), "--jobs -1: expected a positive number"),
        (("--resume",), "holds no campaign that could go on"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    tmp_path: Path, options: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main(["explore", "--out", str(tmp_path / "out"), *options]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("asked", [("explore",), ("replay", "journal/keyed/none"), ("shrink", "journal/keyed/none")])
def test_a_database_that_is_not_there_is_told_before_anything_is_made(
    tmp_path: Path, asked: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(postgres, "programs", lambda: None)
    assert run.main([*asked, "--out", str(tmp_path / "out"), "--store", "postgres"]) == 2
    assert "--store postgres: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def cut(lines: list[bytes]) -> list[bytes]:
    return [b"no result\n", *lines[1:]]


def other_case(lines: list[bytes]) -> list[bytes]:
    return [lines[1], lines[0], *lines[2:]]


def other_members(lines: list[bytes]) -> list[bytes]:
    return [b"{}\n", *lines[1:]]


def too_many(lines: list[bytes]) -> list[bytes]:
    return [*lines, lines[-1]]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (cut, r"results\.jsonl, line 1: it is no result"),
        (other_members, r"results\.jsonl, line 1: it is no result, its members are others"),
        (other_case, r"has small/cheap/other:send\.before#2 where this plan has small/cheap/other:send\.before#1"),
        (too_many, r"has 13 results where this plan has 12 cases"),
    ],
)
def test_results_that_are_not_of_this_plan_are_not_gone_on_with(
    ground: Ground, tmp_path: Path, whole: Path, change: Callable[[list[bytes]], list[bytes]], why: str
) -> None:
    lines = (whole / results.RESULTS).read_bytes().splitlines(keepends=True)
    (tmp_path / results.RESULTS).write_bytes(b"".join(change(lines)))
    with pytest.raises(BadInput, match=re.sub("small/cheap/other", "small/cheap/(other|often)", why)):
        ground.campaign(plan(CHEAP), tmp_path, resume=True)


def test_a_campaign_that_died_before_its_first_result_goes_on_from_the_beginning(ground: Ground, tmp_path: Path) -> None:
    told: list[str] = []
    assert ground.campaign(plan(CHEAP, budget=3), tmp_path, resume=True, told=told).totals.cases == 3
    assert len(told) == 3


@pytest.fixture
def known(whole: Path) -> Iterator[list[str]]:
    yield list(told_by(whole))


def test_cases_are_in_the_order_of_their_points(known: list[str]) -> None:
    assert known == [f"small/cheap/often:send.before#{number}" for number in range(1, 13)]


class Terminal(io.StringIO):
    """Somebody watches."""

    def isatty(self) -> bool:
        return True


def test_progress_tells_what_is_done_how_fast_and_what_is_left() -> None:
    stream = Terminal()
    with shown(stream) as progress:
        progress.level("small/cheap, depth 1", 4)
        progress._told = float("-inf")
        progress.ended({"verdict": "violated"})
    assert re.fullmatch(
        r"\r\x1b\[Ksmall/cheap, depth 1: 1 of 4 cases, [\d.]+ a second, about \d+ s left, 1 not held\r\x1b\[K",
        stream.getvalue(),
    )


def test_nobody_is_told_of_every_case_where_nobody_watches() -> None:
    stream = io.StringIO()
    with shown(stream) as progress:
        progress.level("small/cheap, depth 1", 1000)
        for _ in range(1000):
            progress.ended({"verdict": "held"})
    assert stream.getvalue() == ""

"""A process halts at a line that nobody marked, in whatever runs it; and the lines that a run comes to can be listed."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from outbox.errors import BadInput
from scenarios.engine import lines
from tests.scenarios import lined
from tests.support import ProcessBox

PROGRAM = "tests.scenarios.lined"
SOURCE = Path(lined.__file__).read_text("utf-8").splitlines()
MARKS = {match[1]: number for number, text in enumerate(SOURCE, 1) if (match := re.search(r"# MARK (\w+)$", text))}


@pytest.fixture(scope="module")
def box() -> Iterator[ProcessBox]:
    with ProcessBox(preloaded=(PROGRAM, "outbox.producer")) as opened:
        yield opened


@pytest.mark.parametrize(
    ("mark", "occurrence", "function", "loops"),
    [
        ("loop", 1, "work", 0),
        ("loop", 3, "work", 2),
        ("generator", 6, "numbers", 3),
        ("task", 5, "task", 3),
        ("thread", 2, "thread", 3),
        ("end", 1, "work", 3),
    ],
)
def test_it_halts_before_the_line_whoever_runs_it(
    box: ProcessBox, mark: str, occurrence: int, function: str, loops: int
) -> None:
    setting = f"{PROGRAM}:{MARKS[mark]}#{occurrence}"
    ended = box.run(PROGRAM, [f"HALT_AT_LINE={setting}"])
    assert (ended.exit_code, ended.stderr) == (23, f"halt(23) at {setting} in {function}\n")
    assert ended.stdout == "".join(f"loop {number}\n" for number in range(loops))


def test_a_line_that_is_not_reached_so_often_lets_the_program_be(box: ProcessBox) -> None:
    ended = box.run(PROGRAM, [f"HALT_AT_LINE={PROGRAM}:{MARKS['thread']}#3"])
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert ended.stdout.endswith("done 11\n")


def test_what_is_listed_is_what_can_be_halted_at(box: ProcessBox, tmp_path: Path) -> None:
    assert box.run(PROGRAM, [f"LINES_TO={tmp_path / 'lines'}"]).exit_code == 0
    told = Counter((tmp_path / "lines").read_text("ascii").split())
    expected = {"loop": 3, "generator": 6, "task": 6, "thread": 2}
    assert {mark: told[f"{PROGRAM}:{MARKS[mark]}"] for mark in expected} == expected
    assert told[f"{PROGRAM}:{MARKS['end']}"] >= 1
    assert {each.partition(":")[0] for each in told} == {PROGRAM}
    for point, count in told.items():
        assert box.run(PROGRAM, [f"HALT_AT_LINE={point}#{count}"]).exit_code == 23, point


def test_a_list_ends_with_the_line_that_was_halted_at(box: ProcessBox, tmp_path: Path) -> None:
    setting = f"{PROGRAM}:{MARKS['thread']}"
    assert box.run(PROGRAM, [f"HALT_AT_LINE={setting}#1", f"LINES_TO={tmp_path / 'lines'}"]).exit_code == 23
    listed = (tmp_path / "lines").read_text("ascii").split()
    # The thread that started it may still come to where it waits for it.
    after = listed[listed.index(setting) + 1 :]
    assert after in ([], [f"{PROGRAM}:{MARKS['join']}"])


def test_a_list_that_cannot_be_written_ends_the_process(box: ProcessBox, tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this machine has no /dev/full")
    ended = box.run(PROGRAM, ["LINES_TO=/dev/full"])
    assert (ended.exit_code, ended.stderr) == (70, "LINES_TO cannot be written: No space left on device\n")
    ended = box.run("outbox.producer", ["--help"], {"LINES_TO": str(tmp_path / "absent" / "lines")})
    assert ended.exit_code == 2
    assert ended.stderr.endswith("cannot be written: No such file or directory\n")


def test_a_program_that_takes_the_watch_away_is_told_from_one_that_does_not_come_there(box: ProcessBox, tmp_path: Path) -> None:
    for asked in (f"LINES_TO={tmp_path / 'lines'}", f"HALT_AT_LINE={PROGRAM}:{MARKS['end']}#99"):
        ended = box.run(PROGRAM, [asked, "BLIND=1"])
        assert ended.exit_code == 70
        assert "took the watch over its lines away" in ended.stderr


def test_both_ways_of_starting_a_program_come_to_the_same_lines(box: ProcessBox, tmp_path: Path) -> None:
    arguments = ["--dir", "outbox", "--key", "k", "--route", "/operations", "--body", "{}"]
    listed = []
    with ProcessBox("exec") as other:
        for number, each in enumerate((box, other)):
            place = tmp_path / str(number)
            place.mkdir()
            ended = each.run("outbox.producer", arguments, {"LINES_TO": "lines"}, directory=place)
            assert (ended.exit_code, ended.stderr) == (0, "")
            listed.append((place / "lines").read_text("ascii").split())
    assert listed[0] == listed[1]
    assert {each.partition(":")[0] for each in listed[0]} >= {"outbox.producer", "outbox.journal", "outbox.files"}
    # The line of a declaration is executed when its module is loaded, and by some programs only then.
    assert set(listed[0]) <= {f"{module}:{number}" for module in _modules(listed[0]) for number in lines.executable(module)}


def _modules(listed: list[str]) -> set[str]:
    return {each.partition(":")[0] for each in listed}


# sys.monitoring came with Python 3.12; what is before has sys.settrace only.
WAYS = ("_traced", "_monitored")[: 1 + (sys.version_info >= (3, 12))]


def test_every_way_of_watching_tells_of_the_same_lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(lines, "STUDIED", (PROGRAM,))
    told = []
    for name in WAYS:
        listing = os.open(tmp_path / name, os.O_WRONLY | os.O_CREAT)
        end = getattr(lines, name)(lines.Watch(None, listing))
        lined.work()
        end()
        lined.work()
        os.close(listing)
        told.append(set((tmp_path / name).read_text("ascii").split()))
    assert [each for each in told if each != told[0]] == []
    assert len(told[0]) > 15


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("outbox.workflow", "expected MODULE:LINE#N"),
        ("outbox.workflow:0#1", "expected MODULE:LINE#N"),
        ("outbox.workflow:12#0", "expected MODULE:LINE#N"),
        ("outbox.workflow:12", "expected MODULE:LINE#N"),
        ("outbox.workflow:1#1", "no function of outbox.workflow has code in line 1"),
        ("outbox.nothing:12#1", "'outbox.nothing' is no module under study"),
        ("scenarios.engine.lines:12#1", "'scenarios.engine.lines' is no module under study"),
        ("outboxes.workflow:12#1", "is no module under study; those are in outbox, receivers, scenarios.oracle"),
    ],
)
def test_a_line_that_is_none_is_refused(setting: str, why: str) -> None:
    with pytest.raises(BadInput, match=re.escape(why)):
        lines.parse(setting)


def test_a_program_that_is_armed_at_what_is_no_line_says_so(box: ProcessBox) -> None:
    ended = box.run("outbox.producer", ["--help"], {"HALT_AT_LINE": "outbox.producer#1"})
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr == "HALT_AT_LINE='outbox.producer#1': expected MODULE:LINE#N, with LINE and N from 1\n"

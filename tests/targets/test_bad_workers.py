"""Workers that cannot be judged: each is refused in words of its own, nothing hangs, and nothing survives."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from outbox.errors import BadInput
from scenarios.targets import baseline, steps
from scenarios.targets.model import Contents, Target, Worker
from scenarios.targets.outcomes import WorkerCase
from scenarios.targets.worker import Asked, Check
from tests.targets.engine import bad, slot_of


def living(word: str) -> list[int]:
    return [each.pid for each in psutil.process_iter(["cmdline"]) if word in (each.info["cmdline"] or [])]


@pytest.fixture(autouse=True)
def bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "COMMAND_SECONDS", 2.0)
    monkeypatch.setattr(steps, "STOP_SECONDS", 0.3)
    monkeypatch.setattr(baseline, "WORK_SECONDS", 2.0)


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("enqueue-fails", "enqueue fails without any fault: exit code 1; it said: enqueue: no such queue"),
        ("enqueue-hangs", "enqueue did not end within"),
        ("fills", "enqueue fills the disk"),
        ("exits-23", "work exits 23 by itself"),
        ("forks-away", "it forks away"),
        ("stays", "it forks away"),
        ("daemon", "it forks away"),
        ("sheds", "it forks away"),
        ("never-ends", "work did not end within 2 s, though ends is"),
        ("never-ends", 'write ends = "signal"'),
        ("not-delivered", "nothing arrived at {url}"),
        ("nameless", "what came names no job: POST /x"),
        ("fails", "work fails without any fault: exit code 1; it said: RuntimeError: a bug of its own"),
        ("twice", "arrives 2 times"),
        ("one-key", "halt23-canary-1 came under the key of halt23-job-1 only"),
    ],
)
async def test_what_cannot_be_judged_is_told_apart_from_a_finding(tmp_path: Path, how: str, said: str) -> None:
    async with slot_of(bad(how), tmp_path) as (_commands, runs, _slot):
        with pytest.raises(BadInput) as refused:
            await runs.first()
    assert said in str(refused.value)
    assert living(how) == []


@pytest.mark.campaign
async def test_a_command_that_does_not_exist_is_named(tmp_path: Path) -> None:
    async with slot_of(bad("", setup=("no-such-program",)), tmp_path) as (_commands, runs, _slot):
        with pytest.raises(BadInput, match="setup cannot be started: no-such-program: cannot be started: No such file"):
            await runs.first()


@pytest.mark.campaign
async def test_a_count_that_does_not_see_the_job_is_refused(tmp_path: Path) -> None:
    async with slot_of(bad("", pending=("echo", "0")), tmp_path) as (_commands, runs, _slot):
        with pytest.raises(BadInput, match="pending counts wrongly: after enqueue it was 0"):
            await runs.first()


@pytest.mark.campaign
async def test_modules_that_start_a_thread_are_not_loaded_for_forks(tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    (library / "quiet.py").write_text("")
    (library / "busy.py").write_text("import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n")
    (library / "sitecustomize.py").write_text("import quiet\n")
    for imported, told in (("quiet", True), ("busy", False)):
        (library / "sitecustomize.py").write_text(f"import {imported}\n")
        target = replace(bad(""), contents=replace(bad("").contents, environment={"PYTHONPATH": str(library)}))
        async with slot_of(target, tmp_path / imported) as (_commands, runs, _slot):
            await runs.first()
            modules = await runs.loadable()
        assert ("urllib.request" in modules) is told
        assert ("start threads" in modules) is not told


@pytest.mark.campaign
async def test_a_worker_that_runs_until_sigterm_is_stopped_and_one_that_ignores_it_is_noted(tmp_path: Path) -> None:
    async with slot_of(bad("until-signal", ends="signal"), tmp_path / "1") as (_commands, runs, _slot):
        assert (await runs.first()).notes == []
    async with slot_of(bad("ignores-sigterm", ends="signal"), tmp_path / "2") as (_commands, runs, _slot):
        assert (await runs.first()).notes == ["work ignored SIGTERM for 0.3 s and was killed"]
    assert living("until-signal") == living("ignores-sigterm") == []


def made(folder: Path, work: str, *options: str) -> Target:
    """A target in a folder of its own, with modules beside its script."""
    (folder / "helper.py").write_text(HELPER)
    (folder / "enqueue.py").write_text("import sys, helper\nhelper.put(*sys.argv[1:])\n")
    (folder / "work.py").write_text(work)
    program = ("{python}", *options, "{target}/work.py")
    worker = Worker(enqueue=("{python}", "{target}/enqueue.py", "{job}", "{url}"), work=program)
    return Target(folder / "made.toml", Contents(name="made", worker=worker))


HELPER = """
import json, pathlib, urllib.request
def put(name, url):
    pathlib.Path(f"{name}.json").write_text(url)
def deliver():
    for path in pathlib.Path().glob("*.json"):
        urllib.request.urlopen(path.read_text(), json.dumps(path.stem).encode()).close()
        path.unlink()
"""


@pytest.mark.campaign
async def test_lines_of_modules_beside_the_script_count_and_what_leaves_our_sight_is_told(tmp_path: Path) -> None:
    target = made(tmp_path, "import subprocess, helper\nsubprocess.run(['true'])\nhelper.deliver()\n")
    async with slot_of(target, tmp_path / "slot") as (commands, runs, _slot):
        told = await runs.first()
        assert told.unseen == ["it starts other programs (true), and none of their lines is struck: try --mode syscalls"]
        found = await runs.listed({**runs.own_modules(), **commands.scripts})
    assert not isinstance(found, str)
    assert {where.partition(":")[0] for lines in found.values() for where in lines.counts} == {"helper.py"}


@pytest.mark.campaign
async def test_a_work_that_ends_the_watch_over_its_lines_is_refused(tmp_path: Path) -> None:
    blind = "import sys, helper\nsys.settrace(None)\nhelper.deliver()\n"
    check = Check(Asked(made(tmp_path, blind), python=sys.executable), Unwritten(), tmp_path / "scratch", Unwritten())
    with pytest.raises(BadInput, match="work sets a trace function of its own"):
        await check.run()


@pytest.mark.campaign
async def test_a_work_whose_lines_nobody_sees_is_refused_whatever_enqueue_shows(tmp_path: Path) -> None:
    hidden = "import sys, os\nsys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))\nimport helper\nhelper.deliver()\n"
    asked = Asked(made(tmp_path, hidden, "-I"), python=sys.executable)
    check = Check(asked, Unwritten(), tmp_path / "scratch", Unwritten())
    with pytest.raises(BadInput, match="no line of a function was executed by work"):
        await check.run()


class Unwritten:
    """Nothing is to come to it."""

    not_played = 0

    def level(self, name: str, total: int) -> None:
        raise AssertionError(name, total)

    def ended(self, line: WorkerCase) -> None:
        raise AssertionError(line)

    def add(self, case: WorkerCase) -> None:
        raise AssertionError(case)

    def folder(self, case: str) -> Path:
        raise AssertionError(case)

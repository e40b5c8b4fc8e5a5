"""`run.py` as a process: what it prints, what it leaves, how it refuses, and how it is interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from scenarios.catalogue import SCENARIOS
from tests.scenarios.endless import Endless
from tests.support import ROOT

RUN = str(ROOT / "run.py")
BOUND_SECONDS = 30.0


def run(
    *arguments: object, cwd: Path = ROOT, command: Sequence[str] = (sys.executable, RUN)
) -> subprocess.CompletedProcess[str]:
    whole = [*command, *(str(each) for each in arguments)]
    return subprocess.run(whole, cwd=cwd, capture_output=True, text=True, timeout=BOUND_SECONDS, check=False)


# Where it is called from. What the whole study leaves: test_evidence.py.


def test_a_relative_out_is_taken_from_the_callers_directory(tmp_path: Path) -> None:
    done = run("--out", "new/run", "--only", "keyed_delivery", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "new" / "run" / "manifest.json").is_file()
    assert {path.name for path in tmp_path.iterdir()} == {"new"}


def test_it_starts_without_the_callers_python_settings(tmp_path: Path) -> None:
    # A module of the caller's that shadows one of ours must not be taken, nor a fault that the caller happens to have armed.
    (tmp_path / "outbox.py").write_text("raise SystemExit('the wrong outbox')")
    environment = {**os.environ, "HALT_AT": "send.before", "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, RUN, "--out", str(tmp_path / "run"), "--only", "key_conflict"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_it_runs_where_nobody_reads_its_output(tmp_path: Path) -> None:
    # A service manager may start it with standard output closed; the children's output has nothing to do with it.
    command = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, RUN, "--out", str(tmp_path / "run"), "--only", "key_conflict"]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=15, check=False)
    assert done.returncode == 0, done.stderr


# Choosing.


def selected(out: Path) -> tuple[list[str], bool]:
    selection = json.loads((out / "manifest.json").read_text())["selection"]
    return selection["scenarios"], selection["complete"]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("--only", "delivery/receiver_*", "delivery/key_c*"), ["receiver_unavailable", "key_conflict"]),
        (("--only", "key_conflict", "--only", "keyed_delivery"), ["keyed_delivery", "key_conflict"]),
        (("--section", "delivery", "--only", "unkeyed*"), ["unkeyed_delivery"]),
    ],
)
def test_only_what_is_chosen_is_run_in_the_order_of_the_catalogue(
    tmp_path: Path, arguments: tuple[str, ...], names: list[str]
) -> None:
    done = run("--out", tmp_path / "run", *arguments)
    assert done.returncode == 0, done.stderr
    assert selected(tmp_path / "run") == ([f"delivery/{name}" for name in names], False)
    assert {path.name for path in (tmp_path / "run/scenarios/delivery").iterdir()} == set(names)


def test_a_whole_section_is_not_the_complete_catalogue(tmp_path: Path) -> None:
    assert run("--out", tmp_path / "run", "--section", "unknown").returncode == 0
    assert selected(tmp_path / "run") == ([each.path for each in SCENARIOS if each.section == "unknown"], False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--only", "no_such"), ("--only 'no_such' matches no scenario", "python run.py list names all")),
        (("--only", "delivery/keyd_delivery"), ("matches no scenario", "did you mean keyed_delivery")),
        (("--only", "keyed_delivery", "no_such"), ("--only 'no_such' matches no scenario",)),
        (("--only", ""), ("--only '' matches no scenario",)),
        (("--section", "no_such"), ("--section no_such: there is no such section", "delivery")),
        (("--jobs", "0"), ("--jobs 0", "positive")),
        (("--jobs", "-1"), ("--jobs -1", "positive")),
        (("--jobs", "x"), ("--jobs", "'x'")),
        (("--spawn", "thread"), ("--spawn", "'thread'", "fork", "exec")),
        (("--nonsense",), ("--nonsense",)),
        (("positional",), ("positional",)),
    ],
)
def test_bad_usage_exits_2_with_what_would_be_right_and_makes_nothing(
    tmp_path: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    done = run("--out", tmp_path / "run", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert [word for word in words if word not in done.stderr] == [], done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("arguments", [(), ("list", "--out", "x"), ("points", "x"), ("explore",), ("--only", "key_conflict")])
def test_a_command_line_without_sense_exits_2(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: run.py" in done.stderr
    assert list(tmp_path.iterdir()) == []


# Where nothing may be written.


def refused(out: Path, *words: str) -> None:
    done = run("--out", out)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert [word for word in (f"run.py: --out {out}: ", *words) if word not in done.stderr] == [], done.stderr


def test_an_existing_directory_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("mine")
    refused(tmp_path, "it exists", "name a new directory")
    assert {path.name for path in tmp_path.iterdir()} == {"kept"}


def test_an_existing_empty_directory_is_refused_too(tmp_path: Path) -> None:
    refused(tmp_path, "it exists")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    refused(file, "it exists")
    assert file.read_text() == "mine"


def test_a_dangling_link_is_refused_and_not_followed(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    refused(link, "it exists")
    assert link.is_symlink()
    assert not (tmp_path / "target").exists()


def test_a_place_below_a_file_is_refused_as_what_it_is(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    done = run("--out", file / "run")
    assert (done.returncode, done.stdout) == (2, "")
    # The directory asked for does not exist: its parent is no directory, and "name a new directory" would lead nowhere.
    assert "it exists" not in done.stderr, done.stderr
    assert file.read_text() == "mine"


def test_a_place_where_nobody_may_write_is_refused() -> None:
    refused(Path("/proc/halt23"), "it cannot be created")


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    refused(tmp_path / ("x" * 300), "it cannot be created: File name too long")


# A full disk.

FULL = """
set -eu
mount -t tmpfs -o size=$1 none "$2"
shift 2
code=0
"$@" || code=$?
out=$(find "$PLACE" -name manifest.json)
echo "code=$code manifests=[$out]"
"""


def may_mount() -> bool:
    try:
        command = ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"]
        return subprocess.run(command, capture_output=True, timeout=BOUND_SECONDS, check=False).returncode == 0
    except FileNotFoundError:
        return False


# What is the first to find no room: a journal, a clock, an export. (On a disk that is full from the beginning the clients of
# `concurrent` wait ten seconds for each other, so the first of these does without it.)
@pytest.mark.parametrize(
    ("size", "sections"),
    [("60k", ("delivery", "identity")), ("140k", ()), ("172k", ()), ("172k", ("dispatch",))],
)
def test_a_full_disk_ends_the_run_as_incomplete_with_a_sentence(tmp_path: Path, size: str, sections: tuple[str, ...]) -> None:
    if not may_mount():
        pytest.skip("needs `unshare -m` and mount (root, or CAP_SYS_ADMIN) for a small file system of its own")
    mounted = tmp_path / "small"
    mounted.mkdir()
    inner = ["sh", "-c", FULL, "sh", size, str(mounted), sys.executable, RUN, "--out", str(mounted / "run"), "--jobs", "1"]
    inner += ["--section", *sections] if sections else []
    environment = {**os.environ, "PLACE": str(mounted)}
    done = subprocess.run(
        ["unshare", "-m", *inner], env=environment, capture_output=True, text=True, timeout=BOUND_SECONDS, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stdout.splitlines()[-1:] == ["code=3 manifests=[]"], done.stdout + done.stderr
    assert "the run is incomplete" in done.stderr
    assert "No space left on device" in done.stderr
    assert processes_below(mounted) == []


def processes_below(directory: Path) -> list[psutil.Process]:
    """Processes that work in `directory` or have it on their command line."""
    found = []
    for process in psutil.process_iter():
        try:
            if str(directory) in process.cwd() or any(str(directory) in each for each in process.cmdline()):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found


# Commands that only print.


def test_list_shows_every_scenario_with_its_counts() -> None:
    done = run("list")
    assert (done.returncode, done.stderr) == (0, "")
    for scenario in SCENARIOS:
        assert scenario.path in done.stdout
        assert scenario.shows in done.stdout
    assert done.stdout.count("(counterexample)") == sum(each.counterexample for each in SCENARIOS)
    assert "effects 2  receipts 1  history 1  arrivals 2" in done.stdout


def test_list_for_machines_is_the_protocol_that_the_manifest_holds(tmp_path: Path) -> None:
    listed = json.loads(run("list", "--json").stdout)
    assert run("--out", tmp_path / "run", "--only", "key_conflict").returncode == 0
    protocol = json.loads((tmp_path / "run/manifest.json").read_text())["protocol"]
    assert [each for each in listed["scenarios"] if each["name"] == "key_conflict"] == protocol["scenarios"]
    assert [f"{each['section']}/{each['name']}" for each in listed["scenarios"]] == [
        each["scenario"] for each in protocol["catalogue"]
    ]
    assert listed["protocol"] == {"version": protocol["version"], "sha256": protocol["sha256"]}


def test_points_shows_every_point_of_the_programs_and_who_fires_it() -> None:
    machine = json.loads(run("points", "--json").stdout)
    names = [each["point"] for each in machine]
    assert len(set(names)) == len(names)
    assert {"receipt.append.torn", "send.response", "arrival.append.before", "effects.repair.synced"} <= set(names)
    fired = {each["point"]: each["scenarios"] for each in machine if each["scenarios"]}
    assert fired.keys() == set(names)
    crashing = ["delivery/keyed_delivery", "delivery/unkeyed_delivery", "delivery/keyed_receiver_restart"]
    assert fired["send.response"][:3] == crashing
    assert all(each["meaning"] for each in machine)
    human = run("points").stdout.splitlines()
    modes = [line.split()[1] for line in human if line.startswith("mode ")]
    assert [line.split()[0] for line in human] == [*names, *["mode"] * len(modes)]
    assert {"points", "syscalls"} <= set(modes)


# Interrupted.


@pytest.mark.parametrize(
    ("number", "spawn"),
    [(signal.SIGINT, "fork"), (signal.SIGINT, "exec"), (signal.SIGTERM, "fork"), (signal.SIGHUP, "fork")],
)
def test_a_stopping_signal_ends_the_run_in_order(tmp_path: Path, number: signal.Signals, spawn: str) -> None:
    endless = Endless(tmp_path, spawn)
    code, stdout, stderr = endless.end(number)
    assert (code, stdout) == (3, "")
    assert stderr.startswith(f"run.py: stopped by {number.name}: {endless.out} holds an incomplete run without a manifest")
    assert len(stderr.splitlines()) == 1, stderr
    endless.assert_nothing_is_left()


@pytest.mark.parametrize("spawn", ["fork", "exec"])
def test_a_killed_run_leaves_no_process_and_no_manifest(tmp_path: Path, spawn: str) -> None:
    endless = Endless(tmp_path, spawn)
    assert endless.end(signal.SIGKILL)[0] == -signal.SIGKILL
    endless.assert_nothing_is_left()


def test_a_second_ctrl_c_does_no_harm(tmp_path: Path) -> None:
    endless = Endless(tmp_path, "fork")
    endless.harness.send_signal(signal.SIGINT)
    code, stdout, stderr = endless.end(signal.SIGINT)
    assert (code, stdout) == (3, "")
    assert "Traceback" not in stderr
    endless.assert_nothing_is_left()


def test_a_hang_up_that_the_caller_ignores_stays_ignored(tmp_path: Path) -> None:
    # `nohup python run.py …` is to go on when the terminal is gone.
    endless = Endless(tmp_path, "fork", "nohup")
    status = Path(f"/proc/{endless.harness.pid}/status").read_text()
    ignored = int(re.findall(r"^SigIgn:\s*([0-9a-f]+)$", status, re.MULTILINE)[0], 16)
    assert endless.end(signal.SIGTERM)[0] == 3
    endless.assert_nothing_is_left()
    assert ignored & 1 << (signal.SIGHUP - 1)

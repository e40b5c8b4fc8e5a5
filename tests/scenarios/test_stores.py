"""`run.py --store`: what is refused before anything is made, what a run on PostgreSQL leaves, and that no server is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil
import pytest

from scenarios.catalogue import SCENARIOS
from scenarios.engine import postgres
from scenarios.model import POSTGRES, SQLITE
from scenarios.selection import runnable
from tests.scenarios.endless import Endless
from tests.scenarios.test_run import may_mount
from tests.support import ROOT

BOUND_SECONDS = 60.0
needs_postgres = pytest.mark.skipif(postgres.programs() is None, reason=postgres.MISSING)
# One that both stores can run, one that only PostgreSQL can.
CHOSEN = ("late_outcome_is_fenced", "server_dies_in_outcome")


def run(
    *arguments: object, before: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [*before, sys.executable, str(ROOT / "run.py"), *(str(each) for each in arguments)]
    return subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=BOUND_SECONDS, check=False
    )


def refused(out: Path, done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert (done.returncode, done.stdout) == (2, ""), done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert [word for word in ("run.py: ", *words) if word not in done.stderr] == [], done.stderr
    assert not out.exists()


# Refused.


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--only", "server_dies_in_claim"), ("dispatch/server_dies_in_claim needs --store postgres",)),
        (("--store", "postgres", "--only", "disk_full_at_claim"), ("dispatch/disk_full_at_claim needs --store sqlite",)),
    ],
)
def test_what_no_chosen_scenario_can_run_on_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    out = tmp_path / "run"
    refused(out, run("--out", out, *arguments), *words)


def test_a_store_that_does_not_exist_is_refused_with_those_that_do(tmp_path: Path) -> None:
    done = run("--out", tmp_path / "run", "--store", "mysql")
    assert (done.returncode, done.stdout) == (2, "")
    assert [word for word in ("--store", "'mysql'", "sqlite", "postgres") if word not in done.stderr] == []
    assert list(tmp_path.iterdir()) == []


def test_without_postgresql_s_programs_it_is_said_what_to_install(tmp_path: Path) -> None:
    if not may_mount():
        pytest.skip("needs `unshare -m` and mount (root, or CAP_SYS_ADMIN) to hide the programs")
    hide = 'if [ -d /usr/lib/postgresql ]; then mount -t tmpfs none /usr/lib/postgresql; fi; exec "$@"'
    out = tmp_path / "run"
    before = ("unshare", "-m", "sh", "-c", hide, "sh", "/usr/bin/env", "PATH=/nowhere")
    done = run("--out", out, "--store", "postgres", "--only", "retry_succeeds", before=before)
    refused(out, done, "--store postgres: PostgreSQL's server is not installed", "apt-get install postgresql")


def test_without_the_driver_it_is_said_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "psycopg.py").write_text("raise ModuleNotFoundError(\"No module named 'psycopg'\", name='psycopg')\n")
    out = tmp_path / "run"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = run("--out", out, "--store", "postgres", "--only", "retry_succeeds", environment=environment)
    refused(out, done, "--store postgres: psycopg is not installed", "install halt23[postgres]")


@needs_postgres
def test_a_directory_that_exists_is_refused_on_every_store_and_no_server_is_started(tmp_path: Path) -> None:
    done = run("--out", tmp_path, "--store", "postgres", "--only", "retry_succeeds")
    assert (done.returncode, done.stdout) == (2, "")
    assert "it exists" in done.stderr
    assert list(tmp_path.iterdir()) == []


# A run on PostgreSQL.


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two scenarios on PostgreSQL, one of them on SQLite as well."""
    if postgres.programs() is None:
        pytest.skip(postgres.MISSING)
    made = tmp_path_factory.mktemp("stores")
    for store, chosen in ((POSTGRES, CHOSEN), (SQLITE, CHOSEN[:1])):
        done = run("--out", made / store, "--store", store, "--only", *chosen)
        assert done.returncode == 0, done.stderr
    return made / POSTGRES, made / SQLITE


def test_a_run_says_which_store_it_had(archives: tuple[Path, Path]) -> None:
    said = [json.loads((each / "manifest.json").read_text())["selection"] for each in archives]
    assert [(each["store"], each["complete"], len(each["scenarios"])) for each in said] == [
        (POSTGRES, False, len(CHOSEN)),
        (SQLITE, False, 1),
    ]


def test_both_stores_hold_the_same_rows_to_the_last_byte(archives: tuple[Path, Path]) -> None:
    first, second = (each / "scenarios" / "dispatch" / CHOSEN[0] for each in archives)
    names = [path.relative_to(first).as_posix() for path in sorted(first.rglob("*")) if path.is_file()]
    assert "exports/end.json" in names
    assert names == [path.relative_to(second).as_posix() for path in sorted(second.rglob("*")) if path.is_file()]
    assert [name for name in names if (first / name).read_bytes() != (second / name).read_bytes()] == []


def test_the_address_of_a_server_is_in_no_file_but_where_it_is_volatile(archives: tuple[Path, Path]) -> None:
    records = json.loads((archives[0] / "processes.json").read_text())["processes"]
    (address,) = {
        each["substitutions"]["db"].rpartition("/")[0]
        for each in records
        if CHOSEN[0] in each["scenario"] and "db" in each["substitutions"]
    }
    assert address.startswith("postgresql://postgres@127.0.0.1:")
    holding = [path.name for path in archives[0].rglob("*") if path.is_file() and address.encode() in path.read_bytes()]
    assert set(holding) <= {"processes.json", "report.html"}


def test_the_scheduler_whose_server_is_killed_ends_with_16_and_says_nothing_that_varies(archives: tuple[Path, Path]) -> None:
    records = json.loads((archives[0] / "processes.json").read_text())["processes"]
    (killed,) = [each for each in records if each["exit_code"] not in (0, 23)]
    assert (killed["scenario"], killed["process"], killed["exit_code"]) == (f"dispatch/{CHOSEN[1]}", "scheduler", 16)
    assert "postgresql://" not in killed["stderr"]


def test_no_server_is_left_of_a_run(archives: tuple[Path, Path]) -> None:
    records = json.loads((archives[0] / "processes.json").read_text())["processes"]
    ports = {each["substitutions"]["db"].split(":")[-1].split("/")[0] for each in records if "db" in each["substitutions"]}
    assert len(ports) == 2  # the shared one, and that of the scenario that kills its own
    assert servers(ports) == []


def servers(ports: set[str]) -> list[psutil.Process]:
    """The processes of PostgreSQL on these ports."""
    return [each for each in psutil.process_iter() if set(told(each)) & {f"port={port}" for port in ports}]


def told(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return []


@needs_postgres
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 3), (signal.SIGKILL, -signal.SIGKILL)])
def test_an_interrupted_run_leaves_no_server_and_no_data(tmp_path: Path, number: signal.Signals, code: int) -> None:
    endless = Endless(tmp_path, "fork", options=("--store", "postgres"))
    server = next(each for each in endless.processes if "-D" in told(each))
    data = Path(told(server)[told(server).index("-D") + 1])
    watcher = next(each for each in endless.processes if str(data.parent) in told(each))
    assert (data / "PG_VERSION").is_file()
    assert endless.end(number)[0] == code
    endless.assert_nothing_is_left()
    # Who tidies up after a killed run is the last to end.
    assert psutil.wait_procs([server, watcher], BOUND_SECONDS)[1] == []
    assert not data.parent.exists()


@needs_postgres
def test_a_run_that_is_killed_while_its_server_is_being_made_leaves_no_data(tmp_path: Path) -> None:
    # The server runs as another user, who has to reach the folder.
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        command = [sys.executable, str(ROOT / "run.py"), "--out", str(tmp_path / "run"), "--store", "postgres"]
        with subprocess.Popen(
            [*command, "--only", "retry_succeeds"], env={**os.environ, "TMPDIR": place}, stderr=subprocess.DEVNULL
        ) as started:
            harness = psutil.Process(started.pid)
            until = time.monotonic() + BOUND_SECONDS
            while not any("initdb" in "".join(told(each)[:1]) for each in harness.children()) and time.monotonic() < until:
                pass
            processes = harness.children(recursive=True)
            assert processes, "it ended before it made a server"
            started.kill()
        assert psutil.wait_procs(processes, BOUND_SECONDS)[1] == []
        assert os.listdir(place) == []


# The catalogue.


def test_each_store_runs_all_but_what_names_another() -> None:
    only = {store: {each.name for each in SCENARIOS if each.store == store} for store in (SQLITE, POSTGRES)}
    assert only == {
        SQLITE: {"disk_full_at_enqueue", "disk_full_at_claim", "disk_full_at_outcome"},
        POSTGRES: {
            *("server_dies_in_claim", "server_dies_after_claim", "server_dies_in_outcome"),
            *("key_is_taken_meanwhile", "scan_meets_an_open_claim", "ack_meets_an_open_outcome"),
        },
    }
    counted = {store: [each.section for each in runnable(SCENARIOS, store)].count("dispatch") for store in (SQLITE, POSTGRES)}
    assert counted == {SQLITE: 69, POSTGRES: 72}

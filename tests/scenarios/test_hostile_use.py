"""What a hostile or unlucky user does: closed and full outputs, special files, hosts hidden in routes, early stops."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support import ROOT, ProcessBox

BOUND_SECONDS = 60
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here: run on Linux")


def shell(script: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `script` with PYTHON and the checkout in its environment; "$1" and so on are the arguments."""
    command = ["bash", "-c", script, "bash", *(str(each) for each in arguments)]
    values = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=BOUND_SECONDS, check=False, env=values)


def produce(outbox: Path) -> None:
    done = shell('"$PYTHON" -m outbox.producer --dir "$1" --key k --body "{}"', outbox)
    assert done.returncode == 0, done.stderr


@needs_full
@pytest.mark.parametrize("redirection", [">/dev/full", ">&-", "| true"])
def test_a_persisted_intention_is_a_success_whoever_reads_of_it(tmp_path: Path, redirection: str) -> None:
    script = f'set -o pipefail; "$PYTHON" -m outbox.producer --dir "$1" --key k --body "{{}}" {redirection}'
    done = shell(script, tmp_path / "outbox")
    assert (done.returncode, done.stderr) == (0, "")
    assert len((tmp_path / "outbox" / "intentions.jsonl").read_text().splitlines()) == 1


@needs_full
@pytest.mark.parametrize("redirection", [">/dev/full", ">&-", "2>/dev/full", "2>&-", ">/dev/full 2>/dev/full"])
def test_a_dispatchers_exit_code_does_not_depend_on_who_reads(tmp_path: Path, redirection: str) -> None:
    produce(tmp_path / "outbox")
    script = f'"$PYTHON" -m outbox.dispatcher --dir "$1" --receiver http://127.0.0.1:1 {redirection}'
    done = shell(script, tmp_path / "outbox")
    assert (done.returncode, "Traceback" in done.stderr) == (10, False)


def test_a_body_from_a_closed_standard_input_is_bad_input(tmp_path: Path) -> None:
    done = shell('"$PYTHON" -m outbox.producer --dir "$1" --key k --body-file - <&-', tmp_path / "outbox")
    assert (done.returncode, done.stderr) == (2, "producer: --body-file -: standard input is closed\n")


@needs_full
@pytest.mark.parametrize("program", ['receivers keyed --dir "$1"', 'scenarios.relay --dir "$1" --upstream http://127.0.0.1:1'])
@pytest.mark.parametrize("redirection", [">/dev/full", ">&-"])
def test_a_server_that_cannot_tell_its_port_does_not_serve(tmp_path: Path, program: str, redirection: str) -> None:
    done = shell(f'"$PYTHON" -m {program} {redirection}', tmp_path / "served")
    assert done.returncode == 16
    assert "standard output cannot be written" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("route", ["@127.0.0.1:9/operations", "x y", "//host/x", "relative", "/a\nb"])
def test_a_clients_route_cannot_name_another_host(tmp_path: Path, route: str) -> None:
    script = '"$PYTHON" -m scenarios.client --dir "$1" --receiver http://127.0.0.1:9 --key k --body x --route "$2"'
    done = shell(script, tmp_path / "client", route)
    assert done.returncode == 2
    assert "client: route" in done.stderr
    assert not (tmp_path / "client").exists()


@pytest.mark.parametrize("directory", [".", "/"])
def test_a_client_without_a_name_writes_nothing(tmp_path: Path, directory: str) -> None:
    script = 'cd "$1" && "$PYTHON" -m scenarios.client --dir "$2" --receiver http://127.0.0.1:9 --key k --body x'
    done = shell(script, tmp_path, directory)
    assert done.returncode == 2
    assert "this has none" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_address_with_an_impossible_octet_leaves_nothing_in_doubt(tmp_path: Path) -> None:
    produce(tmp_path / "outbox")
    done = shell('"$PYTHON" -m outbox.dispatcher --dir "$1" --receiver http://127.999.0.1:80', tmp_path / "outbox")
    assert done.returncode == 2
    assert not (tmp_path / "outbox" / "attempts.jsonl").exists()


@pytest.mark.parametrize("name", ["intentions.jsonl", "attempts.jsonl", "receipts.jsonl", "dispatcher.lock"])
def test_a_fifo_in_the_place_of_an_outboxs_file_is_refused_at_once(tmp_path: Path, name: str) -> None:
    outbox = tmp_path / "outbox"
    produce(outbox)
    (outbox / name).unlink(missing_ok=True)
    os.mkfifo(outbox / name)
    done = shell('"$PYTHON" -m outbox.dispatcher --dir "$1" --receiver http://127.0.0.1:1', outbox)
    assert done.returncode == 16
    assert "not a regular file" in done.stderr


@pytest.mark.parametrize("name", ["effects.jsonl", "arrivals.jsonl"])
def test_a_fifo_in_the_place_of_a_receivers_journal_is_refused_at_once(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    done = shell('"$PYTHON" -m receivers keyed --dir "$1"', tmp_path)
    assert (done.returncode, "not a regular file" in done.stderr) == (16, True)


def test_a_clock_that_never_ends_is_no_clock(tmp_path: Path) -> None:
    done = shell('"$PYTHON" -m receivers forgetful --dir "$1" --clock /dev/zero', tmp_path / "receiver")
    assert done.returncode == 2
    assert "needs --clock FILE" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_at_the_very_first_moment_is_told_in_a_line(tmp_path: Path, number: signal.Signals) -> None:
    # The signal comes from a module that run.py imports, so it always comes while the imports are under way.
    (tmp_path / "argparse.py").write_text(f"import os, time\nos.kill(os.getpid(), {int(number)})\ntime.sleep(60)\n")
    command = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.argv = ['run.py', '--out', {str(tmp_path / 'run')!r}]; "
    command += f"import runpy; runpy.run_path({str(ROOT / 'run.py')!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, timeout=BOUND_SECONDS, check=False)
    assert (done.returncode, done.stderr) == (3, f"run.py: stopped by {number.name} before anything was started\n")
    assert not (tmp_path / "run").exists()


def test_a_run_that_ends_before_its_first_scenario_is_an_interrupted_run(tmp_path: Path) -> None:
    done = shell('ulimit -n 8; "$PYTHON" "$2/run.py" --out "$1"', tmp_path / "run", ROOT)
    assert done.returncode == 3
    assert "ulimit -n" in done.stderr
    audited = shell('"$PYTHON" "$2/audit/audit.py" "$1" --json', tmp_path / "run", ROOT)
    assert (audited.returncode, json.loads(audited.stdout)["verdict"]) == (3, "UNKNOWN")


def test_ctrl_c_at_a_waiting_dispatcher_is_a_line_and_the_signal(tmp_path: Path) -> None:
    produce(tmp_path / "outbox")
    armed: Mapping[str, str] = {"PAUSE_AT": "effect.append.before#1"}
    with ProcessBox() as box:
        receiver = box.start("receivers", ["keyed", "--dir", str(tmp_path / "receiver")], armed)
        waiting = box.launch("outbox.dispatcher", ["--dir", str(tmp_path / "outbox"), "--receiver", receiver.url])
        assert box.do(receiver._child.wait_stopped(BOUND_SECONDS))
        waiting.send(signal.SIGINT)
        ended = waiting.wait()
    assert (ended.exit_code, ended.signal) == (None, "SIGINT")
    assert ended.stderr == "dispatcher: interrupted\n"

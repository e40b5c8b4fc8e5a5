"""Starting and stopping a receiver: what it refuses, what it says, and what it finishes."""

from __future__ import annotations

import select
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from scenarios.engine.ports import Ports
from tests.receivers.conftest import Open
from tests.receivers.http import connect, head, is_complete, read_response, records, result
from tests.support import ROOT, Ended, ProcessBox

KINDS = ("keyed", "unkeyed")


def refused(box: ProcessBox, *arguments: str) -> Ended:
    """Start a receiver that must refuse: no READY line, one line on standard error."""
    ended = box.run("receivers", arguments)
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    return ended


@pytest.mark.parametrize("arguments", [("nokind", "--dir", "x"), ("keyed",), (), ("keyed", "--dir", "x", "--port", "http")])
def test_a_bad_command_line_exits_2(box: ProcessBox, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    ended = box.run("receivers", arguments, directory=tmp_path)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "usage: python -m receivers" in ended.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("port", ["-1", "65536"])
def test_a_port_that_is_none_exits_2(box: ProcessBox, tmp_path: Path, port: str) -> None:
    ended = refused(box, "keyed", "--dir", str(tmp_path / "r"), "--port", port)
    assert (ended.exit_code, ended.stderr) == (2, f"receiver: --port {port}: expected 0 to 65535\n")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_fault_point_exits_2(box: ProcessBox, tmp_path: Path) -> None:
    ended = box.run("receivers", ("keyed", "--dir", str(tmp_path / "r")), {"HALT_AT": "effect.append.befor"})
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "no fault point 'effect.append.befor'" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_port_in_use_exits_16_and_says_so(box: ProcessBox, tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        ended = refused(box, "keyed", "--dir", str(tmp_path / "r"), "--port", str(port))
    assert ended.exit_code == 16
    assert f"port {port} on 127.0.0.1 cannot be had: Address already in use" in ended.stderr


def test_a_directory_that_is_a_file_exits_16_and_leaves_the_file(box: ProcessBox, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for path in (file, file / "below"):
        ended = refused(box, "keyed", "--dir", str(path))
        assert ended.exit_code == 16
        assert f"receiver: {path}: cannot be created: " in ended.stderr
    assert file.read_text() == "mine"


def test_a_directory_where_nobody_may_write_exits_16(box: ProcessBox) -> None:
    ended = refused(box, "keyed", "--dir", "/proc/halt23")
    assert ended.exit_code == 16
    assert "receiver: /proc/halt23: cannot be created: " in ended.stderr


@pytest.mark.parametrize("name", ["effects", "arrivals"])
def test_a_journal_that_is_a_directory_exits_16(box: ProcessBox, tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.jsonl").mkdir()
    ended = refused(box, "keyed", "--dir", str(tmp_path))
    assert ended.exit_code == 16
    assert f"{name}.jsonl: cannot be opened: Is a directory" in ended.stderr


def test_a_second_receiver_on_the_directory_exits_13_and_disturbs_nothing(box: ProcessBox, receiver: Open) -> None:
    first = receiver()
    assert first.post(b"{}", "k").status == 200
    ended = refused(box, "keyed", "--dir", str(first.directory))
    assert ended.exit_code == 13
    assert "another process holds its lock" in ended.stderr
    assert first.post(b"{}", "k").replayed == "true"


@pytest.mark.parametrize("name", ["effects", "arrivals"])
def test_a_damaged_journal_exits_14_with_the_line_and_stays_as_it_is(box: ProcessBox, receiver: Open, name: str) -> None:
    first = receiver()
    for key in ("a", "b", "c"):
        assert first.post(b"{}", key).status == 200
    first.process.stop()
    path = first.directory / f"{name}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"fingerprint", b"fingerprinT").replace(b'"outcome"', b'"outcomE"')
    damaged = b"".join(lines)
    path.write_bytes(damaged)
    before = path.stat().st_mtime_ns
    ended = refused(box, "keyed", "--dir", str(first.directory))
    assert ended.exit_code == 14
    assert f"{path}, line 2: its checksum is" in ended.stderr
    assert path.read_bytes() == damaged
    assert path.stat().st_mtime_ns == before


def test_a_refused_receiver_gives_its_port_back(box: ProcessBox, receiver: Open, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with closing(Ports()) as ports:
        port = ports.of("receiver")
        assert refused(box, "keyed", "--dir", str(tmp_path / "file"), "--port", str(port)).exit_code == 16
        assert receiver(port=port).port == port


@pytest.mark.parametrize("kind", KINDS)
def test_it_says_ready_once_with_its_port_and_listens_on_loopback_only(box: ProcessBox, tmp_path: Path, kind: str) -> None:
    running = box.start("receivers", (kind, "--dir", str(tmp_path / "deep" / "r")))
    connections = psutil.Process(running.pid).net_connections("all")
    listening = [each.laddr for each in connections if each.status == psutil.CONN_LISTEN]
    assert listening == [("127.0.0.1", running.port)]
    assert running.port > 1024
    ended = running.stop()
    assert (ended.exit_code, ended.signal, ended.stdout, ended.stderr) == (0, None, "", "")  # READY stood there once


def test_ready_is_one_line_of_the_declared_form(tmp_path: Path) -> None:
    # Bytes, not as the harness reads them: this line is an interface.
    command = [sys.executable, "-m", "receivers", "keyed", "--dir", str(tmp_path / "r")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], 20)[0]
            line = process.stdout.readline()
            listening = [each.laddr for each in psutil.Process(process.pid).net_connections("tcp")]
            process.terminate()
            rest, complaints = process.communicate(timeout=20)
        finally:
            process.kill()
    assert line == b"READY 127.0.0.1:%d\n" % listening[0].port
    assert (rest, complaints, process.returncode) == (b"", b"", 0)


def test_it_can_be_stopped_by_sigint_as_well(receiver: Open) -> None:
    running = receiver().process
    running.send(signal.SIGINT)
    ended = running.wait()
    assert (ended.exit_code, ended.stderr) == (0, "")


def test_sigterm_lets_the_request_in_progress_finish_and_takes_no_new_one(receiver: Open) -> None:
    running = receiver()
    headers = [("Idempotency-Key", "k"), ("Content-Length", "6"), ("Expect", "100-continue")]
    with closing(connect(running.port)) as connection:
        connection.sendall(head("POST", "/operations", headers))
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"  # now it is being served
        connection.sendall(b"abc")
        running.process.send(signal.SIGTERM)
        # A connection that waited to be accepted when the socket was closed is reset, a later one refused.
        with pytest.raises((ConnectionRefusedError, ConnectionResetError)):
            while True:  # ends when the receiver has closed its listening socket, which is what SIGTERM does first
                connect(running.port).close()
        connection.sendall(b"def")
        response = read_response(connection)
    assert (response.status, response.body) == (200, result(1))
    ended = running.process.wait()
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert running.answers() == [("applied", None, 200)]
    assert len(records(running.directory, "effects")) == 1


def test_an_idle_connection_does_not_hold_up_the_stop(receiver: Open) -> None:
    running = receiver()
    with closing(connect(running.port)) as connection:
        connection.sendall(head("GET", "/effects", []))
        assert read_response(connection, "GET").status == 200
        assert running.process.stop().exit_code == 0
        assert connection.recv(1) == b""


def test_the_port_of_a_killed_receiver_is_refused_while_the_harness_keeps_it_and_serves_again(receiver: Open) -> None:
    with closing(Ports()) as ports:
        port = ports.of("receiver")
        first = receiver(port=port)
        assert first.post(b"{}", "k").status == 200
        with closing(connect(port)):  # a connection that is left behind must not keep the port
            first.process.kill()
            with pytest.raises(ConnectionRefusedError):
                connect(port)
        second = receiver(port=port)
        assert second.post(b"{}", "k").replayed == "true"


def test_a_fresh_receiver_leaves_two_empty_journals(receiver: Open) -> None:
    running = receiver()
    assert running.effects() == {"effects": [], "count": 0}
    running.process.stop()
    assert {path.name: path.read_bytes() for path in running.directory.iterdir()} == {
        "effects.jsonl": b"",
        "arrivals.jsonl": b"",
    }
    assert is_complete(running.directory, "effects")

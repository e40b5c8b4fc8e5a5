"""A run of a study whose only scenario never ends, for tests that interrupt it."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

from tests.scenarios.watch import Watch
from tests.support import BOUND_SECONDS, ROOT


def _hear_hang_ups() -> None:
    """In the new process: tests that were themselves started by nohup, or by a shell that has no terminal any more, hand on
    that hang-ups are ignored."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Endless:
    """A study whose only scenario never ends, in a process of its own."""

    def __init__(self, directory: Path, spawn: str, *before: str, options: Sequence[str] = ()) -> None:
        self.out = directory / "run"
        self._has_server = "postgres" in options
        fifo = directory / "run.entered"
        os.mkfifo(fifo)
        reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        command = [*before, sys.executable, "-m", "tests.scenarios.harness", "study", spawn, str(self.out), *options]
        self.harness = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_hear_hang_ups,  # noqa: PLW1509 - it takes no lock
        )
        try:
            if not select.select([reading], [], [], BOUND_SECONDS)[0]:
                self.harness.kill()
                raise AssertionError(f"the endless scenario was not reached: {self.harness.communicate()}")
        finally:
            os.close(reading)
        self.processes = processes = psutil.Process(self.harness.pid).children(recursive=True)
        self._watch = Watch(each.pid for each in processes)
        self.port = next(
            each.laddr.port
            for process in processes
            for each in process.net_connections("tcp")
            if process.name() != "postgres" and each.status == psutil.CONN_LISTEN
        )

    def end(self, number: signal.Signals) -> tuple[int, str, str]:
        """Send the signal; returns the exit code and what was said."""
        self.harness.send_signal(number)
        try:
            stdout, stderr = self.harness.communicate(timeout=BOUND_SECONDS)
        except subprocess.TimeoutExpired:
            self.harness.kill()
            raise AssertionError(f"{number.name} did not end the run: {self.harness.communicate()}") from None
        return self.harness.returncode, stdout, stderr

    def assert_nothing_is_left(self) -> None:
        """No process is alive, the receiver's port is free, and there is no manifest."""
        # Spawner, receiver, the daemon's parent, the daemon, the endless program; a server has processes of its own.
        assert len(self._watch) > 5 if self._has_server else len(self._watch) == 5
        self._watch.assert_all_end()
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", self.port))
            other.listen()
        assert self.out.is_dir()
        assert not (self.out / "manifest.json").exists()
        assert not (self.out / "results.json").exists()

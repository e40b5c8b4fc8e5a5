"""The private PostgreSQL server of the tests ends with whoever started it, however that ends."""

import signal
import subprocess
import sys

import psutil
import pytest

from scenarios.engine import postgres
from tests.support import ROOT

SCRIPT = """
import signal
from scenarios.engine.postgres import PostgresServer
with PostgresServer() as server:
    print(server._process.pid, server._directory, flush=True)
    signal.pause()
"""


def test_a_server_does_not_outlive_a_killed_test() -> None:
    if postgres.programs() is None:
        pytest.skip(postgres.MISSING)
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True, cwd=ROOT) as starter:
        assert starter.stdout is not None
        pid, directory = starter.stdout.readline().split()
        server = psutil.Process(int(pid))
        starter.send_signal(signal.SIGKILL)
    _gone, alive = psutil.wait_procs([server], 30)
    assert alive == []
    assert directory.rpartition("/")[2].startswith("halt23-postgres-")

"""A private Redis server for targets that need one: its own folder and loopback port, every write synced, gone afterwards.

with RedisServer() as server:
    url = server.new_database()
"""

import os
import select
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from outbox.errors import BadInput
from scenarios.engine.guard import Guard
from scenarios.errors import EvidenceIncomplete

PROGRAM = "redis-server"
MISSING = "Redis is not installed: apt-get install redis-server (or put redis-server on PATH)"
BOUND_SECONDS = 30.0
_READY = b"eady to accept connections"  # with a capital letter, or not: that depends on the version
_DATABASES = 1 << 16


class RedisServer:
    """One server with 65,535 databases, each given once."""

    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="halt23-redis-"))
        self._databases = 0
        self.port = 0

    def __enter__(self) -> Self:
        program = shutil.which(PROGRAM)
        if program is None:
            raise BadInput(MISSING)
        self._guard = Guard(self._directory)
        with socket.socket() as holder:
            # Held, and never listened to, until the server has it: nobody else can be given it.
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.bind(("127.0.0.1", 0))
            self.port = int(holder.getsockname()[1])
            self._start(program)
        return self

    def _start(self, program: str) -> None:
        settings = {
            "bind": "127.0.0.1",
            "port": str(self.port),
            "dir": str(self._directory),
            "databases": str(_DATABASES),
            "save": "",
            "appendonly": "yes",
            "appendfsync": "always",
        }
        arguments = [part for name, value in settings.items() for part in (f"--{name}", value)]
        with (self._directory / "log").open("wb") as log:
            # Its words go through a pipe, which says when it is ready; it says little afterwards, and none of it in a hurry.
            self._process = subprocess.Popen(
                [program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._directory,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        said, deadline = b"", time.monotonic() + BOUND_SECONDS
        while _READY not in said:
            readable, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            more = os.read(self._process.stdout.fileno(), 65536) if readable else b""
            if not more:
                self.__exit__(None, None, None)
                words = said.decode(errors="replace").strip()[-2000:] or "nothing"
                raise EvidenceIncomplete(f"{program} did not become ready; it said: {words}")
            said += more

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait(BOUND_SECONDS)
        if self._process.stdout is not None:
            self._process.stdout.close()
        shutil.rmtree(self._directory)
        self._guard.dismiss(BOUND_SECONDS)

    def new_database(self) -> str:
        """The URL of a database that is empty. Raises BadInput when there is none left."""
        self._databases += 1
        if self._databases >= _DATABASES:
            raise BadInput(f"a Redis server has {_DATABASES - 1} databases here, and all were used; take a smaller --budget")
        return f"redis://127.0.0.1:{self.port}/{self._databases}"

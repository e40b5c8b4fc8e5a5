"""A private PostgreSQL server, for scenarios and tests: its own data and loopback port, killed at will, gone afterwards.

    with PostgresServer() as server:
        url = server.new_database()
        server.kill(); server.start()

The server's programs are looked for in Debian's folders and on PATH. It refuses to run as root, so root starts it as the user
`postgres` or `nobody`. `fsync` is off unless asked for: a killed server loses nothing by that, only a machine without power
does.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import psycopg

from outbox.errors import BadInput
from scenarios.engine.guard import Guard
from scenarios.errors import EvidenceIncomplete

BOUND_SECONDS = 60.0
# A database of its own for each test is ten times as fast there as on a disk.
_IN_MEMORY = "/dev/shm"  # noqa: S108 - a fresh folder in it, as in any other for temporary files
READY = b"ready to accept connections"
# What the server says is read, so it must say it in English, whoever runs this.
_ENVIRONMENT = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
_ADVICE = "Make room, see to it that the server's user may enter the folder (TMPDIR), then run again into a new directory"
MISSING = "PostgreSQL's server is not installed: apt-get install postgresql (or put initdb and postgres on PATH)"


# Reads what the server says, which would otherwise be ended by its next line; and ends it when we have gone without a word.
_WATCH = """
import os, select, shutil, signal, sys
alive, server, directory = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
watched, orphaned = [0, alive], False
while 0 in watched:
    ready = select.select(watched, [], [])[0]
    if 0 in ready and not os.read(0, 65536):
        watched.remove(0)
    elif alive in ready:
        watched.remove(alive)
        orphaned = True
        os.kill(server, signal.SIGQUIT)
if orphaned:
    shutil.rmtree(directory, ignore_errors=True)
"""


@functools.cache
def programs() -> Path | None:
    """The folder that holds `initdb` and `postgres`, the newest version's; None if there is none."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    on_path = shutil.which("initdb")
    for folder in [*folders, *([Path(on_path).parent] if on_path else [])]:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    return None


def _user() -> str | None:
    """Whom the server runs as; None for whoever we are."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise BadInput("PostgreSQL does not run as root, and there is no user postgres or nobody")


class PostgresServer:
    """One server. `settings` are those of postgresql.conf."""

    def __init__(self, **settings: str) -> None:
        # Its shared memory lies among its files, so that it goes with them however the server ends.
        self._settings = {"fsync": "off", "max_connections": "50", "dynamic_shared_memory_type": "mmap", **settings}
        self._user = _user()
        in_memory = self._settings["fsync"] == "off" and os.access(_IN_MEMORY, os.W_OK)
        self._directory = Path(tempfile.mkdtemp(prefix="halt23-postgres-", dir=_IN_MEMORY if in_memory else None))
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        self.port = 0

    def __enter__(self) -> Self:
        folder = programs()
        if folder is None:
            raise BadInput(MISSING)
        self._guard = Guard(self._directory)
        if self._user is not None:
            shutil.chown(self._directory, self._user)
        made = ["-D", str(self._data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        self._run([str(folder / "initdb"), *made])
        self._keep_port()
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
        shutil.rmtree(self._directory)
        self._holder.close()
        self._guard.dismiss(BOUND_SECONDS)

    def _keep_port(self) -> None:
        """Have a port that stays ours while the server is down: bound here and never listened to, as a receiver's."""
        self._holder = socket.socket()
        self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._holder.bind(("127.0.0.1", 0))
        self.port = int(self._holder.getsockname()[1])

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    def start(self) -> None:
        """Start it, after `kill` or `stop` too, and wait until it answers. Raises BadInput while it runs."""
        if self._process is not None:
            raise BadInput("the database server is running already; kill it first")
        folder = programs()
        assert folder is not None
        options = {"listen_addresses": "127.0.0.1", "port": str(self.port), "unix_socket_directories": "", **self._settings}
        arguments = [each for name, value in options.items() for each in ("-c", f"{name}={value}")]
        # stderr says when it is ready: an event, not a guess.
        self._process = subprocess.Popen(
            [str(folder / "postgres"), "-D", str(self._data), *arguments],
            stderr=subprocess.PIPE,
            cwd=self._directory,
            user=self._user,
            env=_ENVIRONMENT,
            start_new_session=True,
        )
        assert self._process.stderr is not None
        self._await_ready(self._process, self._process.stderr.fileno())
        ours, self._alive = os.pipe()
        self._drain = subprocess.Popen(
            [sys.executable, "-c", _WATCH, str(ours), str(self._process.pid), str(self._directory)],
            stdin=self._process.stderr,
            pass_fds=(ours,),
            start_new_session=True,  # whoever kills our group with Ctrl-C does not kill the one who tidies up
        )
        os.close(ours)
        self._process.stderr.close()

    def _await_ready(self, process: subprocess.Popen[bytes], stderr: int) -> None:
        """Wait until the server says that it is ready. Raises EvidenceIncomplete where it ends, or is silent for too long."""
        said, deadline = b"", time.monotonic() + BOUND_SECONDS
        while READY not in said:
            waiting = max(0.0, deadline - time.monotonic())
            readable, _, _ = select.select([stderr], [], [], waiting)
            more = os.read(stderr, 65536) if readable else b""
            if not more:
                process.kill()
                process.wait(BOUND_SECONDS)
                self._process = None
                why = "it ended" if readable else f"it was not ready after {BOUND_SECONDS:g} s"
                raise EvidenceIncomplete(f"PostgreSQL's server did not start: {why}; it said: {_words(said)}")
            said += more

    def kill(self) -> None:
        """SIGKILL to the server and all its children, and wait until they have gone."""
        if self._process is not None:
            server = psutil.Process(self._process.pid)
            for each in (server, *server.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()
            self._ended()

    def stop(self) -> None:
        """End it in order, so that it leaves no shared memory behind."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._ended()

    def _ended(self) -> None:
        assert self._process is not None
        self._process.wait(BOUND_SECONDS)
        # It ends when the last child has closed the pipe, so none of them runs any more.
        self._drain.wait(BOUND_SECONDS)
        os.close(self._alive)
        self._process = None

    def facts(self) -> dict[str, str]:
        """Version and durability of the running server, as it tells them."""
        with psycopg.connect(self._url("postgres"), autocommit=True) as connection:
            names = {"version": "server_version", "fsync": "fsync", "synchronous_commit": "synchronous_commit"}
            rows = {name: connection.execute(f"SHOW {setting}").fetchone() for name, setting in names.items()}
        return {name: str(row[0]) for name, row in rows.items() if row is not None}

    def new_database(self) -> str:
        """The URL of a new, empty database."""
        self._databases += 1
        name = f"halt23_{self._databases}"
        with psycopg.connect(self._url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        return self._url(name)

    def _url(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def _run(self, command: list[str]) -> None:
        try:
            done = subprocess.run(
                command,
                cwd=self._directory,
                user=self._user,
                env=_ENVIRONMENT,
                capture_output=True,
                timeout=BOUND_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EvidenceIncomplete(f"{command[0]} cannot be run in {self._directory}: {error}. {_ADVICE}") from error
        if done.returncode:
            raise EvidenceIncomplete(
                f"{command[0]} ended with {done.returncode} in {self._directory}; it said: {_words(done.stderr)}. {_ADVICE}"
            )


def _words(output: bytes) -> str:
    return output.decode(errors="replace").strip()[-2000:] or "nothing"

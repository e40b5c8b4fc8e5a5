"""Real processes for synchronous tests, started in milliseconds.

    with ProcessBox() as box:
        receiver = box.start("receivers", ["keyed", "--dir", str(directory)])
        ended = box.run("outbox.dispatcher", ["--dir", str(outbox), "--receiver", receiver.url], {"HALT_AT": "send.before"})
        assert ended.exit_code == 23

A box owns one spawner (`scenarios.engine.supervisor`); its children run `python -m MODULE` with nothing in their environment
but PATH, HOME, TMPDIR and what is given here. Every wait is for an event and has a bound. Closing the box ends what still runs.
"""

import asyncio
import signal
import tempfile
import threading
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from scenarios.engine.supervisor import PRELOADED, Child, Launch, Supervisor

ROOT = Path(__file__).resolve().parents[1]
BOUND_SECONDS = 30.0

T = TypeVar("T")


class Ended(NamedTuple):
    """How a process ended: `exit_code` is None where `signal` (its name) ended it."""

    exit_code: int | None
    signal: str | None
    stdout: str
    stderr: str


class Running:
    """A child that was started. `port` is the one of its READY line (0 for a program that says none)."""

    def __init__(self, box: "ProcessBox", child: Child, port: int) -> None:
        self._box, self._child = box, child
        self.port = port

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether its end has not been reported yet."""
        return self._child.running

    def wait(self, timeout_seconds: float = BOUND_SECONDS) -> Ended:
        """Wait for its end. Raises TimeoutError."""
        ending = self._box.do(self._child.wait(timeout_seconds))
        return Ended(ending.exit_code, ending.signal, self._child.stdout.text(), self._child.stderr.text())

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._box.signal(self._child, number)

    def kill(self) -> Ended:
        """SIGKILL, and wait for the end."""
        self.send(signal.SIGKILL)
        return self.wait()

    def stop(self) -> Ended:
        """SIGTERM, and wait for the end."""
        self.send(signal.SIGTERM)
        return self.wait()


class ProcessBox:
    """Starts real processes; see the module. Use it as a context manager or close it.

    What forks finds the modules `preloaded` in memory, and so starts at once.
    """

    def __init__(self, spawn: str = "fork", preloaded: Sequence[str] = PRELOADED) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ProcessBox", daemon=True)
        self._thread.start()
        self._supervisor = Supervisor(ROOT, spawn, preloaded)
        self.do(self._supervisor.__aenter__())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End every child and the spawner."""
        try:
            self.do(self._supervisor.__aexit__(None, None, None))
            self.do(self._loop.shutdown_default_executor())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the box's own event loop and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(BOUND_SECONDS + 10)

    def launch(
        self,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str] | None = None,
        *,
        directory: Path | None = None,
    ) -> Running:
        """Start `python -m module arguments` and return at once; for programs that say no READY line."""
        launch = Launch(module, tuple(arguments), directory or Path(tempfile.gettempdir()), dict(environment or {}))
        return Running(self, self.do(self._supervisor.start(launch)), 0)

    def start(
        self,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str] | None = None,
        *,
        directory: Path | None = None,
    ) -> Running:
        """Start a server and wait for its READY line. Raises AssertionError, with its last words, if it ends without one."""
        running = self.launch(module, arguments, environment, directory=directory)
        ready = self.do(running._child.wait_ready(BOUND_SECONDS))
        if ready is None:
            raise AssertionError(f"{module} ended without a READY line: {running.wait()}")
        running.port = int(ready.rpartition(":")[2])
        return running

    def run(
        self,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str] | None = None,
        *,
        directory: Path | None = None,
        timeout_seconds: float = BOUND_SECONDS,
    ) -> Ended:
        """Run a program to its end. Raises TimeoutError."""
        return self.launch(module, arguments, environment, directory=directory).wait(timeout_seconds)

    def signal(self, child: Child, number: signal.Signals) -> None:
        """Send a signal to a child; harmless if it has ended."""

        async def send() -> None:
            self._supervisor.signal(child, number)

        self.do(send())

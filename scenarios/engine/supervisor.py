"""The harness's side of its child processes: start, wait with a bound, signal, and know how each one really ended.

All children belong to one spawner process (`scenarios.engine.spawner`), in both spawn modes; the supervisor talks to it and
reads the children's output. Leaving the supervisor ends every child that is still alive, also when the harness is interrupted.
"""

import asyncio
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from scenarios.engine.output import Output
from scenarios.errors import HarnessBug

# What a fork child finds loaded. An entry that is missing here still works, more slowly.
PRELOADED = (
    "outbox.producer",
    "outbox.dispatcher",
    "outbox.dispatch",
    "receivers",
    "scenarios.client",
    "scenarios.dispatch",
    "scenarios.relay",
    "scenarios.prefixes",
)
FORK, REHEARSED = "fork", "rehearsed-fork"
CLOSE_SECONDS = 15.0
_READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start: `python -m module arguments` in `directory`, with `environment` added to the fixed variables.

    `trace` is the command line of the strace that is attached before the program begins; none where it is empty.
    """

    module: str
    arguments: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]
    trace: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """Somebody else's program to start: `argv` in `directory`. `environment` is all that it has. With `forked` it runs in a
    fork of the spawner; see `scenarios.engine.foreign` for which do."""

    argv: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]
    forked: bool = False
    trace: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """How a process ended, as the kernel told its parent. Times are seconds of the monotonic clock. `left` is how many
    processes somebody else's command left behind, which were ended."""

    exit_code: int | None
    signal: str | None
    monotonic: float
    user_cpu_seconds: float
    system_cpu_seconds: float
    max_rss_bytes: int
    left: int = 0

    def __str__(self) -> str:
        return f"exit code {self.exit_code}" if self.signal is None else f"signal {self.signal}"


class Child:
    """One process under study. `pid` and `started` (monotonic seconds) are known once `Supervisor.start` returned it."""

    def __init__(self, number: int, stdout: Output, stderr: Output) -> None:
        loop = asyncio.get_running_loop()
        self.number = number
        self.stdout, self.stderr = stdout, stderr
        self.pid = 0
        self.started = 0.0
        self.was_started: asyncio.Future[None] = loop.create_future()
        self.stopped_or_ended = asyncio.Event()
        self.ended: asyncio.Future[Ending] = loop.create_future()

    @property
    def running(self) -> bool:
        """Whether its end has not been reported yet."""
        return not self.ended.done()

    async def wait(self, timeout_seconds: float) -> Ending:
        """Wait for the end of the process and of its output. Raises TimeoutError; the process goes on then."""
        async with asyncio.timeout(timeout_seconds):
            ending = await asyncio.shield(self.ended)
            await self.stdout.complete.wait()
            await self.stderr.complete.wait()
            return ending

    async def wait_stopped(self, timeout_seconds: float) -> bool:
        """Wait until the process is stopped by SIGSTOP. False if it ended instead. Raises TimeoutError."""
        async with asyncio.timeout(timeout_seconds):
            await self.stopped_or_ended.wait()
        return self.running

    async def wait_ended(self, timeout_seconds: float) -> Ending:
        """Wait for the end of the process, whoever holds its output. Raises TimeoutError."""
        async with asyncio.timeout(timeout_seconds):
            return await asyncio.shield(self.ended)

    def drop_output(self) -> None:
        """Read no more of its output: what a process that it left behind may write is nobody's."""
        self.stdout.close()
        self.stderr.close()

    async def wait_ready(self, timeout_seconds: float) -> str | None:
        """Wait for the READY line and return it, or None if the process ended without one. Raises TimeoutError."""
        async with asyncio.timeout(timeout_seconds):
            await self.stdout.ready_or_complete.wait()
        return self.stdout.ready_line


class Supervisor:
    """Owns the spawner and through it all children. Use as `async with Supervisor(root, "fork") as supervisor`.

    With `rehearse` the spawner takes a moment longer to be ready, and each fork child is the cheaper: worth it for many.
    """

    def __init__(
        self,
        root: Path,
        spawn: str,
        preloaded: Sequence[str] = PRELOADED,
        under: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        *,
        rehearse: bool = False,
    ) -> None:
        self._root, self._spawn, self._preloaded, self._under = root, spawn, preloaded, under
        self._spawners = environment or {}
        self._mode = REHEARSED if rehearse and spawn == FORK else spawn
        self._numbers = itertools.count(1)
        self._children: dict[int, Child] = {}
        self._outputs: weakref.WeakSet[Output] = weakref.WeakSet()
        self._buffer = b""
        self._closing = False

    def another(self, under: Sequence[str]) -> "Supervisor":
        """One of the same kind, whose spawner is run under another program: a tracer."""
        return Supervisor(self._root, self._spawn, self._preloaded, under)

    async def __aenter__(self) -> Self:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        command = [
            *self._under,
            sys.executable,
            "-m",
            "scenarios.engine.spawner",
            str(theirs.fileno()),
            self._mode,
            *self._preloaded,
        ]
        try:
            self._process = subprocess.Popen(  # noqa: ASYNC220 - returns once it has forked, and must not depend on the loop
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # A terminal of ours would make fork children buffer by lines; an output that we lack would leave them none.
                stdout=subprocess.DEVNULL,
                stderr=None if sys.stderr else subprocess.DEVNULL,
                env=self._environment(self._spawners),
                cwd=self._root,
                start_new_session=True,
            )
        finally:
            theirs.close()
        asyncio.get_running_loop().add_reader(self._control, self._on_readable)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        asyncio.get_running_loop().remove_reader(self._control)
        # The end of the socket tells the spawner to kill whatever lives, reap it, and go.
        self._control.close()
        waiting = asyncio.to_thread(self._process.wait, CLOSE_SECONDS)
        try:
            await asyncio.shield(waiting)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise HarnessBug(f"the spawner did not end within {CLOSE_SECONDS:g} s and was killed") from None
        for output in list(self._outputs):
            output.close()

    async def start(self, launch: Launch | Command) -> Child:
        """Start a process; returns when it exists. Raises HarnessBug if the spawner is gone."""
        loop = asyncio.get_running_loop()
        stdout_read, stdout_write = os.pipe()
        stderr_read, stderr_write = os.pipe()
        try:
            child = Child(next(self._numbers), Output(loop, stdout_read), Output(loop, stderr_read))
            self._outputs |= {child.stdout, child.stderr}
            self._children[child.number] = child
            self._send({"do": "spawn", "number": child.number, **self._told_of(launch)}, [stdout_write, stderr_write])
        finally:
            os.close(stdout_write)
            os.close(stderr_write)
        await asyncio.shield(child.was_started)  # who gives up waiting does not undo the start
        return child

    def _told_of(self, launch: Launch | Command) -> dict[str, Any]:
        """What the spawner is told of a launch."""
        shared = {"directory": str(launch.directory), "trace": launch.trace}
        if isinstance(launch, Command):
            return {**shared, "command": launch.argv, "forked": launch.forked, "environment": dict(launch.environment)}
        environment = self._environment(launch.environment)
        return {**shared, "module": launch.module, "arguments": launch.arguments, "environment": environment}

    def signal(self, child: Child, number: signal.Signals) -> None:
        """Send a signal to a child; harmless if it has ended."""
        if child.running:
            if number == signal.SIGCONT:
                child.stopped_or_ended.clear()
            self._send({"do": "signal", "number": child.number, "signal": int(number)}, [])

    def _send(self, message: Mapping[str, Any], descriptors: Sequence[int]) -> None:
        try:
            socket.send_fds(self._control, [json.dumps(message).encode() + b"\n"], descriptors)
        except OSError as error:
            raise HarnessBug(f"the spawner is gone: {error.strerror}") from error

    def _on_readable(self) -> None:
        try:
            data = self._control.recv(_READ_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lost()
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._told(json.loads(line))

    def _told(self, event: dict[str, Any]) -> None:
        child = self._children[event["number"]]
        if event["event"] == "started":
            child.pid, child.started = event["pid"], event["monotonic"]
            child.was_started.set_result(None)
            return
        child.stopped_or_ended.set()
        if event["event"] == "stopped":
            return
        number = event["signal"]
        child.ended.set_result(
            Ending(
                event["exit_code"],
                None if number is None else signal.Signals(number).name,
                event["monotonic"],
                event["user_cpu_seconds"],
                event["system_cpu_seconds"],
                event["max_rss_bytes"],
                event["left"],
            )
        )
        del self._children[child.number]

    def _lost(self) -> None:
        """The spawner died: its children die with it, and nobody will tell how they ended."""
        asyncio.get_running_loop().remove_reader(self._control)
        error = HarnessBug("the spawner ended unexpectedly; its own message, if any, stands above")
        for child in self._children.values():
            child.stopped_or_ended.set()
            for future in (child.was_started, child.ended):
                if not future.done():
                    future.set_exception(error)
                    future.exception()  # seen: asyncio does not complain where nobody waits for it

    def _environment(self, added: Mapping[str, str]) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        fixed = {"LANG": "C.UTF-8", "TZ": "UTC", "PYTHONPATH": str(self._root), "PYTHONSAFEPATH": "1"}
        return {**kept, **fixed, **added}

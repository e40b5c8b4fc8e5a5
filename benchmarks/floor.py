"""The physical floor: forks, requests and syncs with nothing around them, and what else families share to start processes.

A floor is what the measured thing cannot do without, done in the plainest way by copies of this process, which has the
dispatcher loaded: a fork of it costs what a fork of the harness costs.
"""

import gc
import http.client
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORD = b"x" * 300 + b"\n"
BODY = b'{"question":"What does the counter say?"}'


class Failed(Exception):
    """What was to be measured did not do its work. Remedy: the message ends with what it said."""


def seconds(command: Sequence[str], codes: Collection[int] = (0,)) -> float:
    """Wall time of a command, which must end with one of `codes`. Raises Failed with what it said."""
    began = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, env=environment())
    took = time.perf_counter() - began
    if done.returncode not in codes:
        raise Failed(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-2000:] or done.stdout[-2000:]}")
    return took


def environment() -> dict[str, str]:
    """This process's, but with byte code that is kept, as users have it."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@contextmanager
def receiver(directory: Path, kind: str = "keyed") -> Iterator[int]:
    """A receiver process of its own; its port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "receivers", kind, "--dir", str(directory)], cwd=ROOT, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        port = process.stdout.readline().rpartition(b":")[2]
        if not port:
            raise Failed(f"the receiver in {directory} did not start")
        yield int(port)
    finally:
        process.terminate()
        process.wait()


def settled() -> None:
    """Load what the harness's spawner has loaded, and leave nothing of it to the collector of a copy, as it does."""
    importlib.import_module("outbox.dispatcher")
    gc.collect()
    gc.freeze()


def share(port: int, path: Path, requests: Sequence[str], syncs: int) -> None:
    """What one process of a floor does: requests under these keys on one connection, and appends with a sync each."""
    if requests:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for key in requests:
            connection.request("POST", "/operations", BODY, {"Idempotency-Key": key})
            if connection.getresponse().read() == b"":
                raise SystemExit("the receiver gave no answer")
        connection.close()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for _ in range(syncs):
        os.write(descriptor, RECORD)
        os.fsync(descriptor)


def forked(work: Callable[[], None]) -> int:
    """The pid of a copy of this process that does `work` and ends."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return pid


def waited(pid: int, codes: Collection[int] = (0,)) -> None:
    """Wait for a copy, which must have ended with one of these codes."""
    _pid, status = os.waitpid(pid, 0)
    if os.waitstatus_to_exitcode(status) not in codes:
        raise Failed(f"a process that was measured ended with status {status}")


def in_lanes(lanes: int, work: Callable[[int], None]) -> float:
    """Seconds until so many copies of this process have done `work(lane)`, side by side."""
    began = time.perf_counter()
    for worker in [forked(lambda lane=lane: work(lane)) for lane in range(lanes)]:  # type: ignore[misc]
        waited(worker)
    return time.perf_counter() - began


def peak_mib() -> float:
    """The most memory that this program has had. (`ru_maxrss` would count what the parent had when it started us.)"""
    status = Path("/proc/self/status").read_text("ascii", "replace")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024

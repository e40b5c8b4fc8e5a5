"""What durable files ask of the operating system: whole writes, synced directories, a lock that dies with its holder.

The functions raise OSError where nothing else is said, so that each caller can name what it was doing.
"""

import errno
import fcntl
import os
import stat
import threading
from pathlib import Path

from outbox.errors import LockHeld, MachineRefused

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def make_directory(path: Path) -> None:
    """Create `path` and its missing parents, each synced into the directory that holds it. Raises MachineRefused."""
    try:
        missing = [path, *path.parents]
        for directory in reversed([each for each in missing if not each.is_dir()]):
            directory.mkdir(exist_ok=True)
            sync_directory(directory.parent)
    except OSError as error:
        raise refused(path, "cannot be created", error) from error


def open_regular(path: Path, flags: int) -> int:
    """Open a regular file and nothing else: a FIFO or a device in its place would hang or lie."""
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return descriptor


def write_all(descriptor: int, content: bytes) -> None:
    """Write all of `content`, in as many calls as the kernel wants."""
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_directory(directory: Path) -> None:
    """Make the names in `directory` durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(descriptor: int, path: Path, wait_seconds: float = 0) -> None:
    """Take the kernel lock of an open file for as long as it stays open. Raises LockHeld past `wait_seconds`."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if wait_seconds <= 0 or not _lock_within(descriptor, wait_seconds):
            raise LockHeld(
                f"{path}: another process holds its lock (waited {wait_seconds:g} s); let it end, or use another directory"
            ) from None


def _lock_within(descriptor: int, seconds: float) -> bool:
    """Wait for the lock. flock has no bound of its own: a thread waits for it, and the bound is on the thread."""
    outcome: list[OSError | None] = []

    def wait() -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            outcome.append(None)
        except OSError as error:
            outcome.append(error)

    waiter = threading.Thread(target=wait, daemon=True)
    waiter.start()
    waiter.join(seconds)
    if outcome and outcome[0] is not None:
        raise outcome[0]
    return bool(outcome)


def refused(path: Path, what: str, error: OSError) -> MachineRefused:
    """The error that says that the operating system would not do `what` with `path`."""
    return MachineRefused(f"{path}: {what}: {error.strerror or error}", disk_full=error.errno in _DISK_FULL)

"""The command lines of strace: to record what a process does, and to strike one of its calls.

A process that is killed in a call dies before the call has any effect: strace replaces the call by one that does not exist,
and sends SIGKILL. An injected error is the same without the signal: the call fails, and has done nothing. A short write is a
real one: the process is stopped before and after it, and in between the kernel lets the file grow by half of the bytes only
(RLIMIT_FSIZE).
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from scenarios.explore.calls import ON_FILES, ON_SOCKETS, SYNCS, WRITES, Strike

PROGRAM = "strace"
KILLED, SHORT = "", "SHORT"
_CREATES = ("openat", "open", "creat", "mkdir", "mkdirat", "rename", "renameat", "renameat2", "link", "linkat", "symlink")
# What the kernel may answer to a call that changes files; EINTR only where it may come before anything was done.
ERRORS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(WRITES, ("ENOSPC", "EIO", "EINTR", SHORT)),
    **dict.fromkeys(SYNCS, ("EIO", "ENOSPC", "EINTR")),
    **dict.fromkeys(("ftruncate", "truncate", "fallocate"), ("EIO", "ENOSPC", "EINTR")),
    **dict.fromkeys(_CREATES, ("ENOSPC", "EIO")),
    **dict.fromkeys(("unlink", "unlinkat", "rmdir"), ("EIO",)),
    "connect": ("ECONNREFUSED",),
    "sendto": ("ECONNRESET",),
    "sendmsg": ("ECONNRESET",),
    "accept4": ("ECONNABORTED",),
}
_QUIET = "--quiet=path-resolution,exit"


@cache
def why_not() -> str | None:
    """Why processes cannot be traced on this machine; None where they can."""
    if sys.platform != "linux":
        return "strace is a program of Linux"
    if shutil.which(PROGRAM) is None:
        return "there is no strace; install it"
    command = [PROGRAM, "-o", os.devnull, "-e", "trace=fsync", "-e", "inject=fsync:error=EIO:when=1", "true"]
    try:
        tried = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"strace does not work: {error}"
    if tried.returncode != 0:
        return f"strace may not trace: {tried.stderr.strip() or f'it ended with {tried.returncode}'}"
    return None


def recording(log: Path) -> tuple[str, ...]:
    """strace that writes everything that counts into `log`."""
    names = ",".join(f"?{name}" for name in (*ON_FILES, *ON_SOCKETS))
    return (PROGRAM, "-f", "-yy", "-s", "64", "-e", f"trace={names}", _QUIET, "-o", str(log))


def striking(strike: Strike, error: str, directory: Path, log: Path) -> tuple[str, ...]:
    """strace that strikes one call, and writes those that are of its kind into `log`."""
    name, number = strike.call.name, strike.number
    command = [PROGRAM, "-yy", "-s", "0", _QUIET, "-o", str(log)]
    if strike.watched:
        # A path is compared as the program names it.
        paths = [each for path in strike.watched for each in (path, str(directory / path))]
        command += ["-f", *(part for path in paths for part in ("-P", path))]
        names = ",".join(f"?{each}" for each in ON_FILES)
    else:
        names = ",".join(f"?{each}" for each in ON_SOCKETS)
    return (*command, "-e", f"trace={names}", *_injections(strike, error, name, number))


def _injections(strike: Strike, error: str, name: str, number: int) -> tuple[str, ...]:
    if error == KILLED:
        return ("-e", f"inject={name}:error=EIO:signal=KILL:when={number}")
    if error != SHORT:
        return ("-e", f"inject={name}:error={error}:when={number}")
    assert strike.before is not None
    before, at = strike.before
    if before.name == name:
        return ("-e", f"inject={name}:signal=STOP:when={at}..{number}")
    return ("-e", f"inject={before.name}:signal=STOP:when={at}", "-e", f"inject={name}:signal=STOP:when={number}")

"""The new directory of a run, and what a full or broken machine means for it. Nothing that exists is ever written over."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from outbox.errors import BadInput
from scenarios.errors import EvidenceIncomplete


def fresh_directory(out: Path, mark: str) -> None:
    """Make the new directory `out` with the folder `mark` in it: from the first moment on it is known for an unfinished run.

    Raises BadInput where it exists or cannot be made.
    """
    try:
        str(out).encode()
    except UnicodeEncodeError:
        raise BadInput(f"--out {str(out)!a}: its name is not UTF-8, and evidence names it; choose another") from None
    if os.path.lexists(out):
        raise BadInput(f"--out {out}: it exists, and nothing is overwritten; name a new directory")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"--out {out}: {out.parent} cannot be a directory: {error.strerror}") from error
    try:
        out.mkdir()
        (out / mark).mkdir()
    except OSError as error:
        raise BadInput(f"--out {out}: it cannot be created: {error.strerror}") from error


@contextlib.contextmanager
def alone_in(out: Path) -> Iterator[None]:
    """Keep `out` from all other runs meanwhile, by a kernel lock that dies with its holder.

    Raises BadInput where it is held, and where there is no such directory.
    """
    try:
        descriptor = os.open(out, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise BadInput(f"--out {out} holds no campaign that could go on: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput(f"--out {out}: another run is at work in it; let it end, or stop it") from None
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def machine_faults(out: Path, *, go_on: str) -> Iterator[None]:
    """Raise what the machine refuses meanwhile as EvidenceIncomplete; `go_on` says what to do when there is room."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise  # a TimeoutError of ours, not the machine's
        files = error.errno in (errno.EMFILE, errno.ENFILE)
        advice = "Allow more open files (ulimit -n) or lower --jobs" if files else "Make room"
        raise EvidenceIncomplete(
            f"the run is incomplete: {error.filename or out}: {error.strerror or error}. "
            f"All processes were ended. {advice}, then {go_on}"
        ) from error

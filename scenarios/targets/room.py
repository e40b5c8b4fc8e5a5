"""The room that a check works in: a folder that goes with it, however it ends, and that nobody fills.

Where there is memory for files it is taken: no power fails here, so no disk need be waited for. A guard removes the folder, and
ends what works in it, when the check goes without a word. While work is done in it, its size is looked at: a target that fills
the disk (or the memory) of its machine is stopped long before it has, and is told so.
"""

import asyncio
import contextlib
import itertools
import os
import shutil
import tempfile
from collections.abc import Coroutine, Iterator
from pathlib import Path

from outbox.errors import BadInput
from scenarios.engine.guard import Guard

MOST_BYTES = 1 << 30
LOOK_SECONDS = 0.1
_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - what is made in it has a name that nobody can guess
_BOUND_SECONDS = 30.0
_LOOKS = 10  # after so many the folder is measured in any case
_BLOCK_BYTES = 512  # of st_blocks, whatever the file system has


@contextlib.contextmanager
def made(fallback: Path) -> Iterator[Path]:
    """A new folder, in memory where there is room, else in `fallback`."""
    in_memory = _IN_MEMORY.is_dir() and os.access(_IN_MEMORY, os.W_OK) and shutil.disk_usage(_IN_MEMORY).free > 4 * MOST_BYTES
    folder = Path(tempfile.mkdtemp(prefix=f"halt23-{os.getpid()}-", dir=_IN_MEMORY if in_memory else fallback.resolve()))
    guard = Guard(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        guard.dismiss(_BOUND_SECONDS)


async def within(folder: Path, work: Coroutine[None, None, None], most_bytes: int = MOST_BYTES, *, whose: str = "") -> None:
    """Do the work. Raises BadInput, which begins with `whose`, after the work was cancelled, where more than `most_bytes`
    came to lie in `folder`."""
    working = asyncio.ensure_future(work)
    looking = asyncio.ensure_future(_filled(folder, most_bytes))
    try:
        await asyncio.wait((working, looking), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working
            raise BadInput(
                f"{whose}it fills the disk: {looking.result() >> 20} MiB came to lie in the folders of its cases; at most "
                f"{most_bytes >> 20} MiB are let"
            )
        await working
    finally:
        for each in (working, looking):
            each.cancel()
        await asyncio.gather(working, looking, return_exceptions=True)


async def _filled(folder: Path, most_bytes: int) -> int:
    """Return when there is more in the folder: how much."""
    before = shutil.disk_usage(folder).used
    for number in itertools.count():
        # The whole disk is quickly asked; others fill and empty it as well, so the folder itself is what counts.
        if number % _LOOKS == 0 or shutil.disk_usage(folder).used - before > most_bytes // 2:
            found = await asyncio.to_thread(folder_bytes, folder)
            if found > most_bytes:
                return found
        await asyncio.sleep(LOOK_SECONDS)
    raise AssertionError("counting does not end")


def folder_bytes(folder: Path) -> int:
    """What the files below a folder take on the disk; of files that vanish meanwhile, nothing."""
    total = 0
    for path, _folders, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(path, name)).st_blocks * _BLOCK_BYTES  # noqa: PTH118 - many files, quickly
    return total

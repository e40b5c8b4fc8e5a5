"""The room of a check: nobody fills it, and it goes however the check ends."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from outbox.errors import BadInput
from scenarios.targets import room

SECONDS = 30.0


async def test_a_target_that_fills_its_folders_is_stopped_and_told(tmp_path: Path) -> None:
    ended = []

    async def fill() -> None:
        try:
            (tmp_path / "many").mkdir()
            for number in range(64):
                (tmp_path / "many" / f"{number}").write_bytes(os.urandom(1 << 16))
            await asyncio.Event().wait()
        finally:
            ended.append("stopped")

    async with asyncio.timeout(SECONDS):
        with pytest.raises(
            BadInput, match=r"^mine: it fills the disk: \d+ MiB came to lie in the folders of its cases; at most 1 MiB"
        ):
            await room.within(tmp_path, fill(), 1 << 20, whose="mine: ")
    assert ended == ["stopped"]


async def test_work_that_stays_within_its_room_ends_as_it_does(tmp_path: Path) -> None:
    async def fail() -> None:
        raise KeyError("as it does")

    async def succeed() -> None:
        (tmp_path / "done").touch()

    await room.within(tmp_path, succeed())
    assert (tmp_path / "done").exists()
    with pytest.raises(KeyError, match="as it does"):
        await room.within(tmp_path, fail())


async def test_who_is_stopped_stops_the_work(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.create_task(room.within(tmp_path, work()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


PROGRAM = """
import sys, time
from pathlib import Path
from scenarios.targets import room
with room.made(Path(sys.argv[1])) as folder:
    (folder / "much").write_bytes(b"x" * 1000)
    print(folder, flush=True)
    time.sleep(60)
"""


def test_the_room_of_a_check_that_is_killed_goes_with_it(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        assert (folder / "much").exists()
        process.send_signal(signal.SIGKILL)
    # The guard says that it is done by nothing but its work; it has no other sign.
    deadline = os.times().elapsed + SECONDS
    while folder.exists() and os.times().elapsed < deadline:
        os.sched_yield()
    assert not folder.exists()

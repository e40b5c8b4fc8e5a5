"""A bench for tests of the worker's engine: the spawner of a check, shared, and targets that are made of a few words."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from scenarios.engine.supervisor import Supervisor
from scenarios.targets.baseline import Baselines
from scenarios.targets.commands import Commands
from scenarios.targets.model import Contents, Target, Worker
from scenarios.targets.slot import MODULE, Slot
from tests.support import ROOT

WORKERS = Path(__file__).parent / "workers"


def bad(how: str, **more: object) -> Target:
    """A target whose worker is bad in this way."""
    program = ("{python}", "{target}/bad_worker.py")
    worker = Worker(
        enqueue=(*program, "enqueue", "{job}", "{url}", how),
        work=(*program, "work", how),
        **more,  # type: ignore[arg-type]
    )
    return Target(WORKERS / "bad.toml", Contents(name="bad", worker=worker))


@contextlib.asynccontextmanager
async def slot_of(target: Target, folder: Path) -> AsyncIterator[tuple[Commands, Baselines, Slot]]:
    """A slot with everything that a fault-free run needs."""
    async with Supervisor(ROOT, "fork", (MODULE,)) as house:
        slot = Slot(1, folder, house)
        await slot.open()
        try:
            commands = Commands(target, sys.executable, house)
            assert target.contents.worker is not None
            yield commands, Baselines(commands, target.contents.worker, slot), slot
        finally:
            await slot.close()

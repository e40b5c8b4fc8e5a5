"""A harness of one's own, as a process: to be interrupted and killed by the tests.

python -m tests.scenarios.harness supervisor fork|exec     a supervisor over programs that wait; prints their pids
python -m tests.scenarios.harness study fork|exec DIR …    a study whose only scenario waits for ever, through run.main;
                                                           that program tells its pid through the FIFO DIR.entered
                                                           with --store postgres it has a database by then
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import psutil

import run
from scenarios.catalogue.dispatch.parts import enqueue
from scenarios.engine.supervisor import Launch, Supervisor
from scenarios.model import Counts, Program, Run, Scenario, Start
from tests.support import ROOT

PROGRAMS = "tests.scenarios.programs"


async def supervise(spawn: str) -> None:
    async with Supervisor(ROOT, spawn) as supervisor:
        waiting = await supervisor.start(Launch(PROGRAMS, ("wait",), ROOT, {}))
        leaving = await supervisor.start(Launch(PROGRAMS, ("daemon", "wait"), ROOT, {}))
        left = await supervisor.start(Launch(PROGRAMS, ("daemon", "end"), ROOT, {}))
        await waiting.wait_ready(30)
        daemons = [int(str(await child.wait_ready(30)).split(":")[1]) for child in (leaving, left)]
        spawner = psutil.Process(waiting.pid).ppid()
        print(json.dumps([spawner, waiting.pid, leaving.pid, *daemons]), flush=True)
        await asyncio.Event().wait()


def study(spawn: str, out: str, *options: str) -> int:
    receiver = Program("receiver", "receivers", ("keyed", "--dir", "receiver", "--port", "{receiver.port}"))
    daemon = Program("daemon", PROGRAMS, ("daemon", "wait"))
    endless = Program("endless", PROGRAMS, ("tell", f"{Path(out).resolve()}.entered"))
    database = (Run(enqueue()),) if "--store" in options else ()
    steps = (Start(receiver), Start(daemon), *database, Run(endless))
    vars(run)["SCENARIOS"] = (Scenario("delivery", "endless", "It never ends", "nowhere", steps, Counts(0, 0, 0, 0)),)
    return run.main(["--out", out, "--spawn", spawn, *options])


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    if what == "study":
        sys.exit(study(*arguments))
    asyncio.run(supervise(*arguments))

"""A rehearsal makes children cheaper, and changes nothing that they do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from scenarios.engine.supervisor import Launch, Supervisor
from tests.support import ROOT

LOADED = ("outbox.producer", "outbox.dispatcher", "scenarios.dispatch.__main__")
REHEARSE = f"""
import importlib, json, logging, tempfile, threading
from scenarios.engine import rehearsal, spawner
for module in {LOADED}:
    importlib.import_module(module)
codes = []
rehearsal.rehearse(lambda module, arguments: codes.append((module, spawner.run_entry(module, arguments))))
from outbox.dispatch.claim import _due
print(json.dumps([codes, threading.active_count(), logging.root.handlers, logging.root.level, _due.cache_info().currsize]))
tempfile.tempdir = "/there/is/no/such/folder"
rehearsal.rehearse(None)
"""


def test_every_program_does_its_work_and_nothing_is_left_of_it_and_a_machine_that_lets_nobody_rehearse_is_no_error() -> None:
    ended = subprocess.run([sys.executable, "-c", REHEARSE], cwd=ROOT, check=True, capture_output=True, text=True)
    codes, threads, handlers, level, remembered = json.loads(ended.stdout)
    assert [code for _module, code in codes] == [0] * 5
    assert {module for module, _code in codes} == set(LOADED)
    assert (threads, handlers, level, remembered, ended.stderr) == (1, [], 30, 0, "")


async def test_a_child_executes_the_same_lines_after_it(tmp_path: Path) -> None:
    scan = ("scan", "--db", "a.db", "--now", "1000")
    enqueue = ("enqueue", "--db", "a.db", "--now", "1000", "--to", "http://localhost:1/", f"{1:032x}")
    listed: list[str] = []
    for spawn in ("exec", "fork"):
        place = tmp_path / spawn
        place.mkdir()
        async with Supervisor(ROOT, spawn, ("scenarios.dispatch",), rehearse=True) as supervisor:
            for number, arguments in enumerate((enqueue, scan)):
                environment = {"LINES_TO": f"lines-{number}"}
                child = await supervisor.start(Launch("scenarios.dispatch", arguments, place, environment))
                assert (await child.wait(30)).exit_code == 0, child.stderr.text()
        listed.append("".join(path.read_text() for path in sorted(place.glob("lines-*"))))
    assert sorted(listed[0].split()) == sorted(listed[1].split())

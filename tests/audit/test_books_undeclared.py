"""Scenarios that no catalogue has, run by the harness: the audit's books follow them from their commands and steps alone.

What the declared scenarios do not come to is done here: lanes, refusals, notify commands that fail, receivers that die before
they answer, clocks that go back, operators with nothing to act on. Real programs on a real database say what is right.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from scenarios.catalogue.dispatch.parts import (
    ACK,
    AFTER_SEND,
    BACKED_OFF,
    BEFORE_SEND,
    BY_COMMAND,
    DEDUP,
    LEASE_OVER,
    ONE,
    RECORDED,
    THREE,
    TOKEN,
    TWO,
    dies,
    enqueue,
    operator,
    revive,
    scan,
    scan_by_clock,
    scan_by_command,
    served,
)
from scenarios.catalogue.parts import KEYED, UNKEYED
from scenarios.engine.runner import ScenarioRunner
from scenarios.engine.supervisor import Supervisor
from scenarios.model import (
    Await,
    AwaitPaused,
    Begin,
    Counts,
    Export,
    Kill,
    Program,
    Resume,
    Rows,
    Run,
    Scenario,
    Start,
    Step,
    Stop,
    Write,
)
from tests.audit.held_books import Books, Row
from tests.support import ROOT

FULL = Program("receiver", "receivers", ("capacity", "--dir", "receiver", "--port", "{receiver.port}", "--capacity", "1"))
ONCE = ("--max-attempts", "1")
EXPIRES = ("--expires-at", str(LEASE_OVER))
LANE = ("--lane", "a lane")


def _stopped(begun: Program, point: str, *meanwhile: Step, code: int = 0) -> tuple[Step, ...]:
    """A program that is stopped at the point while something else happens."""
    name = begun.process
    return (Begin(begun, pause_at=point), AwaitPaused(name), *meanwhile, Resume(name), Await(name, exit_code=code))


STEPS: dict[str, tuple[Step, ...]] = {
    "rows_of_a_lane_wait_for_each_other": (
        Run(enqueue(*LANE, ids=(ONE, TWO))),
        Run(enqueue(ids=(THREE,))),
        Run(scan()),
        *served(KEYED, Run(scan(at=LEASE_OVER)), Run(scan(at=BACKED_OFF))),
    ),
    "an_expiry_that_has_passed_is_taken_away": served(
        KEYED,
        Run(enqueue(*EXPIRES)),
        Run(scan(at=LEASE_OVER)),
        Run(operator("retry", ONE, at=BACKED_OFF)),
        Run(scan(at=BACKED_OFF)),
    ),
    "a_history_can_be_purged_as_well": (
        Run(enqueue(*DEDUP, "--kind", 'an "odd\\ kind" \u00e9', ids=(ONE,))),
        Run(operator("purge", ONE, "--remove-history", at=LEASE_OVER)),
        Run(operator("purge", ONE, at=LEASE_OVER, name="other"), exit_code=1),
        Run(enqueue(ids=(TWO,))),
    ),
    "one_id_twice_with_a_purge_between": served(
        KEYED,
        Run(enqueue("--body", '{"order":7,"of":["\u00e9\\u2028",1.5,null,true]}')),
        Run(scan()),
        Run(enqueue(), exit_code=2),
        Run(operator("purge", ONE, at=LEASE_OVER)),
        Run(enqueue(*ONCE, at=LEASE_OVER)),
        Run(scan(at=LEASE_OVER)),
    ),
    "a_receiver_has_no_room": served(FULL, Run(enqueue(ids=(ONE, TWO))), Run(scan()), Run(scan(at=BACKED_OFF))),
    "a_receiver_dies_before_it_answers": (
        Start(KEYED, halt_at="effect.append.before"),
        Run(enqueue()),
        Run(scan()),
        Await("receiver", exit_code=23),
        Start(KEYED, halt_at="effect.append.written"),
        Run(enqueue(to=BY_COMMAND, ids=(TWO,))),
        Run(scan_by_command()),
        Await("receiver", exit_code=23),
        Run(scan_by_command(at=BACKED_OFF)),
    ),
    "a_command_fails": served(
        KEYED,
        Run(enqueue(to="/nowhere")),
        Run(scan_by_command()),
        Stop("receiver"),
        Run(scan_by_command("--careless", at=BACKED_OFF)),
        Start(KEYED),
    ),
    "a_route_leads_nowhere": (
        Run(enqueue(to=BY_COMMAND)),
        Run(enqueue(to="http://elsewhere.example:81/operations", ids=(TWO,))),
        Run(enqueue(to="HTTP://receiver.localhost:8123/operations", ids=(THREE,))),
        Run(scan()),
    ),
    "nothing_to_act_on": (
        Run(operator("retry", ONE, at=1000), exit_code=2),
        Run(enqueue("--expires-at", "1000"), exit_code=2),
        Run(enqueue(ids=("1",)), exit_code=2),
        Run(enqueue(ids=(ONE, TWO, ONE)), exit_code=2),
        Run(operator("ack", ONE, TOKEN, at=1000), exit_code=2),
        Run(operator("ack", THREE, TOKEN, at=1000), exit_code=2),
        Run(operator("retry", THREE, at=1000), exit_code=2),
        Run(operator("purge", THREE, at=1000), exit_code=1),
        Run(scan_by_clock(), exit_code=16),
    ),
    "what_was_not_handed_over_is_not_printed": served(
        UNKEYED,
        dies(enqueue(ids=(ONE, TWO, THREE)), "dispatch.enqueue.committed#2"),
        dies(scan(), "dispatch.claim.committed#2"),
        Run(scan(at=LEASE_OVER)),
    ),
    "a_clock_goes_back": served(
        KEYED,
        Write("clock", "1000.5"),
        Run(enqueue(*ACK, ids=(ONE, TWO))),
        *_stopped(scan_by_clock(), AFTER_SEND, Write("clock", "900")),
        Write("clock", "2000"),
        Run(scan_by_clock()),
    ),
    "a_claimant_is_killed": served(
        UNKEYED,
        Run(enqueue()),
        Begin(scan(), pause_at=AFTER_SEND),
        AwaitPaused("scheduler"),
        Kill("scheduler"),
        Run(scan(at=LEASE_OVER)),
    ),
    "a_scan_waits_for_the_database": served(
        KEYED,
        Run(enqueue()),
        *_stopped(scan(), "dispatch.claim.written", Begin(scan(name="other"))),
        Await("other", exit_code=0),
    ),
    "an_act_comes_too_late": (
        Run(enqueue(*ONCE)),
        Run(scan()),
        *_stopped(
            operator("retry", ONE, at=1001), "dispatch.retry.before", Run(operator("retry", ONE, at=1002, name="o")), code=1
        ),
    ),
    "recorded_and_purged": served(
        KEYED,
        Run(enqueue()),
        *_stopped(scan(*RECORDED), BEFORE_SEND, Run(operator("purge", ONE, at=1001))),
        Run(enqueue(*EXPIRES, ids=(TWO,))),
        Run(scan(*RECORDED, at=LEASE_OVER)),
        Run(enqueue(*ONCE, *ACK, ids=(THREE,), at=LEASE_OVER)),
        dies(scan(*RECORDED, at=LEASE_OVER), AFTER_SEND),
        Run(scan(*RECORDED, at=LEASE_OVER + 15)),
    ),
    "recorded_and_refused": (
        Run(enqueue("--max-attempts", "2")),
        Run(scan(*RECORDED)),
        Run(scan(*RECORDED, at=BACKED_OFF)),
        Run(revive({BY_COMMAND: TWO}, epoch=0, at=BACKED_OFF)),
        Run(scan(*RECORDED, at=BACKED_OFF)),
    ),
}


async def _run(folder: Path, spawn: str) -> dict[str, Books]:
    async with Supervisor(ROOT, spawn) as supervisor:
        turn = asyncio.Semaphore(4)
        runs = [_one(folder, supervisor, name, turn) for name in STEPS]
        return dict(zip(STEPS, await asyncio.gather(*runs), strict=True))


async def _one(folder: Path, supervisor: Supervisor, name: str, turn: asyncio.Semaphore) -> Books:
    plan = Scenario("dispatch", name, "", "", (*STEPS[name], Export("end", Rows())), Counts(0, 0, 0, 0))
    below = folder / "scenarios" / plan.path
    async with turn:
        result = await ScenarioRunner(plan, supervisor, below).run()
    # What an export holds is compared by the audit alone; everything before it must have gone as the steps say.
    problems = [
        each for each in result.problems if f"step {len(plan.steps)} (export)" not in each and "expected Counts" not in each
    ]
    assert problems == []
    data: Row = json.loads(json.dumps(plan.data()))
    processes: list[Row] = json.loads(json.dumps([process.data(0.0) for process in result.processes]))
    return Books(folder, data, processes, {"end": json.loads((below / "exports" / "end.json").read_text())})


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Books]:
    return asyncio.run(_run(tmp_path_factory.mktemp("undeclared"), "fork"))


@pytest.mark.parametrize("name", STEPS)
def test_what_nobody_declared_is_followed_as_well(name: str, ran: dict[str, Books]) -> None:
    assert ran[name].findings() == []

"""Workers of a pool and of a Dask cluster: the same results as one process, and nothing is lost with a worker that dies."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from outbox.errors import BadInput
from scenarios.errors import EvidenceIncomplete
from scenarios.explore import cluster
from scenarios.explore.campaign import CASES, Campaign, Plan
from scenarios.explore.command import Spreading, _modules
from scenarios.explore.rounds import KEEP_ALL
from scenarios.explore.spread import How, Spread, pool
from scenarios.explore.workers import ATTEMPTS
from tests.explore.ground import KEYED, Ground, Listener, named, plan
from tests.scenarios.watch import Watch
from tests.support import ROOT

Opens = Callable[[Path], AbstractAsyncContextManager[Spread]]
PLANS = {
    "points": plan(KEYED, budget=24, keep=KEEP_ALL),
    "deeper": plan(KEYED, depth=2, budget=90),
    "wire": plan(KEYED, mode="wire", budget=16, keep=KEEP_ALL),
    "pauses": plan(KEYED, mode="pauses", budget=16, keep=KEEP_ALL),
    "lines": plan(KEYED, mode="lines", budget=16, keep=KEEP_ALL),
    "syscalls": plan(KEYED, mode="syscalls", budget=16, keep=KEEP_ALL),
    "power": plan(KEYED, mode="power", budget=16, keep=KEEP_ALL),
    "random": plan(KEYED, mode="random", seed=3, budget=8, keep=KEEP_ALL),
}


class Killer(Listener):
    """Does something when so many cases have ended."""

    def __init__(self, after: int, act: Callable[[], None]) -> None:
        super().__init__([])
        self._after, self._act = after, act

    def ended(self, result: Mapping[str, Any]) -> None:
        super().ended(result)
        if len(self._heard) == self._after:
            self._act()


def spread_out(
    ground: Ground, asked: Plan, out: Path, opens: Opens, listener: Listener | None = None, *, resume: bool = False
) -> Campaign:
    """Run a campaign whose cases are played where `opens` plays them."""
    (out / CASES).mkdir(parents=True, exist_ok=True)

    async def work() -> Campaign:
        async with opens(out) as spread:
            campaign = Campaign(asked, ground.room, out, listener or Listener([]), spread)
            await campaign.run(resume=resume)
            return campaign

    return ground.do(work())


def in_pool(out: Path) -> AbstractAsyncContextManager[Spread]:
    return pool(out, How("fork", _modules((KEYED,))), 2)


def same(one: Path, other: Path) -> None:
    """The results are the same bytes, and the kept cases the same folders with the same files."""
    assert (one / "results.jsonl").read_bytes() == (other / "results.jsonl").read_bytes()
    files = [sorted(path.relative_to(each).as_posix() for path in (each / CASES).rglob("*")) for each in (one, other)]
    assert files[0] == files[1]
    assert not (other / ATTEMPTS).exists()


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("192.0.2.1:8786", "not this machine's loopback"),
        ("scheduler.example:8786", "not this machine's loopback"),
        ("tls://127.0.0.1:8786", "expected 127.0.0.1:PORT"),
        ("127.0.0.1", "expected 127.0.0.1:PORT"),
        ("127.0.0.1:99999", "no address"),
    ],
)
def test_an_address_that_is_not_on_this_machine_is_refused(address: str, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        Spreading(dask=address).check("sqlite")


def test_without_the_library_the_install_line_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(BadInput, match=r"pip install -e '\.\[dask\]'"):
        Spreading(dask="localhost:8786").check("sqlite")


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(BadInput, match="does not go with --dask"):
        Spreading(2, "127.0.0.1:8786").check("sqlite")
    with pytest.raises(BadInput, match="--store postgres does not go"):
        Spreading(2).check("postgres")


def test_a_scheduler_that_is_not_there_is_told_before_anything_is_made() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(BadInput, match="no scheduler answers there"):
        Spreading(dask="127.0.0.1:9").check("sqlite")


class Silent(Executor):
    """Takes every case, and answers none: as a cluster whose scheduler has died. With `cancels` it gives them up."""

    def __init__(self, *, cancels: bool) -> None:
        self._cancels = cancels

    def submit(self, *_arguments: Any, **_named: Any) -> Any:
        taken: Future[Any] = Future()
        if self._cancels:
            taken.cancel()
            taken.set_running_or_notify_cancel()
        return taken


@pytest.mark.parametrize("cancels", [False, True])
def test_an_executor_that_never_answers_ends_the_campaign(ground: Ground, tmp_path: Path, cancels: bool) -> None:
    async def play() -> None:
        spread = Spread(Silent(cancels=cancels), tmp_path, How("fork", ()), 1)
        if not cancels:
            spread.gone.set_result("the scheduler has ended")
        await spread.play(named(KEYED, "send.before#1"), ground.room, 0, tmp_path / "case")

    with pytest.raises(EvidenceIncomplete, match="--resume"):
        ground.do(play())


@pytest.mark.campaign
@pytest.mark.parametrize("mode", PLANS)
def test_a_pool_gives_the_results_of_one_process(ground: Ground, tmp_path: Path, mode: str) -> None:
    ground.campaign(PLANS[mode], tmp_path / "one")
    spread_out(ground, PLANS[mode], tmp_path / "pool", in_pool)
    same(tmp_path / "one", tmp_path / "pool")


@pytest.mark.campaign
def test_a_campaign_whose_pool_died_goes_on_where_it_was(ground: Ground, tmp_path: Path) -> None:
    ground.campaign(PLANS["points"], tmp_path / "one")
    out = tmp_path / "pool"
    with pytest.raises(EvidenceIncomplete, match="--resume"):
        spread_out(ground, PLANS["points"], out, in_pool, Killer(5, lambda: kill_one_of(os.getpid(), "multiprocessing.spawn")))
    spread_out(ground, PLANS["points"], out, in_pool, resume=True)
    same(tmp_path / "one", out)


def kill_one_of(parent: int, word: str) -> None:
    """Kill one worker of a pool."""
    workers = [each for each in psutil.Process(parent).children() if any(word in text for text in each.cmdline())]
    workers[-1].kill()


@dataclass(frozen=True, slots=True)
class Dask:
    """A scheduler and its workers."""

    address: str
    workers: list[subprocess.Popen[str]]
    scheduler: subprocess.Popen[str]

    def opens(self, out: Path) -> AbstractAsyncContextManager[Spread]:
        return cluster.cluster(self.address, out, "fork", _modules((KEYED,)))


def started(stack: contextlib.ExitStack, said: str, module: str, *arguments: str) -> tuple[subprocess.Popen[str], str]:
    """A process of Dask, once it has said so; and the line."""
    command = [sys.executable, "-m", f"distributed.cli.{module}", *arguments, "--host", "127.0.0.1", "--no-dashboard"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)
    stack.callback(process.wait, 30)
    stack.callback(process.send_signal, signal.SIGKILL)
    assert process.stderr is not None
    stack.callback(process.stderr.close)
    for line in process.stderr:
        if said in line:
            return process, line
    raise AssertionError(f"{module} ended before it said {said!r}")


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[Dask]:
    """A scheduler and two workers on loopback, which end with the test."""
    pytest.importorskip("distributed")
    with contextlib.ExitStack() as stack:
        scheduler, line = started(stack, "Scheduler at:", "dask_scheduler", "--port", "0")
        address = line.rpartition(" ")[2].strip()
        more = ("--nthreads", "1", "--no-nanny", "--local-directory")
        workers = [
            started(stack, "Registered to:", "dask_worker", address, *more, str(tmp_path / f"worker-{number}"))[0]
            for number in (1, 2)
        ]
        yield Dask(address, workers, scheduler)


@pytest.mark.campaign
@pytest.mark.parametrize("mode", PLANS)
def test_two_dask_workers_give_the_results_of_one_process(ground: Ground, tmp_path: Path, dask: Dask, mode: str) -> None:
    ground.campaign(PLANS[mode], tmp_path / "one")
    spread_out(ground, PLANS[mode], tmp_path / "dask", dask.opens)
    same(tmp_path / "one", tmp_path / "dask")


@pytest.mark.campaign
def test_a_dask_worker_that_dies_loses_no_case_and_doubles_none(ground: Ground, tmp_path: Path, dask: Dask) -> None:
    ground.campaign(PLANS["points"], tmp_path / "one")
    killed = dask.workers[0]
    children: list[Watch] = []

    def kill() -> None:
        children.append(Watch(child.pid for child in psutil.Process(killed.pid).children(recursive=True)))
        killed.send_signal(signal.SIGKILL)

    spread_out(ground, PLANS["points"], tmp_path / "dask", dask.opens, Killer(6, kill))
    same(tmp_path / "one", tmp_path / "dask")
    assert killed.wait(30) == -signal.SIGKILL
    children[0].assert_all_end()


@pytest.mark.campaign
def test_a_campaign_whose_scheduler_died_ends_at_once_and_goes_on_elsewhere(ground: Ground, tmp_path: Path, dask: Dask) -> None:
    ground.campaign(PLANS["points"], tmp_path / "one")
    killer = Killer(6, lambda: dask.scheduler.send_signal(signal.SIGKILL))
    with pytest.raises(EvidenceIncomplete, match=r"the scheduler at .* has ended.*--resume"):
        spread_out(ground, PLANS["points"], tmp_path / "dask", dask.opens, killer)
    spread_out(ground, PLANS["points"], tmp_path / "dask", in_pool, resume=True)
    same(tmp_path / "one", tmp_path / "dask")


@pytest.mark.campaign
def test_workers_of_other_sources_or_without_the_directory_are_refused(
    ground: Ground, tmp_path: Path, dask: Dask, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(cluster, "sources_digest", lambda: "0" * 64)
        with pytest.raises(BadInput, match="runs other sources"):
            spread_out(ground, PLANS["points"], tmp_path / "sources", dask.opens)
    with monkeypatch.context() as patch:
        patch.setattr(cluster, "SHARED", f"{'x' * 200}/{'y' * 10}")
        patch.setattr(Path, "write_text", lambda *_arguments: None)
        patch.setattr(Path, "unlink", lambda _self: None)
        with pytest.raises(BadInput, match="must be a directory that all share"):
            spread_out(ground, PLANS["points"], tmp_path / "shared", dask.opens)


@pytest.mark.campaign
def test_a_scheduler_that_is_not_there_is_told_at_once(ground: Ground, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no scheduler answers there"):
        spread_out(ground, PLANS["points"], tmp_path / "out", lambda out: cluster.cluster("127.0.0.1:9", out, "fork", ()))

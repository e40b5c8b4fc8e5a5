"""Crash cases a second: against the floor of a case, and against new interpreters.

The floor is what a case cannot do without: two forks (who dies, and who recovers), which send the case's requests to one
receiver that all lanes share and append the sender's records with a sync each. No supervisor, no output that is read, no ports,
no files of the case, no verdict. Between it and the campaign stand the *passes alone*: two passes of the real dispatcher, the
first of which dies, in two bare forks. From them to the floor it is what the program under study costs: its event loop, its
HTTP client, the pages that they write. From the campaign to them it is what exploring costs, and what the other processes of
a case do that die too, a producer or the receiver.

The rate of a campaign leaves out what it does once: it is that of all cases but the first, over the time that they took beyond
a campaign of one case.
"""

import functools
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import outbox.dispatcher
from benchmarks import floor
from benchmarks.measuring import Comparison, Contender, Goal, Part
from outbox import faults, workflow

SUBJECT = "journal/keyed"
# Of a case with two operations: each is sent once; its attempt, receipt and history record are synced, and so are three new
# files.
REQUESTS, SYNCS = 2, 9
CASES, EXEC_CASES = 200, 8
QUICK_CASES = 3
# What one of a case's two processes does: the receiver's port, a path for the case, and which of the two it is.
Half = Callable[[int, Path, int], None]


def parts(quick: bool) -> Iterator[Part]:
    """One lane and two, in forks; two lanes of new interpreters, with fewer cases."""
    cases, executed = (QUICK_CASES, 2) if quick else (CASES, EXEC_CASES)
    with tempfile.TemporaryDirectory() as folder:
        played = Campaigns(Path(folder))
        floor.settled()
        for lanes in (1, 2):
            yield Comparison(
                f"crash cases in {lanes} lane{'s' * (lanes > 1)}",
                "cases a second",
                (
                    Contender("explore", functools.partial(played.rate, "fork", lanes, cases)),
                    Contender("passes alone", functools.partial(alone, passes, lanes, cases, Path(folder))),
                    Contender("floor", functools.partial(alone, sent_and_synced, lanes, cases, Path(folder))),
                    *(
                        [
                            Contender(
                                "new interpreters", functools.partial(played.rate, "exec", lanes, executed), f"{executed} cases"
                            )
                        ]
                        * (lanes == 2)
                    ),
                ),
                (
                    Goal(f"explore: of the floor, lanes {lanes}", "explore", "floor", at_least=0.6),
                    Goal(f"explore: of the passes alone, lanes {lanes}", "explore", "passes alone"),
                    *([Goal("explore: over new interpreters", "explore", "new interpreters", at_least=10)] * (lanes == 2)),
                ),
                note=f"`{SUBJECT}`, {cases} cases; a case of the floor: 2 forks, {REQUESTS} requests, {SYNCS} syncs.",
                rounds=3,
                warm_up=0,
            )


class Campaigns:
    """Campaigns of `run.py explore`, each into a new folder. Every case must hold."""

    def __init__(self, scratch: Path) -> None:
        self._scratch, self._number = scratch, 0

    def rate(self, spawn: str, lanes: int, cases: int, _round: int) -> float:
        """Cases a second, without what a campaign does once."""
        _one, once = self._played(spawn, lanes, 1)
        played, took = self._played(spawn, lanes, cases)
        # So few that what is done once is all of it: only to show that it runs.
        return played / took if took < 1.5 * once else (played - 1) / (took - once)

    def _played(self, spawn: str, lanes: int, cases: int) -> tuple[int, float]:
        """The cases of a campaign and its seconds."""
        self._number += 1
        out = self._scratch / f"campaign-{self._number}"
        command = [sys.executable, "run.py", "explore", "--subject", SUBJECT, "--out", str(out)]
        floor.seconds([*command, "--spawn", spawn, "--jobs", str(lanes), "--budget", str(cases)])
        manifest = json.loads((out / "manifest.json").read_bytes())
        return int(manifest["totals"]["cases"]), float(manifest["run"]["wall_seconds"])


def alone(half: Half, lanes: int, cases: int, scratch: Path, _round: int) -> float:
    """Cases a second, if a case were only two forks that each do their half."""
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        folder = Path(name)
        _prepare(folder, cases)
        with floor.receiver(folder / "receiver") as port:
            return cases / floor.in_lanes(lanes, lambda lane: _lane(half, range(lane, cases, lanes), port, folder))


def _prepare(folder: Path, cases: int) -> None:
    """The folder of each case, with intentions of its own."""
    for number in range(cases):
        for key in range(REQUESTS):
            workflow.submit(folder / str(number), workflow.Intention(f"{number}-{key}", "/operations", floor.BODY))


def _lane(half: Half, cases: range, port: int, folder: Path) -> None:
    """One lane's cases, one after the other."""
    for number in cases:
        for which in range(2):
            work = functools.partial(half, port, folder / str(number), which)
            floor.waited(floor.forked(work), (0, faults.HALT_EXIT_CODE))


def sent_and_synced(port: int, path: Path, which: int) -> None:
    """The share of one process in a case's requests and synced appends."""
    keys = [f"{path.name}-{request}" for request in range(which, REQUESTS, 2)]
    floor.share(port, path / "records", keys, len(range(which, SYNCS, 2)))


def passes(port: int, path: Path, which: int) -> None:
    """A pass of the dispatcher: the first dies where the response is there, the second recovers."""
    if which == 0:
        os.environ[faults.HALT_VARIABLE] = "send.response#1"
    sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - for as long as the process lives
    os.dup2(sys.stderr.fileno(), 2)
    if outbox.dispatcher.main(["--dir", str(path), "--receiver", f"http://127.0.0.1:{port}"]) != 0:
        raise SystemExit("the pass was to deliver")

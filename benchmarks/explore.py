"""How fast crash cases are played: `run.py explore` on the journal workflow against the floor, and against new interpreters.

    python -m benchmarks.explore [--cases N] [--exec-cases N] [--lanes N …]

The floor is what a case cannot do without, and nothing else: two forks of a process that has the dispatcher loaded (who dies,
and who recovers), which send the case's requests to one receiver that all lanes share and append the sender's records with a
sync each. No supervisor, no output that is read, no ports, no files of the case, no verdict.

Between the floor and the campaign stand the *passes alone*: two passes of the real dispatcher, the first of which dies, in two
bare forks, with nothing around them either. From them to the floor it is what the program under study costs: its event loop,
its HTTP client, the pages that they write. From the campaign to them it is what exploring costs, and what the other processes
of a case do that die too, a producer or the receiver.

Both are measured right before and right after the campaign in the same lanes, and the better of two counts. The rate of a
campaign leaves out what it does once: it is that of all cases but the first, over the time that they took beyond a campaign of
one case. Absolute numbers drift with the machine, ratios within one run do not; the load average is printed beside them.
"""

import argparse
import gc
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

import outbox.dispatcher  # a fork of this process costs what a fork of the spawner does
from outbox import faults, workflow

ROOT = Path(__file__).resolve().parents[1]
SUBJECT = "journal/keyed"
# Of a case with two operations: each is sent once; its attempt, receipt and history record are synced, and so are three new
# files.
REQUESTS, SYNCS = 2, 9
RECORD = b"x" * 300 + b"\n"
BODY = b'{"question":"What does the counter say?"}'
# What one of a case's two processes does: the receiver's port, a path for the case, and which of the two it is.
Half = Callable[[int, Path, int], None]


def campaign(spawn: str, lanes: int, cases: int, out: Path) -> tuple[int, float]:
    """The cases of a campaign and its seconds. Every case must hold."""
    command = [sys.executable, "run.py", "explore", "--subject", SUBJECT, "--out", str(out)]
    command += ["--spawn", spawn, "--jobs", str(lanes), "--budget", str(cases)]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr or done.stdout}")
    manifest = json.loads((out / "manifest.json").read_bytes())
    return int(manifest["totals"]["cases"]), float(manifest["run"]["wall_seconds"])


def rate(spawn: str, lanes: int, cases: int, scratch: Path) -> float:
    """Cases a second, without what a campaign does once."""
    _one, once = campaign(spawn, lanes, 1, scratch / f"{spawn}-{lanes}-one")
    played, seconds = campaign(spawn, lanes, cases, scratch / f"{spawn}-{lanes}")
    return (played - 1) / (seconds - once)


def alone(half: Half, lanes: int, cases: int, scratch: Path) -> float:
    """Cases a second, if a case were only two forks that each do their half, in the new folder `scratch`."""
    prepare(scratch, cases)
    receiver = subprocess.Popen(
        [sys.executable, "-m", "receivers", "keyed", "--dir", str(scratch / "receiver")], cwd=ROOT, stdout=subprocess.PIPE
    )
    try:
        assert receiver.stdout is not None
        port = int(receiver.stdout.readline().rpartition(b":")[2])
        began = time.perf_counter()
        lines = [range(lane, cases, lanes) for lane in range(lanes)]
        for worker in [forked(lambda line=line: lane_of(half, line, port, scratch)) for line in lines]:
            waited(worker)
        return cases / (time.perf_counter() - began)
    finally:
        receiver.terminate()
        receiver.wait()


def prepare(scratch: Path, cases: int) -> None:
    """The folder of each case, with intentions of its own."""
    for number in range(cases):
        for key in range(REQUESTS):
            workflow.submit(scratch / str(number), workflow.Intention(f"{number}-{key}", "/operations", BODY))


def lane_of(half: Half, cases: Iterable[int], port: int, scratch: Path) -> None:
    """One lane's cases, one after the other."""
    for number in cases:
        for which in range(2):
            worker = forked(lambda number=number, which=which: half(port, scratch / str(number), which))
            waited(worker, (0, faults.HALT_EXIT_CODE))


def floor(port: int, path: Path, which: int) -> None:
    """The share of one process in a case's requests and synced appends."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for request in range(which, REQUESTS, 2):
        connection.request("POST", "/operations", BODY, {"Idempotency-Key": f"{path.name}-{request}"})
        if connection.getresponse().read() == b"":
            raise SystemExit("the receiver gave no answer")
    connection.close()
    descriptor = os.open(path / "records", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for _ in range(which, SYNCS, 2):
        os.write(descriptor, RECORD)
        os.fsync(descriptor)


def passes(port: int, path: Path, which: int) -> None:
    """A pass of the dispatcher: the first dies where the response is there, the second recovers."""
    if which == 0:
        os.environ[faults.HALT_VARIABLE] = "send.response#1"
    sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - for as long as the process lives
    os.dup2(sys.stderr.fileno(), 2)
    if outbox.dispatcher.main(["--dir", str(path), "--receiver", f"http://127.0.0.1:{port}"]) != 0:
        raise SystemExit("the pass was to deliver")


def forked(work: object) -> int:
    """The pid of a copy of this process that does `work` and ends."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            assert callable(work)
            work()
            code = 0
        finally:
            os._exit(code)
    return pid


def waited(pid: int, codes: Collection[int] = (0,)) -> None:
    """Wait for a copy, which must have ended with one of these codes."""
    _pid, status = os.waitpid(pid, 0)
    if os.waitstatus_to_exitcode(status) not in codes:
        raise SystemExit(f"a process that was measured ended with status {status}")


def load() -> str:
    """The load average of the last minute."""
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def measure(lanes: int, cases: int, scratch: Path) -> float:
    """Measure and print one number of lanes; the campaign's rate."""
    floors, alones = [], []
    explored = 0.0
    for when in ("before", "after"):
        if when == "after":
            explored = rate("fork", lanes, cases, scratch)
        floors.append(alone(floor, lanes, cases, scratch / f"floor-{lanes}-{when}"))
        alones.append(alone(passes, lanes, cases, scratch / f"passes-{lanes}-{when}"))
    print(
        f"{lanes} lane{'s' * (lanes > 1)}: floor {max(floors):6.1f} cases a second ({floors[0]:.1f} and {floors[1]:.1f}), "
        f"passes alone {max(alones):6.1f} ({alones[0]:.1f} and {alones[1]:.1f}), explore {explored:6.1f}: "
        f"{explored / max(floors):.0%} of the floor, {explored / max(alones):.0%} of the passes; {load()}"
    )
    return explored


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.explore", description="Cases a second against the floor.")
    parser.add_argument("--cases", type=int, default=200, metavar="N", help="of each campaign, at most")
    parser.add_argument("--exec-cases", type=int, default=8, metavar="N", help="of the campaign of new interpreters")
    parser.add_argument("--lanes", type=int, nargs="+", default=[1, 2], metavar="N")
    given = parser.parse_args(argv)
    gc.collect()
    gc.freeze()
    print(f"{SUBJECT}; {load()}")
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        for lanes in given.lanes:
            explored = measure(lanes, given.cases, scratch)
        executed = rate("exec", given.lanes[-1], given.exec_cases, scratch)
        print(f"new interpreters: {executed:6.2f} cases a second, {explored / executed:.0f} times slower; {load()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""How fast crash cases are played: `run.py explore` on the journal workflow against the floor, and against new interpreters.

    python -m benchmarks.explore [--cases N] [--exec-cases N] [--lanes N …]

The floor is what a case cannot do without, and nothing else: two forks of a process that has the dispatcher loaded (who dies,
and who recovers), which send the case's requests to one receiver that all lanes share and append the sender's records with a
sync each. No supervisor, no output that is read, no ports, no files of the case, no verdict. It runs right before and right
after the campaign in the same lanes, and the better of the two is the floor. The rate of a campaign leaves out what it does
once: it is that of all cases but the first, over the time that they took beyond a campaign of one case. Absolute numbers
drift with the machine, ratios within one run do not; the load average is printed beside them.
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
from collections.abc import Sequence
from pathlib import Path

import outbox.dispatcher  # noqa: F401 - a fork of this process costs what a fork of the spawner does

ROOT = Path(__file__).resolve().parents[1]
SUBJECT = "journal/keyed"
# Of a case with two operations: each is sent once; its attempt, receipt and history record are synced, and so are three new
# files.
REQUESTS, SYNCS = 2, 9
RECORD = b"x" * 300 + b"\n"
BODY = b'{"question":"What does the counter say?"}'


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


def floor(lanes: int, cases: int, scratch: Path) -> float:
    """Cases a second, if a case were only its forks, requests and syncs."""
    receiver = subprocess.Popen(
        [sys.executable, "-m", "receivers", "keyed", "--dir", str(scratch / "receiver")], cwd=ROOT, stdout=subprocess.PIPE
    )
    try:
        assert receiver.stdout is not None
        port = int(receiver.stdout.readline().rpartition(b":")[2])
        began = time.perf_counter()
        workers = [forked(lambda lane=lane: lane_of(lane, cases // lanes, port, scratch)) for lane in range(lanes)]
        for worker in workers:
            waited(worker)
        return cases // lanes * lanes / (time.perf_counter() - began)
    finally:
        receiver.terminate()
        receiver.wait()


def lane_of(lane: int, cases: int, port: int, scratch: Path) -> None:
    """One lane's cases, one after the other."""
    for number in range(cases):
        path = scratch / f"{lane}-{number}"
        for half in range(2):
            waited(forked(lambda half=half, path=path: part(f"{path.name}-{half}", port, path, half)))


def part(key: str, port: int, path: Path, half: int) -> None:
    """What one of a case's two processes does: its share of the requests and of the synced appends."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for request in range(half, REQUESTS, 2):
        connection.request("POST", "/operations", BODY, {"Idempotency-Key": f"{key}-{request}"})
        if connection.getresponse().read() == b"":
            raise SystemExit("the receiver gave no answer")
    connection.close()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for _ in range(half, SYNCS, 2):
        os.write(descriptor, RECORD)
        os.fsync(descriptor)


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


def waited(pid: int) -> None:
    """Wait for a copy, which must have ended well."""
    _pid, status = os.waitpid(pid, 0)
    if status != 0:
        raise SystemExit(f"a process of the floor ended with status {status}")


def load() -> str:
    """The load average of the last minute."""
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


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
            floors = []
            for which in ("before", "after"):
                if which == "after":
                    explored = rate("fork", lanes, given.cases, scratch)
                place = scratch / f"floor-{lanes}-{which}"
                place.mkdir()
                floors.append(floor(lanes, given.cases, place))
            print(
                f"{lanes} lane{'s' * (lanes > 1)}: floor {max(floors):6.1f} cases a second "
                f"({floors[0]:.1f} and {floors[1]:.1f}), "
                f"explore {explored:6.1f}, {explored / max(floors):.0%} of the floor; {load()}"
            )
        executed = rate("exec", max(given.lanes), given.exec_cases, scratch)
        print(f"new interpreters: {executed:6.2f} cases a second, {explored / executed:.0f} times slower; {load()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

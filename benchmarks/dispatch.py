"""How fast the dispatch outbox delivers: against a bare aiohttp client, and with many finished rows in the table, in one run.

    python -m benchmarks.dispatch [--rows 1000] [--repeat 5] [--concurrency 64] [--postgres URL]
                                  [--finished 1000000] [--memory 100000]

Delivery: the rows go by HTTP to one receiver process, with full durability (SQLite: WAL or TRUNCATE, `synchronous` FULL): a
durable claim before each send and a durable outcome after it. The bare client posts as many bodies to the same receiver with
the same concurrency and keeps nothing. Both are repeated, taking turns; the medians and their ratio are printed. Two receivers:
one that only answers, and `receivers keyed`, which stores each effect.

Due scan: one scan with ten due rows, without and with finished rows. Memory: peak of a process that delivers many due rows,
against one that delivers a hundredth of them.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from aiohttp import web
from sqlalchemy import Connection, insert

from outbox.dispatch import DeliveryOptions, StateDB, deliver_due_dispatches
from outbox.dispatch.schema import dispatch_outbox

ROOT = Path(__file__).resolve().parents[1]
ENOUGH_BATCH = 10_000


async def _answer(request: web.Request) -> web.Response:
    await request.read()
    return web.json_response({})


async def serve_bare() -> None:
    """A receiver that reads, answers, and keeps nothing, until it is ended."""
    app = web.Application()
    app.router.add_post("/{tail:.*}", _answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    print(f"READY {host}:{port}", flush=True)
    await asyncio.Event().wait()


@asynccontextmanager
async def receiver(kind: str, directory: Path) -> AsyncIterator[str]:
    """A receiver process; its URL."""
    command = [sys.executable, "-m", "benchmarks.dispatch", "--serve-bare"]
    if kind != "bare":
        command = [sys.executable, "-m", "receivers", kind, "--dir", str(directory)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        yield f"http://{line.split()[1]}/operations"
    finally:
        process.terminate()
        await process.wait()


async def bare_client(url: str, rows: int, concurrency: int, body: bytes, prefix: str) -> float:
    """Seconds that a plain client takes for as many posts."""
    numbers = iter(range(rows))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency)) as session:

        async def worker() -> None:
            for number in numbers:
                headers = {"Idempotency-Key": f"{prefix}{number:024d}", "Content-Type": "application/json"}
                async with session.post(url, data=body, headers=headers) as response:
                    await response.read()
                    assert response.status == 200, response.status

        began = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(concurrency)))
        return time.perf_counter() - began


def _rows(first: int, number: int, url: str, status: str, at: float) -> list[dict[str, object]]:
    payload = json.dumps({"schema_version": 1, "kind": "bench", "body": {"order": 7}})
    return [
        {
            "id": f"{first + each:032x}",
            "kind": "bench",
            "deliver_to": url,
            "payload": payload,
            "status": status,
            "next_attempt_at": at + each * 1e-6,
            "created_at": at,
            "updated_at": at,
        }
        for each in range(number)
    ]


async def fill(db: StateDB, first: int, number: int, url: str, status: str = "pending") -> None:
    """Insert rows, without their history: what is measured is what comes after."""
    at = time.time() - 60
    for start in range(first, first + number, ENOUGH_BATCH):
        rows = _rows(start, min(ENOUGH_BATCH, first + number - start), url, status, at)

        def work(connection: Connection, rows: list[dict[str, object]] = rows) -> None:
            connection.execute(insert(dispatch_outbox), rows)

        await db.write(work, "filling")


async def outbox(db: StateDB, url: str, first: int, rows: int, concurrency: int) -> float:
    """Seconds that one scan takes for the rows."""
    await fill(db, first, rows, url)
    began = time.perf_counter()
    counts = await deliver_due_dispatches(db, options=DeliveryOptions(concurrency=concurrency))
    took = time.perf_counter() - began
    assert counts["delivered"] == rows, counts
    return took


async def delivery(given: argparse.Namespace, store: str | Path, kind: str) -> None:
    """Bare client and outbox, taking turns."""
    times: dict[str, list[float]] = {"bare client": [], "outbox": []}
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "dispatch.db" if store == "" else store
        async with receiver(kind, Path(scratch) / "receiver") as url, StateDB(path) as db:
            body = json.dumps({"schema_version": 1, "kind": "bench", "body": {"order": 7}}).encode()
            for turn in range(-1, given.repeat):  # the first is for warming up
                bare = await bare_client(url, given.rows, given.concurrency, body, f"{turn + 1:08d}")
                ours = await outbox(db, url, (turn + 2) * 10_000_000 + int(time.time()) * 10**9, given.rows, given.concurrency)
                if turn >= 0:
                    times["bare client"].append(bare)
                    times["outbox"].append(ours)
            info = db.info
    bare, ours = (statistics.median(times[name]) for name in ("bare client", "outbox"))
    ratios = [bare / ours for bare, ours in zip(times["bare client"], times["outbox"], strict=True)]
    mode = info.journal_mode or "synchronous_commit on"
    print(
        f"{info.engine} {info.version} ({mode}), receiver {kind}, {given.rows} rows, {given.concurrency} at once: "
        f"bare client {given.rows / bare:.0f}/s, outbox {given.rows / ours:.0f}/s, "
        f"ratio {statistics.median(ratios):.2f} (from {min(ratios):.2f} to {max(ratios):.2f})"
    )


async def due_scan(finished: int) -> None:
    """A scan of ten due rows beside no and beside many finished rows."""
    medians = []
    with tempfile.TemporaryDirectory() as scratch:
        files = StateDB(Path(scratch) / "a.db"), StateDB(Path(scratch) / "b.db")
        async with receiver("bare", Path(scratch)) as url, files[0] as empty, files[1] as full:
            await fill(full, 10**12, finished, url, "delivered")
            for db in (empty, full):
                await outbox(db, url, 10**13, 10, 10)
            times: dict[str, list[float]] = {"empty": [], "full": []}
            for turn in range(1, 31):
                for name, db in (("empty", empty), ("full", full)):
                    times[name].append(await outbox(db, url, 10**13 + turn * 100, 10, 10))
            medians = [statistics.median(times[name]) for name in ("empty", "full")]
    print(
        f"scan of 10 due rows: {medians[0] * 1000:.1f} ms beside none, {medians[1] * 1000:.1f} ms beside {finished} finished "
        f"rows, ratio {medians[1] / medians[0]:.2f}"
    )


def peak_kib() -> int:
    """The most memory that this program has had. (`ru_maxrss` would count what the parent had when it started us.)"""
    status = Path("/proc/self/status").read_text("ascii", "replace")
    return int(status.partition("VmHWM:")[2].split()[0])


async def one_large_scan(path: str, url: str) -> None:
    """For a process of its own: deliver everything that is due, print the peak of its memory."""
    async with StateDB(path) as db:
        before = peak_kib()
        counts = await deliver_due_dispatches(db)
    print(json.dumps({"delivered": counts["delivered"], "before_kib": before, "peak_kib": peak_kib()}))


async def memory(rows: int) -> None:
    """Peak memory over many due rows and over a hundredth of them, each in a process of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        async with receiver("bare", Path(scratch)) as url:
            for number in (rows // 100, rows):
                path = Path(scratch) / f"{number}.db"
                async with StateDB(path) as db:
                    await fill(db, 1, number, url)
                process = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", "benchmarks.dispatch", "--scan", str(path), url, cwd=ROOT, stdout=subprocess.PIPE
                )
                told, _ = await process.communicate()
                print(f"memory over {number} due rows: {told.decode().strip()}")


async def measure(given: argparse.Namespace) -> None:
    """Everything that was asked for."""
    for kind in ("bare", "keyed"):
        await delivery(given, "", kind)
    if given.postgres:
        await delivery(given, given.postgres, "bare")
    if given.finished:
        await due_scan(given.finished)
    if given.memory:
        await memory(given.memory)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dispatch", description="Measure the dispatch outbox.")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--postgres", metavar="URL", help="an empty database to measure as well")
    parser.add_argument("--finished", type=int, default=1_000_000, help="finished rows beside the due ones; 0: leave it out")
    parser.add_argument("--memory", type=int, default=100_000, help="due rows of the memory measurement; 0: leave it out")
    parser.add_argument("--serve-bare", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--scan", nargs=2, metavar=("DB", "URL"), help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.serve_bare:
        asyncio.run(serve_bare())
    elif given.scan:
        asyncio.run(one_large_scan(*given.scan))
    else:
        asyncio.run(measure(given))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A receiver that only answers and counts: in a process of its own, so that it costs those who are measured nothing.

    python -m benchmarks.receiver

prints `READY host:port`, then answers every POST to /operations at once. It keeps how many posts came, how many different
keys, how many bytes, and when (monotonic clock, in nanoseconds) the last key came that it did not know: `GET /` tells it and
forgets all.
"""

import asyncio
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

from aiohttp import web

from benchmarks.floor import ROOT, Failed

PATH = "/operations"


@dataclass(slots=True)
class Counted:
    """What came since it was last asked."""

    posts: int = 0
    bytes: int = 0
    keys: int = 0
    last_ns: int = 0


@dataclass(slots=True)
class _Counting:
    counted: Counted = field(default_factory=Counted)
    keys: set[str] = field(default_factory=set)

    async def post(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.counted.posts += 1
        self.counted.bytes += len(body)
        key = request.headers.get("Idempotency-Key", "")
        if key not in self.keys:
            self.keys.add(key)
            self.counted.last_ns = time.monotonic_ns()
        return web.json_response({})

    async def get(self, _request: web.Request) -> web.Response:
        self.counted.keys = len(self.keys)
        told = asdict(self.counted)
        self.counted, self.keys = Counted(), set()
        return web.json_response(told)


async def serve() -> None:
    """Answer until this process is ended, or until whoever started it is gone: then its standard input has ended."""
    app, counting = web.Application(), _Counting()
    app.router.add_post(PATH, counting.post)
    app.router.add_get("/", counting.get)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    print(f"READY {host}:{port}", flush=True)
    gone = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, gone.set)
    await gone.wait()


@contextmanager
def receiver(*command: str) -> Iterator[str]:
    """This receiver's process, or that of another `command` that prints READY as well; the URL to post to."""
    chosen = [sys.executable, *(command or ("-m", "benchmarks.receiver"))]
    with subprocess.Popen(chosen, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ready = process.stdout.readline().split()
            if len(ready) != 2:
                raise Failed(f"{' '.join(chosen)} did not start")
            yield f"http://{ready[1]}{PATH}"
        finally:
            process.terminate()


def counted(url: str) -> Counted:
    """Ask the receiver that is posted to at `url`."""
    with urllib.request.urlopen(url.rpartition("/")[0] + "/", timeout=10) as answer:  # noqa: S310
        return Counted(**json.load(answer))


if __name__ == "__main__":
    asyncio.run(serve())

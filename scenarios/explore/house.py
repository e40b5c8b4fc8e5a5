"""A house of receivers: one process that opens and closes many of them, for cases in which no receiver is to die.

    python -m scenarios.explore.house

Each has its own directory, port and journals and serves by the same code as `python -m receivers`; only the process is shared,
so a case is spared the start of one. The house takes lines of JSON on a loopback port that its READY line names: `{"open":
ARGUMENTS}` as for `python -m receivers`, answered by `{"open": PORT}` once it serves, and `{"close": PORT}`, answered when the
receiver has finished. What is wrong is answered by `{"error": TEXT}`. It ends with SIGTERM.
"""

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Sequence
from typing import Any

from outbox.errors import Halt23Error, reported
from receivers.__main__ import KINDS, options, parser
from receivers.server import listen, serving, tell_ready


class House:
    """The receivers that are open, by port."""

    def __init__(self) -> None:
        self._open: dict[int, contextlib.AsyncExitStack] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one harness until it leaves."""
        while line := await reader.readline():
            try:
                answer = await self._answer(json.loads(line))
            except (Halt23Error, OSError) as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            writer.write(json.dumps(answer).encode() + b"\n")
        writer.close()

    async def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if "open" in asked:
            return {"open": await self._enter(asked["open"])}
        await self._open.pop(asked["close"]).aclose()
        return {"close": asked["close"]}

    async def _enter(self, arguments: Sequence[str]) -> int:
        given = parser().parse_args(arguments)
        stack = contextlib.AsyncExitStack()
        listener = await stack.enter_async_context(serving(given.dir, given.port, KINDS[given.kind], options(given)))
        port: int = listener.getsockname()[1]
        self._open[port] = stack
        return port

    async def close(self) -> None:
        """Close every receiver that is open."""
        for stack in self._open.values():
            await stack.aclose()


async def _run() -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    house, listener = House(), listen(0)
    server = await asyncio.start_server(house.serve, sock=listener)
    tell_ready(listener)
    await stopped.wait()
    server.close()
    await house.close()


def main(_argv: Sequence[str] | None = None) -> int:
    """Process entry."""

    def run() -> int:
        asyncio.run(_run())
        return 0

    return reported("house", run)


if __name__ == "__main__":
    sys.exit(main())

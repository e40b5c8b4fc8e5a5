"""Runs the programs once in the process that children are forked from, before the first is: a rehearsal.

What a library does once in a process (imports at the first use, expressions and statements that are compiled, attributes that
are remembered, bytecode that the interpreter specialises) every child would do anew, and it is a fifth of what a short program
costs. After a rehearsal the children find it done.

Only the shipped programs are rehearsed, those that are loaded, on files that nobody keeps and with a receiver in a thread; no
fault is armed. What a program itself remembers is forgotten afterwards, so that each child executes the same lines as a new
interpreter would. A rehearsal that goes wrong costs its time and nothing else: whatever is wrong, the programs will tell.
"""

import asyncio
import contextlib
import io
import logging
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import Queue

from scenarios.engine import lines

_HOST = "receiver.localhost"


def rehearse(run: Callable[[str, Sequence[str]], int]) -> None:
    """Call `run` with each program that is loaded and its arguments. No thread of it is left behind."""
    said = io.StringIO()
    with (
        contextlib.suppress(Exception),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
        tempfile.TemporaryDirectory(prefix="halt23-rehearsal-") as scratch,
        _receiver(Path(scratch) / "receiver") as port,
    ):
        for module, arguments in _programs(Path(scratch), port):
            if module in sys.modules:
                run(module, arguments)
    _forget()


def _programs(scratch: Path, port: int) -> Iterator[tuple[str, Sequence[str]]]:
    """The programs, in an order in which each finds what it needs."""
    journals = ("--dir", str(scratch / "journals"))
    yield "outbox.producer", (*journals, "--key", "rehearsed", "--body", "{}")
    yield "outbox.dispatcher", (*journals, "--receiver", f"http://127.0.0.1:{port}", "--now", "1000")
    database, route = ("--db", str(scratch / "dispatch.db"), "--now", "1000"), f"http://{_HOST}/operations"
    for _ in range(2):  # the second one finds the first's
        yield "scenarios.dispatch.__main__", ("enqueue", *database, "--to", route, "--dedup-key", "rehearsed", f"{1:032x}")
    yield "scenarios.dispatch.__main__", ("scan", *database, "--receiver", f"{_HOST}={port}")


@contextlib.contextmanager
def _receiver(directory: Path) -> Iterator[int]:
    """The port of a receiver that serves meanwhile, in a thread of its own: programs have loops of their own."""
    from receivers.keyed import Keyed  # noqa: PLC0415 - only who rehearses needs it
    from receivers.kind import Options  # noqa: PLC0415
    from receivers.server import serving  # noqa: PLC0415

    told: Queue[tuple[int, Callable[[], object]] | None] = Queue()

    async def serve() -> None:
        stopped, loop = asyncio.Event(), asyncio.get_running_loop()
        async with serving(directory, 0, Keyed, Options()) as listener:
            told.put((listener.getsockname()[1], lambda: loop.call_soon_threadsafe(stopped.set)))
            await stopped.wait()

    def work() -> None:
        try:
            asyncio.run(serve())
        finally:
            told.put(None)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        found = told.get()
        if found is None:
            raise OSError("no receiver can be had")
        port, stop = found
        try:
            yield port
        finally:
            stop()
    finally:
        thread.join()


def _forget() -> None:
    """Forget what programs remember: what they log to, and the answers of functions that are asked once."""
    logging.root.handlers.clear()
    logging.root.setLevel(logging.WARNING)
    for name, module in list(sys.modules.items()):
        if lines.is_studied(name):
            for each in vars(module).values():
                if hasattr(each, "cache_clear"):
                    each.cache_clear()

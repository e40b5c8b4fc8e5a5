"""A program with a loop, a generator, tasks and a thread, whose own lines are watched.

python -m tests.scenarios.lined     with HALT_AT_LINE and LINES_TO as in scenarios.engine.lines
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator, Sequence

from scenarios.engine import lines

LINES = "HALT_AT_LINE", "LINES_TO"


def numbers() -> Iterator[int]:
    for number in range(3):
        yield 2 * number  # MARK generator


async def task(told: list[str], name: str) -> None:
    for number in numbers():
        await asyncio.sleep(0)
        told.append(f"{name}{number}")  # MARK task


def thread(told: list[str]) -> None:
    for number in range(2):
        told.append(f"thread{number}")  # MARK thread


async def tasks(told: list[str]) -> None:
    await asyncio.gather(task(told, "a"), task(told, "b"))


def work() -> list[str]:
    told: list[str] = []
    while len(told) < 3:
        print(f"loop {len(told)}", flush=True)  # MARK loop
        told.append("loop")
    asyncio.run(tasks(told))
    other = threading.Thread(target=thread, args=(told,))
    other.start()
    other.join()  # MARK join
    return [each for each in told if each]  # MARK end


def unwatch() -> None:
    """Take the watch away, as a debugger or a tool for coverage does."""
    if sys.version_info >= (3, 12):
        tool = next(each for each in range(6) if sys.monitoring.get_tool(each) == lines.NAME)
        sys.monitoring.set_events(tool, 0)
    else:
        sys.settrace(None)


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry; what is asked for stands in the arguments as NAME=VALUE, because nobody else watches these modules."""
    vars(lines)["STUDIED"] = (__spec__.name,)
    environment = dict(each.split("=", 1) for each in (sys.argv[1:] if argv is None else argv))
    blind = environment.pop("BLIND", None)
    with lines.watched(environment):
        told = work()
        if blind is not None:
            unwatch()
    print(f"done {len(told)}")
    return 0

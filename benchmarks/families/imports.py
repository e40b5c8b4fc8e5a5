"""What it costs to start: imports of the dispatcher and of the receivers, beside a bare interpreter.

Each in a new interpreter, with byte code that is kept, as users have it. The note beside a program names the modules that took
longest, by the interpreter's own account (`-X importtime`).
"""

import subprocess
import sys
from collections.abc import Iterator

from benchmarks import floor
from benchmarks.measuring import Comparison, Contender, Goal, Part

PROGRAMS = ("outbox.dispatcher", "outbox.dispatch", "outbox.producer", "receivers.server")
HEAVIEST = 5


def parts(quick: bool) -> Iterator[Part]:
    """Every program's imports and the bare interpreter."""
    programs = (PROGRAMS[0], PROGRAMS[-1]) if quick else PROGRAMS
    for name in programs:
        _run(f"import {name}")  # writes the byte code
    yield Comparison(
        "imports",
        "milliseconds",
        (
            Contender("bare interpreter", lambda _round: _run("pass")),
            Contender("aiohttp alone", lambda _round: _run("import aiohttp")),
            *(Contender(name, lambda _round, name=name: _run(f"import {name}"), heaviest(name)) for name in programs),  # type: ignore[misc]
        ),
        (
            Goal("imports: outbox.dispatcher over aiohttp alone", "outbox.dispatcher", "aiohttp alone"),
            Goal("imports: receivers.server over aiohttp alone", "receivers.server", "aiohttp alone"),
        ),
        rounds=9,
        warm_up=0,  # the byte code is there
    )


def _run(program: str) -> float:
    return floor.seconds([sys.executable, "-c", program]) * 1000


def heaviest(module: str) -> str:
    """The packages whose own modules take longest when `module` is imported, with their milliseconds."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", f"import {module}"],
        cwd=floor.ROOT,
        check=True,
        capture_output=True,
        text=True,
        env=floor.environment(),
    )
    taken: dict[str, int] = {}
    for line in done.stderr.splitlines():
        own, _, name = line.removeprefix("import time:").replace("|", " ", 1).partition("|")
        microseconds = own.split()
        if microseconds and microseconds[0].isdigit():
            package = name.strip().partition(".")[0]
            taken[package] = taken.get(package, 0) + int(microseconds[0])
    first = sorted(taken.items(), key=lambda each: -each[1])[:HEAVIEST]
    return ", ".join(f"{package} {microseconds / 1000:.1f}" for package, microseconds in first)

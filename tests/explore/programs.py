"""Programs for subjects of the tests: real programs of this project that are kept from something, or do something beside.

python -m tests.explore.programs NAME [ARGUMENT …]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import outbox.dispatcher  # noqa: F401 - declares the points that are reached here
from outbox import faults
from scenarios.engine.spawner import run_entry


def do_run(module: str, *arguments: str) -> int:
    """Be `module`."""
    return run_entry(module, arguments)


def do_unarmed(module: str, *arguments: str) -> int:
    """Be `module`, deaf to what is armed and observed."""
    for variable in (faults.HALT_VARIABLE, faults.PAUSE_VARIABLE, faults.POINTS_VARIABLE):
        os.environ.pop(variable, None)
    return run_entry(module, arguments)


def do_first_only(module: str, *arguments: str) -> int:
    """Be `module` the first time; afterwards find nothing to do."""
    begun = Path("begun")
    if begun.exists():
        return 0
    begun.touch()
    return run_entry(module, arguments)


def do_noise() -> int:
    """Leave bytes of chance beside the sender's journals."""
    Path("outbox/noise.jsonl").write_bytes(os.urandom(8))
    return 0


def do_fickle() -> int:
    """Reach a point as often as the number says that the folder's name ends with."""
    faults.arm_from_environment()
    for _ in range(int(Path.cwd().name[-1])):
        faults.reach("send.before")
    return 0


def do_shy() -> int:
    """Reach a point, but only while somebody lists them."""
    faults.arm_from_environment()
    if faults.POINTS_VARIABLE in os.environ:
        faults.reach("send.before")
    return 0


def do_often(count: str) -> int:
    """Reach a point so many times."""
    faults.arm_from_environment()
    for _ in range(int(count)):
        faults.reach("send.before")
    return 0


def do_exit(code: str) -> int:
    """End with this code."""
    return int(code)


def do_hang() -> int:
    """Tell the harness's pid of the first one to wait, through a FIFO, and wait for ever."""
    with Path(os.environ.get("HANG", "hang")).open("w") as file:
        file.write(str(os.getpid()))
    read, _write = os.pipe()
    os.read(read, 1)
    return 0


def do_append(path: str, text: str) -> int:
    """Append a line to a file."""
    with Path(path).open("a") as file:
        file.write(f"{text}\n")
    return 0


PROGRAMS: dict[str, Callable[..., int]] = {
    name.removeprefix("do_"): function for name, function in list(globals().items()) if name.startswith("do_")
}


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry."""
    name, *arguments = sys.argv[1:] if argv is None else argv
    return PROGRAMS[name](*arguments)


if __name__ == "__main__":
    sys.exit(main())

"""Programs for subjects of the tests: real programs of this project that are kept from something, or do something beside.

python -m tests.explore.programs NAME [ARGUMENT …]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

# Loaded before the fork, as what is wrapped here would be.
import outbox.dispatcher
import outbox.producer  # noqa: F401
import receivers.__main__  # noqa: F401
from outbox import faults
from scenarios.engine.entry import run_entry
from tests.scenarios.programs import wait_forever


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


def do_first_then_words(module: str, *arguments: str) -> int:
    """Be `module` the first time; afterwards say that there is nothing to do."""
    begun = Path("begun")
    if begun.exists():
        print("0 are due")
        return 0
    begun.touch()
    return run_entry(module, arguments)


def do_never_again(module: str, *arguments: str) -> int:
    """Be `module`, and after one that was to die refuse to be it any more."""
    mark = Path("was-to-die")
    if mark.exists():
        print("the journal is damaged", file=sys.stderr)
        return 14
    if faults.HALT_VARIABLE in os.environ:
        mark.touch()
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
    """Reach a point so many times. Who is to die at the sixth is held there for ever, if somebody reads the FIFO `gate`."""
    faults.arm_from_environment()
    gate = Path(os.environ.get("TMPDIR", "nowhere")) / "gate"
    if os.environ.get(faults.HALT_VARIABLE) == "send.before#6" and gate.exists():
        with gate.open("w") as file:
            file.write("here")
        wait_forever()
    for _ in range(int(count)):
        faults.reach("send.before")
    return 0


def do_exit(code: str) -> int:
    """End with this code."""
    return int(code)


def do_signal(number: str) -> int:
    """Send oneself this signal."""
    os.kill(os.getpid(), int(number))
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

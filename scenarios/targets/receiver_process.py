"""Starting and ending somebody else's programs: with their own environment, bounds on what they may do, and nothing left over.

A program gets PATH, HOME and what the target file says, and nothing of ours: neither our modules nor the rule that hides the
folder of a script from it. It is ended by SIGTERM and, where it does not heed that, by SIGKILL.
"""

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from scenarios.engine.supervisor import Child, Command, Ending, Supervisor
from scenarios.errors import HarnessBug

END_SECONDS = 5.0
KILL_SECONDS = 10.0


class Unusable(Exception):
    """The target cannot be tried at all: its file or its program is at fault, whatever it does about keys."""


def launch(command: Sequence[str], directory: Path, environment: Mapping[str, str]) -> Command:
    """What starts a command of a target in its folder."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    fixed = {"LANG": "C.UTF-8", "TZ": "UTC", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return Command(tuple(command), directory, {**kept, **fixed, **environment})


async def end(supervisor: Supervisor, child: Child, by: signal.Signals = signal.SIGKILL) -> Ending:
    """End a process by a signal, SIGKILL where it does not heed it; returns how it ended. What it wrote is read no longer."""
    supervisor.signal(child, by)
    try:
        ending = await child.wait_ended(END_SECONDS if by != signal.SIGKILL else KILL_SECONDS)
    except TimeoutError:
        if by == signal.SIGKILL:
            raise HarnessBug(f"process {child.pid} does not end by SIGKILL: the machine holds it") from None
        return await end(supervisor, child)
    return ending

"""Records a run: its spawner is started under strace, so that every process of the run is, from its first call on.

The tracer is the parent of all that it traces, which needs no right but that of any user; a machine may refuse it all the same
(no strace, no ptrace in a container), and `unavailable` says why.
"""

import functools
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from scenarios.power.log import TRACED

# More than any program of ours writes in one call; a log that was cut is refused when it is read.
MOST_BYTES = 1 << 24
TRIAL_SECONDS = 20.0
_STRACE = ("strace", "-f", "-yy", "-xx", "-s", str(MOST_BYTES), "-q")


@functools.cache
def unavailable() -> str | None:
    """Why no run can be recorded on this machine; None where one can."""
    if sys.platform != "linux":
        return "strace is there on Linux only"
    if shutil.which("strace") is None:
        return "strace is not installed"
    try:
        tried = subprocess.run(
            [*command(Path("/dev/null")), sys.executable, "-c", ""],
            capture_output=True,
            text=True,
            timeout=TRIAL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"strace cannot be used: {error}"
    if tried.returncode:
        return f"strace may not trace here: {(tried.stderr.strip().splitlines() or ['it said nothing'])[-1]}"
    return None


def command(log: Path) -> Sequence[str]:
    """What a program is started under so that its calls come into `log`."""
    return [*_STRACE, "-o", str(log), "-e", f"trace={','.join(f'?{name}' for name in TRACED)}"]

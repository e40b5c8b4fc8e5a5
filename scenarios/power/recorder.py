"""Records a run: its spawner is started under strace, so that every process of the run is, from its first call on.

The tracer is the parent of all that it traces, which needs no right but that of any user; a machine may refuse it all the same
(no strace, no ptrace in a container): `scenarios.explore.strace` says why.
"""

from collections.abc import Sequence
from pathlib import Path

from scenarios.power.log import TRACED

# More than any program of ours writes in one call; a log that was cut is refused when it is read.
MOST_BYTES = 1 << 24
_STRACE = ("strace", "-f", "-yy", "-xx", "-s", str(MOST_BYTES), "-q")


def command(log: Path) -> Sequence[str]:
    """What a program is started under so that its calls come into `log`."""
    return [*_STRACE, "-o", str(log), "-e", f"trace={','.join(f'?{name}' for name in TRACED)}"]

"""Process entry of the receivers in `scenarios.oracle.kinds`; everything else is that of `receivers`.

python -m scenarios.oracle.receivers VARIANT --dir DIR [--port 0] [--clock FILE]
"""

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from outbox import faults
from outbox.errors import reported
from receivers.kind import Kind, Options
from receivers.server import run
from scenarios.oracle.disks import AnswersFirst
from scenarios.oracle.kinds import ErrorText, ExpiringProgress, Patient, StoredError, StuckInProgress, Warming

KINDS: Mapping[str, type[Kind]] = {
    "warming": Warming,
    "patient": Patient,
    "stored-error": StoredError,
    "stuck-in-progress": StuckInProgress,
    "expiring-progress": ExpiringProgress,
    "error-text": ErrorText,
    "answers-first": AnswersFirst,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry; the exit codes are those of `receivers`."""
    parser = argparse.ArgumentParser(prog="python -m scenarios.oracle.receivers", description="A receiver with one mistake.")
    parser.add_argument("variant", choices=KINDS)
    parser.add_argument("--dir", type=Path, required=True, help="the receiver's directory; created if absent")
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes a free port")
    parser.add_argument("--clock", type=Path, metavar="FILE", help="holds the time in seconds")
    given = parser.parse_args(argv)

    def serve() -> int:
        faults.arm_from_environment()
        asyncio.run(run(given.dir, given.port, KINDS[given.variant], Options(clock=given.clock)))
        return 0

    return reported("receiver", serve)


if __name__ == "__main__":
    sys.exit(main())

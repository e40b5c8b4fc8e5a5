"""Process entry of all receivers.

    python -m receivers keyed|unkeyed --dir DIR [--port 0]

Exit codes: 0 stopped by SIGTERM or SIGINT, 2 bad input, 13 another receiver owns DIR, 14 damaged journal, 16 the machine
refused (port in use, disk full, no permission).
"""

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from outbox import faults
from outbox.errors import BadInput, reported
from receivers import keyed, unkeyed
from receivers.server import Serve, run

KINDS: Mapping[str, Serve] = {"keyed": keyed.serve, "unkeyed": unkeyed.serve}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m receivers", description="Serve POST /operations and GET /effects on 127.0.0.1."
    )
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("--dir", type=Path, required=True, help="the receiver's directory; created if absent")
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes a free port")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry; see the module for the exit codes."""
    arguments = _parser().parse_args(argv)

    def serve() -> int:
        faults.arm_from_environment()
        if not 0 <= arguments.port <= 65535:
            raise BadInput(f"--port {arguments.port}: expected 0 to 65535")
        asyncio.run(run(arguments.dir, arguments.port, KINDS[arguments.kind]))
        return 0

    return reported("receiver", serve)


if __name__ == "__main__":
    sys.exit(main())

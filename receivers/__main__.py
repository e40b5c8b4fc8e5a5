"""Process entry of all receivers.

    python -m receivers KIND --dir DIR [--port 0] [options of the kind]

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
from receivers.capacity import CapacityBounded
from receivers.check_then_act import CheckThenAct
from receivers.effect_then_key import EffectThenKey
from receivers.forgetful import Forgetful
from receivers.key_then_effect import KeyThenEffect
from receivers.keyed import Keyed
from receivers.kind import Kind, Options
from receivers.server import run
from receivers.status_query import StatusQuery
from receivers.unkeyed import Unkeyed
from receivers.volatile_registry import VolatileRegistry

KINDS: Mapping[str, type[Kind]] = {
    "keyed": Keyed,
    "unkeyed": Unkeyed,
    "capacity": CapacityBounded,
    "forgetful": Forgetful,
    "status-query": StatusQuery,
    "volatile-registry": VolatileRegistry,
    "effect-then-key": EffectThenKey,
    "key-then-effect": KeyThenEffect,
    "check-then-act": CheckThenAct,
}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    defaults = Options()
    made = argparse.ArgumentParser(
        prog="python -m receivers", description="Serve POST /operations and GET /effects on 127.0.0.1."
    )
    made.add_argument("kind", choices=KINDS)
    made.add_argument("--dir", type=Path, required=True, help="the receiver's directory; created if absent")
    made.add_argument("--port", type=int, default=0, help="0, the default, takes a free port")
    made.add_argument(
        "--conflict-status", type=int, choices=(409, 422), default=defaults.conflict_status, help="answer to other bytes"
    )
    made.add_argument("--in-flight", choices=("wait", "reject"), default=defaults.in_flight, help="for duplicates meanwhile")
    made.add_argument("--capacity", type=int, default=defaults.capacity, metavar="KEYS", help="of a capacity kind")
    made.add_argument("--retention-seconds", type=float, default=defaults.retention_seconds, help="of a forgetful kind")
    made.add_argument("--clock", type=Path, metavar="FILE", help="holds the time in seconds, for a forgetful receiver")
    made.add_argument("--gate", type=int, default=0, metavar="N", help="hold the first N requests until all are there")
    made.add_argument("--work-until", type=int, default=0, metavar="N", help="performing an effect takes until N requests came")
    return made


def options(arguments: argparse.Namespace) -> Options:
    """The options among the arguments. Raises BadInput."""
    names = ("conflict_status", "in_flight", "capacity", "retention_seconds", "clock", "gate", "work_until")
    made = Options(**{name: getattr(arguments, name) for name in names})
    if not 0 <= arguments.port <= 65535:
        raise BadInput(f"--port {arguments.port}: expected 0 to 65535")
    if not 0 <= made.retention_seconds < float("inf"):
        raise BadInput(f"--retention-seconds {made.retention_seconds}: expected a number that is not negative")
    if made.capacity < 1 or made.gate < 0 or made.work_until < 0:
        raise BadInput("--capacity must be positive, --gate and --work-until not negative")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry; see the module for the exit codes."""
    arguments = parser().parse_args(argv)

    def serve() -> int:
        faults.arm_from_environment()
        asyncio.run(run(arguments.dir, arguments.port, KINDS[arguments.kind], options(arguments)))
        return 0

    return reported("receiver", serve)


if __name__ == "__main__":
    sys.exit(main())

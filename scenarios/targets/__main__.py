"""`run.py check` where there is no run.py: `halt23-check worker TARGET.toml --out DIR`, or `python -m scenarios.targets`."""

import argparse
import sys
from collections.abc import Sequence

from outbox.errors import reported
from scenarios.targets import command


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry."""
    parser = argparse.ArgumentParser(prog="halt23-check", description="Check somebody else's worker or receiver.")
    command.add_to(parser)
    arguments = parser.parse_args(argv)
    return reported("check", lambda: int(arguments.command(arguments)))


if __name__ == "__main__":
    sys.exit(main())

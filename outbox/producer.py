"""Process entry that persists one intention, and sends nothing.

    python -m outbox.producer --dir DIR --key KEY --body TEXT

prints one line of JSON: the intention's key, and whether it is new. Saying the same again is harmless; another body under a
known key is refused. Exit codes: 0 persisted, 2 bad input, 13 another producer holds the journal, 14 damaged journal, 16 the
machine refused.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from outbox import faults
from outbox.errors import BadInput, reported, say
from outbox.workflow import MAX_BODY_BYTES, Intention, submit


def _body(arguments: argparse.Namespace) -> bytes:
    if arguments.body is not None:
        return os.fsencode(arguments.body)
    source = arguments.body_file
    try:
        if source == "-":
            if sys.stdin is None:
                raise BadInput("--body-file -: standard input is closed")
            return sys.stdin.buffer.read(MAX_BODY_BYTES + 1)
        with Path(source).open("rb") as file:
            return file.read(MAX_BODY_BYTES + 1)
    except OSError as error:
        raise BadInput(f"--body-file {source}: {error.strerror}") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m outbox.producer", description="Persist an intention; a dispatcher sends it later."
    )
    parser.add_argument("--dir", type=Path, required=True, help="the outbox's directory; created if absent")
    parser.add_argument("--key", required=True, help="the operation's identity, sent as Idempotency-Key")
    parser.add_argument("--route", default="/operations", help="path at the receiver")
    body = parser.add_mutually_exclusive_group(required=True)
    body.add_argument("--body", metavar="TEXT", help="the request's body")
    body.add_argument("--body-file", metavar="FILE", help="take the body's bytes from FILE, or from standard input with -")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry; see the module for the exit codes."""
    arguments = _parser().parse_args(argv)

    def run() -> int:
        faults.arm_from_environment()
        created = submit(arguments.dir, Intention(arguments.key, arguments.route, _body(arguments)))
        say(json.dumps({"intention": arguments.key, "created": created}), sys.stdout)
        return 0

    return reported("producer", run)


if __name__ == "__main__":
    sys.exit(main())

"""Opens a journal of effects that was cut after each byte of its last record, and records what is found each time.

    python -m scenarios.prefixes --dir DIR --source FILE

For every K from none to all bytes of the last record, a copy that ends K bytes into it is opened as a receiver opens it, and
one more effect is applied. One record in the journal `prefixes` says how many records had been kept, and that afterwards the
journal reads well again. Exit codes: 0 done, 2 bad input, 13 another process owns DIR, 14 a prefix could not be opened, 16
the machine refused. The copies live in a temporary folder; FILE is not touched. An instrument, not under study.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from outbox import journal
from outbox.errors import BadInput, reported
from receivers.arrivals import Arrival
from receivers.ledger import EFFECTS, Ledger

PREFIXES = journal.declare("prefixes", "prefix", under_study=False, synced=False)


def examine(content: bytes, bytes_of_last: int, scratch: Path) -> dict[str, int]:
    """Open the journal cut `bytes_of_last` bytes into its last record, apply one more effect, and read it again."""
    start_of_last = content.rstrip(b"\n").rfind(b"\n") + 1
    EFFECTS.path(scratch).write_bytes(content[: start_of_last + bytes_of_last])
    ledger = Ledger(scratch)
    try:
        kept = len(ledger)
        arrival = Arrival("arrival-after", "POST", "/operations", "after", None, None, None, "0" * 64, 0)
        ledger.apply("after", arrival, "after")
    finally:
        ledger.close()
    return {"bytes": bytes_of_last, "kept": kept, "after": sum(1 for _ in EFFECTS.read(scratch))}


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry; see the module for the exit codes."""
    parser = argparse.ArgumentParser(prog="python -m scenarios.prefixes", description="Open every prefix of a last record.")
    parser.add_argument("--dir", type=Path, required=True, help="where the findings are recorded")
    parser.add_argument("--source", type=Path, required=True, metavar="FILE", help="an effects.jsonl; it is not touched")
    given = parser.parse_args(argv)

    def run() -> int:
        try:
            content = given.source.read_bytes()
        except OSError as error:
            raise BadInput(f"--source {given.source}: {error.strerror}") from error
        length = len(content) - content.rstrip(b"\n").rfind(b"\n") - 1
        journal.make_directory(given.dir)
        with tempfile.TemporaryDirectory() as scratch, PREFIXES.open(given.dir) as prefixes:
            for bytes_of_last in range(length + 1):
                prefixes.append("prefix", str(bytes_of_last), examine(content, bytes_of_last, Path(scratch)))
        return 0

    return reported("prefixes", run)


if __name__ == "__main__":
    sys.exit(main())

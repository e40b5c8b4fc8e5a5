"""A consumer that acknowledges what it has, and only then. An instrument of the explored subjects, not under study.

    python -m scenarios.explore.consumer EFFECTS ID ACKNOWLEDGE …

It looks for an effect of ID in the receiver's journal EFFECTS and, if there is one, runs `python -m outbox.dispatch ACKNOWLEDGE
…` in this process. Exit codes: 1 there is nothing to acknowledge yet, else those of the outbox's command line.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from outbox.dispatch import cli
from scenarios.explore.state import read_lines

NOTHING_YET = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry; see the module for the exit codes."""
    effects, identity, *acknowledge = sys.argv[1:] if argv is None else argv
    if not any(record["data"]["key"] == identity for record in read_lines(Path(effects)).of_type("effect")):
        return NOTHING_YET
    return cli.main(acknowledge)


if __name__ == "__main__":
    sys.exit(main())

"""Runs a program in a new interpreter with its lines watched: `python -m scenarios.engine.lined MODULE ARGUMENT …`.

Programs that are forked need no such thing: their parent is a Python that begins to watch in the child. See
`scenarios.engine.lines`.
"""

import sys

from scenarios.engine.entry import run_entry


def main() -> int:
    """Process entry; the exit code is the program's."""
    sys.argv = sys.argv[1:]
    return run_entry(sys.argv[0], sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())

"""One process of one queue: enqueue or do so many jobs, and print what it took as one line of JSON.

python -m benchmarks.peers NAME enqueue|work STORE URL JOBS AT_ONCE
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from benchmarks.peers.jobs import jobs
from benchmarks.peers.known import KNOWN


def main(argv: Sequence[str]) -> int:
    """Do it, and print."""
    name, command, store, url, number, at_once = argv
    queue = KNOWN[name].load()
    given = jobs(url, int(number))
    told = queue.enqueue(store, given) if command == "enqueue" else queue.work(store, len(given), int(at_once))
    print(json.dumps(asdict(told)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

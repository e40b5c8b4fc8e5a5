"""Which modules a spawner can load for the forks of a program: those that come from the same file without the program, and
start no thread. Run by its path, with the program's environment: it reads lines `NAME<tab>FILE` and prints a JSON object.
"""

import contextlib
import importlib
import json
import os
import sys


def main() -> None:
    """Import what is asked for, and tell of it."""
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123 - nothing is imported that need not be
        asked = [line.rstrip("\n").split("\t") for line in file]
    good = []
    # What they print when they are imported is not for us.
    said = os.dup(1)
    os.dup2(2, 1)
    for name, origin in asked:
        with contextlib.suppress(Exception):
            spec = importlib.import_module(name).__spec__
            if spec is not None and (spec.origin or "") == origin:
                good.append(name)
    threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1  # noqa: PTH112, PTH208
    os.write(said, json.dumps({"modules": good, "threads": threads}).encode())


if __name__ == "__main__":
    main()

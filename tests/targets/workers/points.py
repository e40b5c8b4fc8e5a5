"""A worker with fault points of its own: it appends each to POINTS_TO and halts at HALT_AT. Material of the tests.

python points.py enqueue JOB URL | work
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from collections import Counter
from pathlib import Path

REACHED: Counter[str] = Counter()


def reach(point: str) -> None:
    REACHED[point] += 1
    if "POINTS_TO" in os.environ:
        with open(os.environ["POINTS_TO"], "a") as file:
            file.write(f"{point}\n")
    if os.environ.get("HALT_AT") == f"{point}#{REACHED[point]}":
        os._exit(23)


def enqueue(name: str, url: str) -> None:
    Path(f"{name}.new").write_text(json.dumps([name, url]))
    reach("file.written")
    Path(f"{name}.new").rename(f"{name}.json")


def work() -> None:
    for path in sorted(Path().glob("*.json")):
        name, url = json.loads(path.read_text())
        body = json.dumps({"job": name}).encode()
        request = urllib.request.Request(url, body, {"Idempotency-Key": name}, method="POST")
        urllib.request.urlopen(request, timeout=10).close()
        reach("job.sent")
        path.unlink()


if __name__ == "__main__":
    if sys.argv[1] == "enqueue":
        enqueue(*sys.argv[2:])
    else:
        work()

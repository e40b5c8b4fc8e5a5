"""Journals of any size, and processes that do one thing with them and tell what it took.

    python -m benchmarks.journals open|read|floor|pass DIR      prints {"seconds": .., "peak_mib": ..}

The files are written as the outbox writes them, record by record, without its syncs: what is measured is what comes after. The
floor reads the same lines and takes the sum of each.
"""

import asyncio
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from benchmarks import floor
from outbox import journal, workflow
from outbox.record import encode, genesis

BODY = b'{"question":"What does the counter say?"}'
RESULT = journal.payload(b'{"answer":"The counter is now 1.","counter":1}')


def write(directory: Path, records: int, names: tuple[str, ...]) -> None:
    """A new folder with so many records in each of these journals: intentions that are delivered and done."""
    directory.mkdir()
    with ExitStack() as files:
        opened = {name: files.enter_context((directory / f"{name}.jsonl").open("wb")) for name in names}
        last = {name: genesis(name) for name in names}
        for sequence in range(1, records + 1):
            for name in names:
                kind, record_id, data = _RECORDS[name](f"turn-{sequence:07d}")
                line, last[name] = encode(last[name], sequence, kind, record_id, data)
                opened[name].write(line)


def _intention(key: str) -> tuple[str, str, Mapping[str, object]]:
    data = {"key": key, "route": "/operations", "body": journal.payload(BODY), "fingerprint": journal.fingerprint(BODY)}
    return "intention", key, data


def _attempt(key: str) -> tuple[str, str, Mapping[str, object]]:
    return "attempt", f"{key}#1", {"intention": key, "number": 1, "key": key, "fingerprint": journal.fingerprint(BODY)}


def _receipt(key: str) -> tuple[str, str, Mapping[str, object]]:
    told = {"attempt": 1, "via": "response", "status": 200, "replayed": False, "result": RESULT}
    return "receipt", key, {"intention": key, "key": key, "fingerprint": journal.fingerprint(BODY), **told}


def _history(key: str) -> tuple[str, str, Mapping[str, object]]:
    return "history", key, {"question": journal.payload(BODY), "answer": RESULT}


_RECORDS = {"intentions": _intention, "attempts": _attempt, "receipts": _receipt, "history": _history}
ALL = tuple(_RECORDS)


def opened(directory: Path) -> None:
    """Open the receipts for appending: every record is checked."""
    workflow.RECEIPTS.open(directory).close()


def read(directory: Path) -> None:
    """Stream the receipts."""
    for _record in workflow.RECEIPTS.read(directory):
        pass


def plain(directory: Path) -> None:
    """Read the lines of the receipts, and take the sum of each."""
    with (directory / "receipts.jsonl").open("rb") as file:
        for line in file:
            hashlib.sha256(line).hexdigest()


def passed(directory: Path) -> None:
    """A pass of the dispatcher over what is all delivered: it sends nothing."""
    from outbox import dispatcher  # noqa: PLC0415 - an HTTP client, which the others do without

    summary = asyncio.run(dispatcher.dispatch(directory, "http://127.0.0.1:9"))
    if summary.already_delivered != summary.intentions:
        raise SystemExit("not everything was delivered")


WORK: Mapping[str, Callable[[Path], None]] = {"open": opened, "read": read, "floor": plain, "pass": passed}


def took(work: str, directory: Path) -> dict[str, float]:
    """What one of WORK takes in a process of its own: `seconds` of it alone, and `peak_mib` of the whole process."""
    command = [sys.executable, "-m", "benchmarks.journals", work, str(directory)]
    done = subprocess.run(command, cwd=floor.ROOT, check=True, stdout=subprocess.PIPE, env=floor.environment())
    return dict(json.loads(done.stdout))


def main() -> None:
    """What a process of `took` does."""
    work, directory = WORK[sys.argv[1]], Path(sys.argv[2])
    began = time.perf_counter()
    work(directory)
    print(json.dumps({"seconds": time.perf_counter() - began, "peak_mib": floor.peak_mib()}))


if __name__ == "__main__":
    main()

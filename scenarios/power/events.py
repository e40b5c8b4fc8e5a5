"""What a recorded run did to its files, and what it told others: frozen values, and the line of JSON that each is kept as.

Paths are relative to the folder of the run. Every event but `tell` and `end` is one system call that succeeded; they stand in
the order in which their effects may be taken to have come (see `scenarios.power.log`).
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

DIRECTORY, CREATE, WRITE, TRUNCATE, SYNC, RENAME, REMOVE, TELL, END = (
    "directory", "create", "write", "truncate", "sync", "rename", "remove", "tell", "end",
)  # fmt: skip
OUTPUT, NETWORK = "output", "network"


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that `process` did.

    `path` is the file or directory; of a `tell` it is OUTPUT or NETWORK. `to` is a rename's new name. `number` is a write's
    offset, a truncation's size, an end's exit code (-1 for a signal), and for a sync how many events had ended when it began:
    these, and no others, it makes durable. `data` is what was written.
    """

    kind: str
    process: str
    path: str = ""
    to: str = ""
    number: int = 0
    data: bytes = b""


def line(event: Event) -> str:
    """The event as one line of JSON, its bytes as characters of the same number."""
    told = {"kind": event.kind, "process": event.process, "path": event.path, "to": event.to, "number": event.number}
    return json.dumps({**told, "data": event.data.decode("latin-1")}, ensure_ascii=True, separators=(",", ":"))


def read(lines: Iterable[str]) -> Iterator[Event]:
    """The events of such lines."""
    for text in lines:
        told = json.loads(text)
        yield Event(**{**told, "data": told["data"].encode("latin-1")})


def write(path: Path, events: Iterable[Event]) -> None:
    """Keep events in a file. Raises OSError."""
    path.write_text("".join(f"{line(each)}\n" for each in events), encoding="ascii")

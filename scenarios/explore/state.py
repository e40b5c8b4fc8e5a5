"""What is durable on both sides, read from the files that processes left; nothing here trusts the programs' own readers.

A line of a journal counts where its checksum fits; what does not is damage, and a last line without its newline is a torn tail.
The digest stands for the whole state: two deaths that left the same digest have the same future.
"""

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OPENING = b'{"sha256":"'
_REST_AT = len(OPENING) + 64 + 2
_SHAPE = {"type": str, "id": str, "data": dict}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a case plays: its directory, and the address of its database where it has one. `tables` are what a database held
    that is gone."""

    directory: Path
    database: str | None = None
    tables: Mapping[str, Any] | None = None


class Unreadable(Exception):
    """What is durable cannot be read. The sentence names the file and what was met."""


@contextlib.contextmanager
def reading(name: str) -> Iterator[None]:
    """Whatever goes wrong while `name` is read is Unreadable. The sentence holds no path: it is the same in every folder."""
    try:
        yield
    except Unreadable:
        raise
    except Exception as error:
        said = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise Unreadable(f"{name}: {type(error).__name__}: {said}") from error


@dataclass(frozen=True, slots=True)
class State:
    """One look at the durable state.

    `effects`, `receipts` and `history` count by operation key, `arrivals` and `attempts` (as the sender recorded them) in all;
    `unfinished` says what the sender still has to do, `ended` how it gave an operation up, by key: a status word. `uncaused`
    are sentences about what happened without a cause: out of its turn, after its deadline, with a result that nobody gave;
    `repeated` about what was recorded more than once, beside effects and receipts.
    `intended` are the operations that the sender knows of. `torn` and `damaged` name files with a torn tail and with lines that
    are not what was written. `told` is the whole in words.
    `contents`, by relative path, and `tables` are what the digest is made of.
    """

    digest: str
    effects: Mapping[str, int]
    receipts: Mapping[str, int]
    history: Mapping[str, int]
    arrivals: int
    attempts: int
    unfinished: tuple[str, ...]
    ended: Mapping[str, str]
    uncaused: tuple[str, ...]
    torn: tuple[str, ...]
    damaged: tuple[str, ...]
    told: str
    intended: tuple[str, ...] = ()
    contents: Mapping[str, bytes] = field(default_factory=dict)
    tables: Mapping[str, Any] = field(default_factory=dict)
    repeated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lines:
    """The records of one journal file that are whole, and what else it holds."""

    name: str
    records: tuple[Mapping[str, Any], ...]
    torn_bytes: int
    damaged_lines: int

    def of_type(self, kind: str) -> list[Mapping[str, Any]]:
        """The records of this type."""
        return [record for record in self.records if record["type"] == kind]


def read_lines(path: Path) -> Lines:
    """Read a journal file; a file that is not there is empty. Raises Unreadable."""
    with reading(f"{path.parent.name}/{path.name}"):
        content = path.read_bytes() if path.exists() else b""
    return lines_of(path.name, content)


def lines_of(name: str, content: bytes) -> Lines:
    """The lines of a journal file that holds these bytes."""
    *lines, tail = content.split(b"\n")
    records = [_record(line) for line in lines]
    whole = tuple(record for record in records if record is not None)
    return Lines(name, whole, len(tail), len(records) - len(whole))


def _record(line: bytes) -> Mapping[str, Any] | None:
    rest = line[_REST_AT:]
    if not line.startswith(OPENING) or line[len(OPENING) : len(OPENING) + 64].decode("ascii", "replace") != _sha256(rest):
        return None
    try:
        record: Mapping[str, Any] = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if all(isinstance(record.get(name), kind) for name, kind in _SHAPE.items()) else None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def digest_of(contents: Mapping[str, bytes]) -> str:
    """One hash over the names and bytes of files."""
    whole = hashlib.sha256()
    for name, content in sorted(contents.items()):
        whole.update(f"{name} {len(content)}\n".encode())
        whole.update(content)
    return whole.hexdigest()


def unread() -> State:
    """What stands for a state that could not be read: nothing is known of it."""
    return State(digest_of({}), {}, {}, {}, 0, 0, (), {}, (), (), (), "")


def counted(keys: Iterable[str]) -> dict[str, int]:
    """How often each key occurs."""
    return dict(Counter(keys))


def in_words(counts: Mapping[str, int]) -> str:
    """`1 intention, 2 attempts, 0 receipts`."""
    return ", ".join(f"{number} {_word(noun, number)}" for noun, number in counts.items())


def _word(noun: str, number: int) -> str:
    if number == 1:
        return noun
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"

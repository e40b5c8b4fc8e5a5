"""One record of a journal as one line of bytes, and back again.

A line is an ASCII JSON object that `jq` can read. Its first member is the SHA-256 of all bytes behind it, the second the
same sum of the record before, so a record can be neither changed nor removed, added or moved without a trace:

    {"sha256":"…","previous":"…","sequence":1,"type":"receipt","id":"turn-1","data":{…}}

The checksum covers bytes, not values, so that checking a line costs one hash and no second serialisation. It protects against
accidents and quiet edits; it is no signature, whoever recomputes the whole chain is not noticed here.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

# One record stays readable by simple tools; a body that is larger belongs in a file of its own.
MAX_LINE_BYTES = 16 * 1024 * 1024
MAX_ID_CHARACTERS = 300
MAX_DEPTH = 64

_HEAD = b'{"sha256":"'
_AFTER_SUM = b'",'
_COVERED_FROM = len(_HEAD) + 64 + len(_AFTER_SUM)
_HEX = frozenset(b"0123456789abcdef")
_SCALARS = frozenset({str, int, float, bool, type(None)})
_MEMBERS = ("previous", "sequence", "type", "id", "data")

_decoder = json.JSONDecoder()
_encoder = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True)


class Record(NamedTuple):
    """One complete record: `sequence` counts from 1, `data` is what the writer gave, `previous` is the sum it is bound to."""

    previous: str
    sequence: int
    type: str
    id: str
    data: Mapping[str, Any]
    sha256: str


class BadRecord(ValueError):
    """A line is not the record that must stand there; the text says why. Internal: callers add the file and the line."""


def check_shape(value: object, levels: int = MAX_DEPTH) -> None:
    """Raise ValueError if `value` is nested deeper than every reader can follow, or if a member's name is no text."""
    if isinstance(value, Mapping) and not all(isinstance(name, str) for name in value):
        raise ValueError("a member's name is not text")
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    if levels == 0:
        raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
    for each in inner:
        if levels == 1 or type(each) not in _SCALARS:
            check_shape(each, levels - 1)


def canonical(value: object) -> str:
    """JSON text of `value`: ASCII, no blanks, members sorted. Equal values give equal text. Raises ValueError for NaN."""
    return _encoder.encode(value)


def genesis(journal_name: str) -> str:
    """What the first record of the journal `journal_name` is bound to: a record cannot move to another journal either."""
    return sha256(f"halt23 journal 1 {journal_name}".encode()).hexdigest()


def encode(previous: str, sequence: int, record_type: str, record_id: str, data: Mapping[str, Any]) -> tuple[bytes, str]:
    """The line (with its newline) of a record and its checksum. Raises ValueError for values that JSON cannot hold."""
    covered = (
        f'"previous":"{previous}","sequence":{sequence},"type":{canonical(record_type)},'
        f'"id":{canonical(record_id)},"data":{canonical(data)}}}'
    ).encode("ascii")
    checksum = sha256(covered).hexdigest()
    return b"".join((_HEAD, checksum.encode(), _AFTER_SUM, covered, b"\n")), checksum


def decode(line: bytes) -> Record:
    """Read `line` (without its newline) and check its own sum. Raises BadRecord with the first reason found."""
    if not line.startswith(_HEAD) or line[_COVERED_FROM - len(_AFTER_SUM) : _COVERED_FROM] != _AFTER_SUM:
        raise BadRecord("it does not begin as a record does")
    checksum = line[len(_HEAD) : len(_HEAD) + 64].decode("ascii", "replace")
    actual = sha256(line[_COVERED_FROM:]).hexdigest()
    if checksum != actual:
        raise BadRecord(f"its checksum is {actual}, the line says {checksum}")
    try:
        value = _decoder.decode(line.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"it cannot be read although its checksum is right: {error!r}") from None
    if isinstance(value, dict):
        previous, sequence, kind, name, data = (value.get(member) for member in _MEMBERS)
        if (isinstance(previous, str) and isinstance(sequence, int) and isinstance(kind, str)) and (
            isinstance(name, str) and isinstance(data, dict)
        ):
            return Record(previous, sequence, kind, name, data, checksum)
    raise BadRecord("its checksum is right, but its members are not those of a record")


def decode_as_written(line: bytes, previous: str, sequence: int) -> Record | None:
    """`decode_bound` for a `line` with its newline, if it is framed as `encode` does it; None for any other line, good or bad.

    Nearly every line is: what is known beforehand is compared, and only the rest is parsed.
    """
    checksum = sha256(line[_COVERED_FROM:-1]).hexdigest()
    known = f'{{"sha256":"{checksum}","previous":"{previous}","sequence":{sequence},'
    try:
        text = line.decode("ascii")
        if not text.startswith(known):
            return None
        rest = "{" + text[len(known) :]
        members, end = _decoder.raw_decode(rest)
        kind, name, data = members["type"], members["id"], members["data"]
    except (ValueError, KeyError, RecursionError):
        return None
    alone = len(members) == 3 and rest[end:] == "\n"
    if alone and type(kind) is str and type(name) is str and type(data) is dict:
        return Record(previous, sequence, kind, name, data, checksum)
    return None


def decode_bound(line: bytes, previous: str, sequence: int) -> Record:
    """`decode`, and it must be record number `sequence` behind the record with sum `previous`. Raises BadRecord."""
    record = decode(line)
    if record.previous != previous or record.sequence != sequence:
        raise BadRecord(
            f"it is bound to another record than the one before it (sequence {record.sequence}, expected {sequence}): "
            "a record was removed, added or moved"
        )
    return record


def is_torn_beginning(tail: bytes, previous: str, sequence: int) -> bool:
    """Whether `tail`, a last line without newline, can be what an interrupted write of the next record leaves.

    That is: the beginning of such a record whose object is not closed yet, or nothing but zero bytes (a file that grew
    before its data came). Anything else was not left by a write of ours, and must not be cut away.
    """
    if not tail.strip(b"\0"):
        return True
    head, middle = tail[: len(_HEAD)], tail[len(_HEAD) : len(_HEAD) + 64]
    rest = tail[len(_HEAD) + 64 :]
    expected = _AFTER_SUM + f'"previous":"{previous}","sequence":{sequence},'.encode()
    if not (_HEAD.startswith(head) and _HEX.issuperset(middle)):
        return False
    if len(rest) <= len(expected):
        return expected.startswith(rest)
    return rest.startswith(expected) and not _holds_closed_object(tail)


def _holds_closed_object(tail: bytes) -> bool:
    try:
        _decoder.raw_decode(tail.decode("latin-1"))
    except ValueError:
        return False
    except RecursionError:
        return True
    return True


def payload(content: bytes) -> dict[str, str]:
    """Bytes as a JSON value that keeps them exactly: as text where they are UTF-8, else as base64."""
    try:
        return {"content": content.decode("utf-8"), "encoding": "utf-8"}
    except UnicodeDecodeError:
        return {"content": base64.b64encode(content).decode("ascii"), "encoding": "base64"}


def payload_bytes(value: Mapping[str, str]) -> bytes:
    """The bytes that `payload` was given. Raises BadRecord where `value` is not a payload."""
    try:
        if value["encoding"] == "utf-8":
            return value["content"].encode("utf-8")
        if value["encoding"] == "base64":
            return base64.b64decode(value["content"], validate=True)
    except (KeyError, TypeError, AttributeError, UnicodeEncodeError, binascii.Error) as error:
        raise BadRecord(f"a payload that cannot be read: {error!r}") from None
    raise BadRecord(f"a payload in the unknown encoding {value['encoding']!r}")


def fingerprint(body: bytes) -> str:
    """SHA-256 of exact body bytes, 64 hex digits: what a key is bound to."""
    return sha256(body).hexdigest()

"""JSON as the contract has it: ASCII, no duplicate members, no NaN or Infinity, one newline at the end.

Scanner and encoder are the C functions that the `json` package itself uses. They are taken directly because importing the
package loads regular expressions, which takes half as long as a bare interpreter start; where they are missing the package
is used. `encode` writes a value in the one canonical form (sorted members, no blanks), with which journals are held byte
for byte and the protocol is hashed. Nothing here knows any file's fields.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONGEST_INTEGER = 20
_SORTS = bytes(0x30 if byte in b"0123456789" else 0x20 if byte in b" :,[-" else byte for byte in range(256))
_TOO_LONG = b" " + b"0" * LONGEST_INTEGER
"""What an integer that may be too long becomes by `_SORTS`, with what stands before it, which no digest has."""
MOST_VALUES = 1_000_000
"""A value takes much more memory than its text, so there is a bound on their number. The study's largest file has 28,000."""
SHOWN = 60
CONTAINERS = frozenset((dict, list))
SIMPLE = {None: "null", True: "true", False: "false"}


class Malformed(Exception):
    """The text is not JSON in the contract's form; the message says why."""


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Malformed("an object has a duplicate member name")
    return members


def _integer(text: str) -> int:
    if len(text) > LONGEST_INTEGER:
        raise Malformed(f"an integer has {len(text)} digits, more than any field may have")
    return int(text)


def _number(text: str) -> float:
    number = float(text)
    if number - number != 0.0:
        raise Malformed(f"the number {text[:SHOWN]} is too large")
    return number


def _constant(text: str) -> Any:
    raise Malformed(f"it contains {text}, which is not JSON")


class _Context:
    """What the C scanner wants to know; the same attributes as `json.JSONDecoder` has."""

    def __init__(self, lenient: bool = False) -> None:
        self.strict = True
        self.object_hook = None
        self.object_pairs_hook = None if lenient else _members
        self.parse_float = float if lenient else _number
        self.parse_int = int if lenient else _integer
        self.parse_constant = _constant
        self.memo: dict[str, str] = {}


try:
    from _json import encode_basestring_ascii, make_encoder, make_scanner  # type: ignore[import-not-found, unused-ignore]

    _scan = make_scanner(_Context())  # type: ignore[arg-type, unused-ignore]
    _lenient = make_scanner(_Context(lenient=True))  # type: ignore[arg-type, unused-ignore]

    def _makes(colon: str, comma: str, in_order: bool = False) -> Any:
        # No markers, no default, this way of quoting, no indent, these separators, members sorted or not, none skipped, no NaN.
        return make_encoder(None, None, encode_basestring_ascii, None, colon, comma, in_order, False, False)  # type: ignore[arg-type, unused-ignore]

    _make: Any = _makes(":", ",", True)
    _compact: Any = _makes(":", ",")
except (ImportError, TypeError):
    from json import JSONDecoder
    from json.encoder import encode_basestring_ascii

    _decoder = JSONDecoder(object_pairs_hook=_members, parse_float=_number, parse_int=_integer, parse_constant=_constant)
    _scan = _lenient = _decoder.scan_once  # type: ignore[attr-defined, unused-ignore]
    _makes = _make = _compact = None  # type: ignore[assignment]

_layers: dict[int, Any] = {}
"""The encoders of `_laying`, by depth."""


def parse(data: bytes) -> dict[str, Any]:
    """The JSON object that the bytes hold, to their last byte; `Malformed` where they hold anything else."""
    if data.startswith(b"\xef\xbb\xbf"):
        raise Malformed("it begins with a byte order mark")
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        raise Malformed(f"byte {error.start + 1} is not ASCII") from None
    if len(text) > MOST_VALUES and sum(map(text.count, ",[{")) > MOST_VALUES:
        raise Malformed(f"it has more than {MOST_VALUES} commas and opening brackets, more than any file of a run")
    if not text.startswith("{"):
        raise Malformed("it does not begin with an opening brace" if text else "it is empty")
    try:
        value, end = _scan(text, 0)
    except Malformed:
        raise
    except StopIteration as stop:
        raise Malformed(f"it is not JSON at character {stop.value}") from None
    except RecursionError:
        raise Malformed("it is nested too deeply") from None
    except MemoryError:
        raise Malformed("there is not enough memory to read it") from None
    except ValueError as error:
        raise Malformed(f"it is not JSON: {ascii(str(error))[1:-1][: SHOWN * 2]}") from None
    except SystemError:  # Python 3.11's scanner finds no words where the json package was not loaded
        raise Malformed("it is not JSON") from None
    if end != len(text):
        raise Malformed(f"something follows the object, at character {end}")
    members: dict[str, Any] = value
    return members


def parse_document(data: bytes) -> dict[str, Any]:
    """A whole JSON file: one object and one newline, and no carriage return anywhere."""
    if b"\r" in data:
        raise Malformed("it contains a carriage return")
    if not data.endswith(b"\n"):
        raise Malformed("it does not end with a newline" if data else "it is empty")
    return parse(data[:-1])


def parse_laid_out(data: bytes) -> tuple[dict[str, Any], bool]:
    """A whole JSON file, and whether it is laid out; `Malformed` as `parse_document` does."""
    document = likely(data[:-1])
    if document is not None and laid_out(data, document) and data.endswith(b"\n"):
        return document, True
    document = parse_document(data)
    return document, laid_out(data, document)


def likely(data: bytes) -> dict[str, Any] | None:
    """The object that the bytes hold, read without the rules that take time; None where that does not go.

    Only whoever finds that the value's own text is these very bytes may rely on it, for no text with a duplicate member, a
    number without a text of its own, or anything behind the object is: so nothing is left that `parse` would refuse.
    """
    if len(data) > MOST_VALUES or _TOO_LONG in data.translate(_SORTS):
        return None
    try:
        value, _ = _lenient(data.decode("ascii"), 0)
    except (Malformed, StopIteration, ValueError, RecursionError, MemoryError, SystemError):
        return None
    return value if type(value) is dict else None


def laid_out(data: bytes, value: dict[str, Any]) -> bool:
    """Whether a document has the study's layout: a line for each member and item, one blank of indentation a level."""
    try:
        return data[:-1].decode("ascii") == _layout(value, 0)
    except (RecursionError, ValueError):  # it is nested too deeply, or a number has no text
        return False


def _layout(value: Any, depth: int) -> str:
    """The text of an array or object in the study's layout, its first line begun at this depth."""
    opening, closing = ("{", "}") if type(value) is dict else ("[", "]")
    if not value:
        return opening + closing
    line = "\n" + " " * (depth + 1)
    items = value.values() if type(value) is dict else value
    if CONTAINERS.isdisjoint(map(type, items)) and _makes is not None:
        text = "".join(_laying(depth)(value, 0))[1:-1]
    else:
        texts = [_layout(item, depth + 1) if type(item) in CONTAINERS else _scalar(item) for item in items]
        if type(value) is dict:
            texts = [f"{encode_basestring_ascii(name)}: {item}" for name, item in zip(value, texts, strict=True)]
        text = f",{line}".join(texts)
    return f"{opening}{line}{text}{line[:-1]}{closing}"


def _laying(depth: int) -> Any:
    """The encoder of containers that hold no others, at this depth: each comma ends a line."""
    if depth not in _layers:
        _layers[depth] = _makes(": ", ",\n" + " " * (depth + 1))
    return _layers[depth]


def _scalar(value: Any) -> str:
    if type(value) is str:
        return str(encode_basestring_ascii(value))
    return SIMPLE[value] if value is None or type(value) is bool else repr(value)


def encode(value: Any) -> str:
    """The canonical text of a value: ASCII, sorted members, no blanks."""
    try:
        return "".join(_make(value, 0)) if _make is not None else _encode(value)
    except RecursionError:
        raise Malformed("it is nested too deeply") from None


def compact(value: Any) -> str:
    """The text of a value without blanks, its members in the order in which they stand."""
    try:
        return "".join(_compact(value, 0)) if _compact is not None else _encode(value, in_order=False)
    except RecursionError:
        raise Malformed("it is nested too deeply") from None


def _encode(value: Any, in_order: bool = True) -> str:
    if type(value) is dict:
        quote = encode_basestring_ascii
        names = sorted(value) if in_order else value
        return "{" + ",".join([f"{quote(name)}:{_encode(value[name], in_order)}" for name in names]) + "}"
    if type(value) is list:
        return "[" + ",".join([_encode(item, in_order) for item in value]) + "]"
    return _scalar(value)

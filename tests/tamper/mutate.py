"""Mutations of an archive's bytes, chosen by seeded random numbers: of bytes alone, and of what JSON makes delicate.

A mutation takes a file's bytes and gives others. Nothing here knows what the audit does with them.
"""

from __future__ import annotations

import random
from collections.abc import Callable

Mutation = Callable[[bytes, random.Random], bytes]


def _spot(data: bytes, chance: random.Random) -> int:
    return chance.randrange(len(data) + 1)


def flip(data: bytes, chance: random.Random) -> bytes:
    if not data:
        return b"\0"
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def insert(data: bytes, chance: random.Random) -> bytes:
    at = _spot(data, chance)
    return data[:at] + chance.randbytes(chance.randrange(1, 9)) + data[at:]


def remove(data: bytes, chance: random.Random) -> bytes:
    at = _spot(data, chance)
    return data[:at] + data[at + chance.randrange(1, 40) :]


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: _spot(data, chance)]


def repeat(data: bytes, chance: random.Random) -> bytes:
    at, size = _spot(data, chance), chance.randrange(1, 400)
    return data[:at] + data[at : at + size] * chance.randrange(2, 5) + data[at + size :]


def splice(data: bytes, chance: random.Random) -> bytes:
    one, two = _spot(data, chance), _spot(data, chance)
    return data[:one] + data[two : two + chance.randrange(1, 400)] + data[one:]


def digits(data: bytes, chance: random.Random) -> bytes:
    """A digit becomes another, or a very long number."""
    found = [at for at, byte in enumerate(data) if 48 <= byte <= 57]
    if not found:
        return flip(data, chance)
    at = chance.choice(found)
    new = chance.choice([b"%d" % chance.randrange(10), b"9" * chance.choice((19, 20, 21, 400, 5000)), b"1e999", b"-0", b"1.0"])
    return data[:at] + new + data[at + 1 :]


TOKENS = (
    b"NaN", b"Infinity", b"-Infinity", b"null", b"true", b"[]", b"{}", b'""', b"-1", b"1e400", b"[" * 5000,
    b'{"a":' * 5000, b"9" * 5000, b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\u0000"', b'"\xff\xfe"', b'"\xc3\xa9"',
    b'{"a":1,"a":2}', b'{"__proto__":1}', b"\xef\xbb\xbf", b"\r\n", b"\0", b"\x1b[31m", b"0x10", b"01", b"'a'", b"//",
    b'"../../etc"', b'"/etc/passwd"', b"18446744073709551616",
)  # fmt: skip


def token(data: bytes, chance: random.Random) -> bytes:
    """A token of JSON, or of what is none, in the place of a value or anywhere."""
    colons = [at + 1 for at, byte in enumerate(data) if byte == 58]
    new = chance.choice(TOKENS)
    if not colons or chance.random() < 0.3:
        at = _spot(data, chance)
        return data[:at] + new + data[at:]
    at = chance.choice(colons)
    end = min((each for each in (data.find(b",", at), data.find(b"}", at), data.find(b"\n", at)) if each >= 0), default=at)
    return data[:at] + new + data[end:]


def append(data: bytes, chance: random.Random) -> bytes:
    """Bytes behind the end, where the last line of a journal has no newline then."""
    return data + chance.choice(
        (b"\0", b"x", b"{", b" ", data[: chance.randrange(1, 60)], chance.randbytes(chance.randrange(1, 9)))
    )


def flip_near_the_end(data: bytes, chance: random.Random) -> bytes:
    """A bit of one of the last bytes: of the last line's end."""
    at = max(0, len(data) - chance.randrange(1, 9))
    return data[:at] + bytes([each ^ (1 << chance.randrange(8)) for each in data[at : at + 1]]) + data[at + 1 :]


def lose_the_end(data: bytes, chance: random.Random) -> bytes:
    """Without its last bytes: often the newline alone."""
    return data[: max(0, len(data) - chance.choice((1, 1, 2, chance.randrange(1, 80))))]


def mark(data: bytes, chance: random.Random) -> bytes:
    return b"\xef\xbb\xbf" + data


def carriage_returns(data: bytes, chance: random.Random) -> bytes:
    return data.replace(b"\n", b"\r\n")


def shuffle_lines(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    chance.shuffle(lines)
    return b"".join(lines)


MUTATIONS: tuple[Mutation, ...] = (
    flip, flip, flip, insert, remove, cut, repeat, splice, digits, digits, token, token, token, mark, carriage_returns,
    shuffle_lines, append, append, flip_near_the_end, lose_the_end,
)  # fmt: skip


def mutated(data: bytes, chance: random.Random) -> bytes:
    """One to three mutations."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        data = chance.choice(MUTATIONS)(data, chance)
    return data

"""Reading an archive without trusting it: what lies in the tree, and the bytes of its regular files.

Nothing is followed and nothing can block: links, FIFOs and devices are findings and are never opened, files above a
bound are findings and are never read. Every file is read once, in pieces, and hashed on the way; `Tree.digests` keeps
what the manifest will be held against. Nothing here knows which files an archive should have.
"""

from __future__ import annotations

import os
import stat

from audit.findings import plain
from audit.hashing import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from audit.findings import Findings

LARGEST_FILE = 64 * 1024 * 1024
LONGEST_LINE = 8 * 1024 * 1024
DEEPEST_PATH = 16
MOST_ENTRIES = 100_000
PIECE = 1024 * 1024

_FLAGS = os.O_RDONLY
for _name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    _FLAGS |= getattr(os, _name, 0)


class Unreadable(Exception):
    """A file cannot be read; the message is the end of a sentence that begins with its name."""


def pieces(path: str) -> Iterator[bytes]:
    """The bytes of a regular file, a piece at a time."""
    try:
        descriptor = os.open(path, _FLAGS)
    except (OSError, ValueError) as error:
        raise Unreadable(f"cannot be opened: {getattr(error, 'strerror', None) or error}") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable(f"is {kind_of(status.st_mode)}, expected a regular file")
        if status.st_size > LARGEST_FILE:
            raise Unreadable(f"has {status.st_size} bytes, more than the {LARGEST_FILE} that the audit reads")
        left = LARGEST_FILE
        size = min(PIECE, status.st_size + 1)
        while piece := os.read(descriptor, size):
            left -= len(piece)
            if left < 0:
                raise Unreadable("grew while it was read")
            yield piece
            if len(piece) < size:
                break
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)


def kind_of(mode: int) -> str:
    """What a directory entry is, in words."""
    for is_kind, words in (
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISDIR, "a directory"),
    ):
        if is_kind(mode):
            return words
    return "a device" if not stat.S_ISREG(mode) else "a regular file"


class Tree:
    """The regular files below one archive, by relative path, and the digests of those that were read."""

    __slots__ = ("digests", "findings", "path", "sizes")

    def __init__(self, path: str, findings: Findings) -> None:
        self.path = path
        self.findings = findings
        self.sizes: dict[str, int] = {}
        self.digests: dict[str, tuple[int, str]] = {}
        self._walk("", 1)

    def _walk(self, folder: str, depth: int) -> None:
        subject = plain(folder.rstrip("/")) or "."
        if depth > DEEPEST_PATH or len(self.sizes) > MOST_ENTRIES:
            self.findings.add(subject, "", "is deeper or larger than any archive; what is below was not looked at")
            return
        try:
            with os.scandir(os.path.join(self.path, folder)) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self.findings.add(subject, "", f"the directory cannot be listed: {error.strerror}")
            return
        if not found:
            self.findings.add(subject, "", "is an empty directory; an archive has none")
        for entry in found:
            name = folder + entry.name
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError as error:
                self.findings.add(plain(name), "", f"cannot be looked at: {error.strerror}")
                continue
            if stat.S_ISREG(status.st_mode):
                self.sizes[name] = status.st_size
            elif stat.S_ISDIR(status.st_mode):
                self._walk(name + "/", depth + 1)
            else:
                self.findings.add(plain(name), "", f"is {kind_of(status.st_mode)}; an archive holds regular files only")

    def pieces(self, name: str) -> Iterator[bytes]:
        """A file's bytes, a piece at a time; its digest is kept once the last piece was taken."""
        running = sha256()
        size = 0
        for piece in pieces(os.path.join(self.path, name)):
            running.update(piece)
            size += len(piece)
            yield piece
        self.digests[name] = (size, running.hexdigest())

    def read(self, name: str) -> bytes | None:
        """A file's bytes; None, and a finding, where there is nothing to read."""
        try:
            return b"".join(self.pieces(name))
        except Unreadable as error:
            self.findings.add(plain(name), "", str(error))
            return None

    def lines(self, name: str) -> Iterator[tuple[bytes, bool]]:
        """A file's lines without their newline, each with whether it had one; `Unreadable` at an endless line."""
        rest = b""
        for piece in self.pieces(name):
            parts = (rest + piece).split(b"\n")
            rest = parts.pop()
            for part in parts:
                yield part, True
            if len(rest) > LONGEST_LINE:
                raise Unreadable(f"has a line of more than {LONGEST_LINE} bytes")
        if rest:
            yield rest, False


def hash_source(path: str) -> str:
    """SHA-256 of a source file, CR LF turned into LF first."""
    return str(sha256(b"".join(pieces(path)).replace(b"\r\n", b"\n")).hexdigest())

"""What a child writes: read as it comes, kept up to a bound, and the READY line noticed."""

import asyncio
import os

KEPT_BYTES = 65_536
READY_PREFIX = b"READY "
_READ_BYTES = 1 << 16


class Output:
    """One stream of a child: the reading end of a pipe, owned until its end or `close`.

    `complete` is set at its end, `ready_or_complete` also when a line beginning with READY came.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, descriptor: int) -> None:
        self.ready_or_complete = asyncio.Event()
        self.complete = asyncio.Event()
        self.ready_line: str | None = None
        self._kept = bytearray()
        self._cut_bytes = 0
        self._loop = loop
        self._descriptor = descriptor
        os.set_blocking(descriptor, False)
        loop.add_reader(descriptor, self._on_readable)

    def close(self) -> None:
        """Stop reading. What is there stays."""
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
        self.ready_or_complete.set()
        self.complete.set()

    def _on_readable(self) -> None:
        try:
            data = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return
        if data:
            self._received(data)
        else:
            self.close()

    def _received(self, data: bytes) -> None:
        kept = data[: KEPT_BYTES - len(self._kept)]
        self._kept += kept
        self._cut_bytes += len(data) - len(kept)
        if self.ready_line is None and READY_PREFIX in self._kept:
            self._find_ready_line()

    def text(self) -> str:
        """What was written, without the READY line."""
        text = self._kept.decode("utf-8", "backslashreplace")
        if self.ready_line is not None:
            text = text.replace(self.ready_line + "\n", "", 1)
        return f"{text}… [{self._cut_bytes} bytes cut]" if self._cut_bytes else text

    def _find_ready_line(self) -> None:
        for line in bytes(self._kept).split(b"\n")[:-1]:
            if line.startswith(READY_PREFIX):
                self.ready_line = line.decode("utf-8", "backslashreplace")
                self.ready_or_complete.set()
                return

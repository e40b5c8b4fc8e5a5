"""What a child writes: read as it comes, kept up to a bound, and the READY line noticed."""

import asyncio
import os
from typing import Self

KEPT_BYTES = 65_536
READY_PREFIX = b"READY "


class Output(asyncio.Protocol):
    """One stream of a child. `complete` is set at its end, `ready_or_complete` also when a line beginning with READY came."""

    def __init__(self) -> None:
        self.ready_or_complete = asyncio.Event()
        self.complete = asyncio.Event()
        self.ready_line: str | None = None
        self._kept = bytearray()
        self._cut_bytes = 0
        self._transport: asyncio.ReadTransport | None = None

    @classmethod
    async def attach(cls, loop: asyncio.AbstractEventLoop, descriptor: int) -> Self:
        """Read from the pipe `descriptor`, which is owned from now on."""
        file = os.fdopen(descriptor, "rb", buffering=0)
        try:
            transport, output = await loop.connect_read_pipe(cls, file)
        except BaseException:
            file.close()
            raise
        output._transport = transport
        return output

    def data_received(self, data: bytes) -> None:
        """Keep what fits."""
        kept = data[: KEPT_BYTES - len(self._kept)]
        self._kept += kept
        self._cut_bytes += len(data) - len(kept)
        if self.ready_line is None and READY_PREFIX in self._kept:
            self._find_ready_line()

    def connection_lost(self, exc: Exception | None) -> None:
        """The last writer is gone."""
        self.ready_or_complete.set()
        self.complete.set()

    def close(self) -> None:
        """Stop reading."""
        if self._transport is not None:
            self._transport.close()

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

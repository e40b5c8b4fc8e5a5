"""What a person sees while a campaign runs: how much of a level is done, how fast, how long it will take, what did not hold.

On a terminal that is a moving line; anywhere else a plain line every few seconds is enough.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO

from scenarios.explore.verdicts import HELD

QUIET_SECONDS = 5.0
LIVELY_SECONDS = 0.1


class Progress:
    """Told of each level when it begins, and of each result."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._lively = stream, stream.isatty()
        self._began = self._told = time.monotonic()
        self._level, self._total, self._cases, self._failed = "", 0, 0, 0

    def level(self, name: str, total: int) -> None:
        """A level of so many cases begins."""
        self._level, self._total, self._cases = name, total, 0
        self._began = time.monotonic()

    def ended(self, result: Mapping[str, Any]) -> None:
        """One case has ended."""
        self._cases += 1
        self._failed += result["verdict"] != HELD
        now = time.monotonic()
        if now - self._told >= (LIVELY_SECONDS if self._lively else QUIET_SECONDS):
            self._told = now
            self._say(self._line())

    def _line(self) -> str:
        rate = self._cases / max(time.monotonic() - self._began, 1e-9)
        left_seconds = (self._total - self._cases) / rate
        return (
            f"{self._level}: {self._cases} of {self._total} cases, {rate:.1f} a second, about {left_seconds:.0f} s left"
            f"{f', {self._failed} not held' if self._failed else ''}"
        )

    def _say(self, line: str) -> None:
        print(f"\r\x1b[K{line}" if self._lively else line, end="" if self._lively else "\n", file=self._stream, flush=True)

    def end(self) -> None:
        """Leave the terminal as it was."""
        if self._lively:
            self._say("")


@contextmanager
def shown(stream: TextIO) -> Iterator[Progress]:
    """The progress of one campaign on `stream`."""
    progress = Progress(stream)
    try:
        yield progress
    finally:
        progress.end()

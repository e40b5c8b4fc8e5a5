"""What a person sees while a campaign runs: how many cases are done, how fast, and what did not hold; rarely where nobody
watches."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO

from scenarios.explore.verdicts import HELD

# On anything but a terminal a line that often is enough.
QUIET_SECONDS = 5.0


class Progress:
    """Told of each result; `total` is known for the level that runs, once its cases are counted."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._began = self._told = time.monotonic()
        self._cases = self._failed = 0

    def ended(self, result: Mapping[str, Any]) -> None:
        """One case has ended."""
        self._cases += 1
        self._failed += result["verdict"] != HELD
        now = time.monotonic()
        if now - self._told >= QUIET_SECONDS:
            self._told = now
            self.line(str(result["case"]))

    def line(self, latest: str) -> None:
        """Print where it stands."""
        rate = self._cases / max(time.monotonic() - self._began, 1e-9)
        print(f"{self._cases} cases, {rate:.1f} a second, {self._failed} not held; at {latest}", file=self._stream, flush=True)


@contextmanager
def shown(stream: TextIO) -> Iterator[Progress]:
    """The progress of one campaign on `stream`."""
    yield Progress(stream)

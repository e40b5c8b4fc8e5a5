"""Waiting for the end of processes that are nobody's children here, by the kernel's own event instead of by asking again."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterable

BOUND_SECONDS = 30.0


class Watch:
    """Watches the processes among `pids` that exist. One that has ended counts as ended also while nobody has reaped it."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids: dict[int, int] = {}  # descriptor to pid
        for pid in pids:
            try:
                self._pids[os.pidfd_open(pid)] = pid
            except ProcessLookupError:
                continue

    def __len__(self) -> int:
        return len(self._pids)

    def assert_all_end(self) -> None:
        """Wait until all have ended. Past the bound the others are killed and told."""
        until = time.monotonic() + BOUND_SECONDS
        alive = set(self._pids)
        while alive and (seconds := until - time.monotonic()) > 0:
            ended, _writable, _odd = select.select(list(alive), [], [], seconds)
            alive -= set(ended)
        left = sorted(self._pids[descriptor] for descriptor in alive)
        for descriptor in alive:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        for descriptor in self._pids:
            os.close(descriptor)
        self._pids.clear()
        assert left == []

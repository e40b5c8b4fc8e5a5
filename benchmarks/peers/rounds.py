"""Rounds of all queues against one receiver: each at the number of jobs at once that suits it best, on a fresh store each time.

A round enqueues and works, so it gives two values. It is played once and remembered: the comparison of the one reads what the
comparison of the other has measured.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.peers.known import POSTGRESQL, Known, Round, one_round

TRIALS = 2


class Rounds:
    """What was played so far. `new_database` gives the URL of an empty PostgreSQL database; a round has at most `most` jobs."""

    def __init__(self, url: str, new_database: Callable[[], str], most: int | None = None) -> None:
        self._url, self._new_database, self._most = url, new_database, most
        self._at_once: dict[str, int] = {}
        self._played: dict[tuple[str, int], Round] = {}

    def jobs(self, known: Known) -> int:
        """How many jobs a round of that queue has."""
        return known.jobs if self._most is None else min(known.jobs, self._most)

    def tried(self, known: Known) -> str:
        """Try each of its numbers of jobs at once, choose the best, and tell how durable the queue is.

        Where rounds are bounded, only the last number is tried, and that was round 0 already.
        """
        if self._most:
            chosen = known.at_once[-1]
            self._played[known.name, 0] = best = self._play(known, chosen)
        else:
            # One after the other, and again: what else the machine does for a while must not choose.
            rounds = [(self._play(known, each), each) for _ in range(TRIALS) for each in known.at_once]
            best, chosen = max(rounds, key=lambda played: played[0].done_per_second)
        self._at_once[known.name] = chosen
        return best.durability

    def way(self, known: Known) -> str:
        """How a queue that was tried is used."""
        tried = ", ".join(map(str, known.at_once))
        of = f", the best of {tried}" if len(known.at_once) > 1 and not self._most else ""
        return f"{known.way}, {self._at_once[known.name]} at once{of}; {self.jobs(known):,} jobs"

    def round(self, known: Known, number: int) -> Round:
        """The round of that number of a queue that was tried; played when it is first asked for."""
        if (known.name, number) not in self._played:
            self._played[known.name, number] = self._play(known, self._at_once[known.name])
        return self._played[known.name, number]

    def _play(self, known: Known, at_once: int) -> Round:
        jobs = self.jobs(known)
        if known.kind == POSTGRESQL:
            return one_round(known, self._new_database(), self._url, jobs, at_once)
        with tempfile.TemporaryDirectory() as scratch:
            return one_round(known, str(Path(scratch) / "store"), self._url, jobs, at_once)

"""Rounds of all queues against one receiver: each at the number of jobs at once that suits it best, on a fresh store each time.

A round enqueues and works, so it gives two values. It is played once and remembered: the comparison of the one reads what the
comparison of the other has measured.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.peers.known import POSTGRESQL, Known, Round, one_round

# Of a round's jobs, so many are enough to see which number at once suits a queue.
PART_FOR_TRYING = 4


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
        """Try each of its numbers of jobs at once, choose the best, and tell how the queue is used and how durable it is.

        Where rounds are bounded, only the last number is tried, and that was round 0 already.
        """
        number = self.jobs(known) if self._most else self.jobs(known) // PART_FOR_TRYING
        rounds = {each: self._play(known, number, each) for each in known.at_once[-1 if self._most else 0 :]}
        best = max(rounds, key=lambda each: rounds[each].done_per_second)
        self._at_once[known.name] = best
        if self._most:
            self._played[known.name, 0] = rounds[best]
        of = f", the best of {', '.join(map(str, known.at_once))}" if len(rounds) > 1 else ""
        return f"{rounds[best].durability}; {known.way}, {best} at once{of}; {self.jobs(known):,} jobs"

    def round(self, known: Known, number: int) -> Round:
        """The round of that number of a queue that was tried; played when it is first asked for."""
        if (known.name, number) not in self._played:
            self._played[known.name, number] = self._play(known, self.jobs(known), self._at_once[known.name])
        return self._played[known.name, number]

    def _play(self, known: Known, jobs: int, at_once: int) -> Round:
        if known.kind == POSTGRESQL:
            return one_round(known, self._new_database(), self._url, jobs, at_once)
        with tempfile.TemporaryDirectory() as scratch:
            return one_round(known, str(Path(scratch) / "store"), self._url, jobs, at_once)

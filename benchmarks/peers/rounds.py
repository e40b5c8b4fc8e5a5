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
    """What was played so far. `new_database` gives the URL of an empty PostgreSQL database; `most` bounds the jobs of a round."""

    def __init__(self, url: str, new_database: Callable[[], str], most: int | None = None) -> None:
        self._url, self._new_database, self._most = url, new_database, most
        self._at_once: dict[str, int] = {}
        self._played: dict[tuple[str, int], Round] = {}

    def jobs(self, known: Known) -> int:
        """How many jobs a round of that queue has."""
        return known.jobs if self._most is None else min(known.jobs, self._most)

    def at_once(self, known: Known) -> int:
        """The best of its numbers of jobs at once, by one short round of each."""
        if known.name not in self._at_once:
            tried = {known.at_once[-1]: 0.0}
            if len(known.at_once) > 1 and self._most is None:
                number = max(1, self.jobs(known) // PART_FOR_TRYING)
                tried = {each: self._play(known, number, each).done_per_second for each in known.at_once}
            self._at_once[known.name] = max(tried, key=tried.__getitem__)
        return self._at_once[known.name]

    def round(self, known: Known, number: int) -> Round:
        """The round of that number; played when it is first asked for."""
        if (known.name, number) not in self._played:
            self._played[known.name, number] = self._play(known, self.jobs(known), self.at_once(known))
        return self._played[known.name, number]

    def durability(self, known: Known) -> str:
        """What its live connection said in the last round."""
        return next(each.durability for (name, _), each in reversed(self._played.items()) if name == known.name)

    def _play(self, known: Known, jobs: int, at_once: int) -> Round:
        if known.kind == POSTGRESQL:
            return one_round(known, self._new_database(), self._url, jobs, at_once)
        with tempfile.TemporaryDirectory() as scratch:
            return one_round(known, str(Path(scratch) / "store"), self._url, jobs, at_once)

"""How many sends may be under way: so many to one destination, and twice that altogether unless another total is set.

A destination is the origin of a URL; all that goes by the template is one. Where one of them hangs, its own rows wait for each
other, and half of the slots are left for the rest. The bound gives way to the number of files that the process may open: a send
that fails for want of one would use up an attempt.
"""

import resource
from collections import Counter
from dataclasses import dataclass

from outbox.dispatch.claim import Claim

TOTAL_FACTOR = 2
# What is kept for the database and the program, and what one command needs: pipes, the process, the moment of the fork.
FILES_KEPT = 64
FILES_OF_A_SEND = 4


@dataclass(frozen=True, slots=True)
class Room:
    """How many rows may be claimed at once, and whose rows may not, because their destinations have no slot left."""

    rows: int
    full: tuple[str, ...]


class Slots:
    """The sends under way. `concurrency` is the bound for one destination, `total` for all together (None: twice that)."""

    def __init__(self, concurrency: int, total: int | None = None) -> None:
        files, _most = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files != resource.RLIM_INFINITY:
            concurrency = min(concurrency, (files - FILES_KEPT) // (FILES_OF_A_SEND * TOTAL_FACTOR))
        self.each = max(1, concurrency)
        self.total = self.each * TOTAL_FACTOR if total is None else min(total, self.each * TOTAL_FACTOR)
        self._held: Counter[str] = Counter()

    def take(self, claim: Claim) -> None:
        """A send begins."""
        self._held[claim.destination] += 1

    def give_back(self, claim: Claim) -> None:
        """A send has ended."""
        self._held[claim.destination] -= 1
        if not self._held[claim.destination]:
            del self._held[claim.destination]

    def room(self) -> Room:
        """What may be claimed now. A claim of so many rows overfills no destination, whosever they are."""
        full = tuple(destination for destination, held in self._held.items() if held >= self.each)
        left = [self.each - held for held in self._held.values() if held < self.each]
        rows = max(0, min([self.total - self._held.total(), self.each, *left]))
        return Room(rows, full)

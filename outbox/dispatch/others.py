"""What a scan knows of the destinations that still have room: whether anything of theirs is left that is due.

While a destination has no free slot the others are asked for, and the rows of the full one, however many wait, are walked over
to find theirs. Where a claim found less than there was room for, none is left, and none comes: what is due is fixed until the
next tick. Only a row of a lane may become free meanwhile, when the one before it has ended; then the others are asked again.
"""

from collections.abc import Iterable

from outbox.dispatch.books import Finished
from outbox.dispatch.claim import Claimed
from outbox.dispatch.slots import Room


class Others:
    """Remembers the last claim that left destinations out and found fewer rows than there was room for."""

    def __init__(self) -> None:
        self._left_out: frozenset[str] | None = None
        self._due_until = 0.0

    def ending(self, finished: Iterable[Finished]) -> None:
        """The results `finished` are about to be written."""
        if any(each.claim.lane is not None for each in finished):
            self._left_out = None

    def learn(self, claimed: Claimed, room: Room | None, due_until: float) -> None:
        """With `room`, `claimed` was found of the rows due until then."""
        if claimed.expired or claimed.dead_letter:
            self._left_out = None
        elif room is not None and room.full and claimed.selected < room.rows:
            self._left_out, self._due_until = frozenset(room.full), due_until

    def none_due(self, room: Room, due_until: float) -> bool:
        """Whether a claim with `room` is known to find nothing."""
        if not room.full or self._left_out is None:
            return False
        return due_until == self._due_until and self._left_out.issubset(room.full)

"""The revival heartbeat: one `revival_ping` for each seat, once for each reset, however often it is asked for (ADR-0059,
D6)."""

import sys
from collections.abc import Iterable

from outbox.dispatch.enqueue import enqueue_dispatch
from outbox.dispatch.errors import BadValue
from outbox.dispatch.schema import DEFAULT_MAX_ATTEMPTS
from outbox.dispatch.store import StateDB

REVIVAL_TTL_SECONDS = 3600.0
KIND = "revival_ping"


async def enqueue_revival_heartbeat(
    db: StateDB,
    seats: Iterable[str],
    *,
    reset_epoch: float,
    ttl_seconds: float = REVIVAL_TTL_SECONDS,
    max_attempts: int = DEFAULT_MAX_ATTEMPTS,
    now: float | None = None,
) -> list[str]:
    """Enqueue a ping to each seat, one after the other, and return the ids in the order of the seats.

    A seat that is named twice, or was pinged for this `reset_epoch` before, gives the id of the first row. A ping expires
    `ttl_seconds` after `reset_epoch`; a `reset_epoch` of zero means no expiry. Raises what `enqueue_dispatch` raises; the pings
    before the bad one are written then, and asking again adds none of them a second time.
    """
    if isinstance(seats, str):
        raise BadValue(f"seats is the text {seats!r}; expected a list of seats")
    for name, value in (("reset_epoch", reset_epoch), ("ttl_seconds", ttl_seconds)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
            raise BadValue(f"{name} is {value!r}; expected seconds")
    return [
        await enqueue_dispatch(
            db,
            kind=KIND,
            deliver_to=seat,
            body={"seat": seat, "reset_epoch": reset_epoch},
            dedup_key=f"revival:{seat}:{reset_epoch}",
            max_attempts=max_attempts,
            expires_at=reset_epoch + ttl_seconds if reset_epoch else None,
            now=now,
        )
        for seat in seats
    ]

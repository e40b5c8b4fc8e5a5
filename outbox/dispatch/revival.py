"""The revival heartbeat: one `revival_ping` for each seat, once for each reset, however often it is asked for (ADR-0059,
D6)."""

from collections.abc import Iterable, Mapping

from outbox.dispatch import checks
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
    dispatch_ids: Mapping[str, str] | None = None,
) -> list[str]:
    """Enqueue a ping to each seat, one after the other, and return the ids in the order of the seats.

    A seat that is named twice, or was pinged for this `reset_epoch` before, gives the id of the first row. A ping expires
    `ttl_seconds` after `reset_epoch`; a `reset_epoch` of zero means no expiry. Raises what `enqueue_dispatch` raises; the pings
    before the bad one are written then, and asking again adds none of them a second time. `dispatch_ids`, by seat, is for
    callers who do not leave the ids to chance.
    """
    if isinstance(seats, str):
        raise BadValue(f"seats is the text {checks.shown(seats)}; expected a list of seats")
    if isinstance(seats, bytes) or not isinstance(seats, Iterable):
        raise BadValue(f"seats is {checks.shown(seats)}; expected a list of seats")
    ids = dispatch_ids or {}
    for name, value in (("reset_epoch", reset_epoch), ("ttl_seconds", ttl_seconds)):
        checks.seconds(name, value)
    return [
        await enqueue_dispatch(
            db,
            kind=KIND,
            deliver_to=checks.text("seat", seat),
            body={"seat": seat, "reset_epoch": reset_epoch},
            dedup_key=f"revival:{seat}:{reset_epoch}",
            max_attempts=max_attempts,
            expires_at=reset_epoch + ttl_seconds if reset_epoch else None,
            dispatch_id=ids.get(seat),
            now=now,
        )
        for seat in seats
    ]

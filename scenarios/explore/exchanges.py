"""What the relay did in truth, from its own record: a cut that never came proves nothing about the system under it.

The record has sizes only. They tell a message that went through whole from one that was broken off, and an answer of the
relay's own from none. That a doubled request went out twice they do not tell.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from scenarios import wire
from scenarios.explore.model import RELAY, Cut
from scenarios.explore.state import read_lines

EXCHANGES = "exchanges.jsonl"
# A sender may have given up before the relay heard the end of the other side; its record is then slower by a moment.
NEWS_SECONDS, LOOKS = 0.5, 10


async def undone(directory: Path, cuts: Sequence[Cut]) -> list[str]:
    """A sentence for each cut that the record in a case's `directory` does not show, waiting a moment for connections that are
    not there yet."""
    for _ in range(LOOKS):
        exchanges = {record["id"]: record["data"] for record in read_lines(directory / RELAY / EXCHANGES).records}
        struck = [(cut, exchanges.get(f"connection-{cut.connection}")) for cut in cuts]
        if all(exchange is not None for _cut, exchange in struck):
            break
        await asyncio.sleep(NEWS_SECONDS / LOOKS)
    found = [(cut, next(_against(cut, exchange), None)) for cut, exchange in struck]
    return [
        f"{cut.fault} was to be done to connection {cut.connection} and was not: {why}" for cut, why in found if why is not None
    ]


def _against(cut: Cut, exchange: Mapping[str, Any] | None) -> Iterator[str]:
    """What speaks against it that this exchange was struck by the cut."""
    if exchange is None:
        yield "the relay has no record of such a connection"
        return
    if exchange["fault"] != cut.fault:
        yield f"the relay's record of it has the fault {exchange['fault']}"
    asked, sent = exchange["request_bytes"], exchange["request_forwarded_bytes"]
    answered, given = exchange["response_bytes"], exchange["response_forwarded_bytes"]
    _connection, fault = wire.parse(cut.argument)
    if not asked:
        yield "no request came"
    if fault.place is not None:
        whole, passed = (asked, sent) if fault.side == "request" else (answered, given)
        if not whole or (passed == whole) != (fault.place == "end"):
            yield f"of the {fault.side}'s {whole} bytes {passed} went through"
        if fault.side == "request" and given:
            yield "the sender was answered"
    elif sent != (asked if fault.times else 0):
        yield f"of the request's {asked} bytes {sent} went through"
    if fault.hold and (given or not answered):
        yield "no response was held back"
    if fault.answer is not None and given == answered:
        yield "the sender got no other answer"

"""What an expectation of the battery is, and what a probe has at hand."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from scenarios.targets.model import Receiver
from scenarios.targets.receiver_http import Exchange
from scenarios.targets.receiver_stand import Site, Stand, output_of, remove
from scenarios.targets.receiver_strace import Handling
from scenarios.targets.receiver_trial import Seen, Trial

STUDY, DRAFT, DECLARED = "study", "draft-ietf-httpapi-idempotency-key-header", "declared"
# Why an expectation cannot be tried on this receiver; None where it can.
Need = Callable[[Receiver], str | None]


@dataclass(slots=True)
class Bench:
    """The place where probes work. `usual_again` is what the repetition of an operation was answered
    when nothing went wrong. `lanes` bounds how many receivers of probes of their own run at once; `part` is the one fault of an
    expectation that is asked for; `handling` is what one handling does, once that was recorded."""

    site: Site
    shared: Stand
    usual_again: Exchange
    place: Path
    lanes: asyncio.Semaphore
    part: str | None = None
    handling: Handling | None = None
    recording: asyncio.Lock = field(default_factory=asyncio.Lock)
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    async def trial(self, label: str, stand: Stand | None = None) -> Trial:
        """A new trial on the shared stand or another."""
        return await Trial(stand or self.shared, label, self.usual_again).begin()

    @asynccontextmanager
    async def fresh(self, label: str) -> AsyncIterator[Stand]:
        """A receiver of one's own in a fresh folder, which stays only where `keep` of the stand is set."""
        directory = self.place / f"{label}-{next(self._numbers)}"
        async with Stand(self.site, directory) as stand:
            yield stand
        if stand.keep:
            stand.write_output(output_of(directory))
        else:
            remove(directory)


Probe = Callable[[Bench], Awaitable[Sequence[Seen]]]


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expectation. `severity` is that of its violation where the probe says no other; `policy` names the field of the
    target's policy that replaces what is expected. `own` probes start receivers of their own and may run beside others."""

    name: str
    source: str
    severity: str
    does: str
    expected: str
    probe: Probe
    needs: tuple[Need, ...] = ()
    policy: str | None = None
    own: bool = False

    def declared(self, receiver: Receiver) -> str | None:
        """What the target itself declares in place of this."""
        value = None if self.policy is None else getattr(receiver.policy, self.policy)
        return None if value is None else f"as declared: {self.policy} = {value}"

    def skipped(self, receiver: Receiver) -> str | None:
        """Why it cannot be tried."""
        return next((reason for need in self.needs if (reason := need(receiver)) is not None), None)

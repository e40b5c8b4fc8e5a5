"""What every probe of a receiver is made of: operations under keys, what was sent and came back, effects before and after.

A `Trial` gathers this and becomes a `Seen`: what was seen of one expectation, with its verdict. Rules that several probes share
stand here, above all what a retry after a fault must find.
"""

import asyncio
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scenarios.targets.model import FailOnce, fill
from scenarios.targets.model import Operation as Template
from scenarios.targets.receiver_http import ANSWER_SECONDS, Exchange, Request, exchange, without
from scenarios.targets.receiver_stand import Stand

MET, VIOLATED, UNCLEAR, SKIPPED = "met", "violated", "unclear", "skipped"
LOST, DUPLICATED, STUCK, STYLE = "lost", "duplicated", "stuck", "style"
CANARY_SECONDS = 5.0
SETTLE_SECONDS, LINGER_SECONDS, POLL_SECONDS = 1.0, 0.2, 0.02
LONG_SECONDS = 1.0
MOST_KEPT = 16
_NAMES = uuid.UUID("6f1c55c6-2a53-4f0e-8a0e-4d3f6d0f2323")


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of an expectation. `severity` is that of what was seen where it is another than the expectation's. `part`
    tells the faults of one expectation apart; `files` is the folder of a receiver with which something was found."""

    verdict: str
    text: str
    severity: str | None = None
    exchanges: Sequence[Exchange] = ()
    before: int | None = None
    after: int | None = None
    fault: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()
    part: str | None = None
    files: Path | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: its name, and the key under which it is sent. A UUID, for some receivers accept nothing else."""

    name: str
    key: str


@dataclass(slots=True)
class Trial:
    """One trial on `stand`. Begin it, send, and close it with `seen`. `usual` is what a repetition is answered here when
    nothing went wrong, `waited` how long a patient sender tried."""

    stand: Stand
    label: str
    usual: Exchange | None = None
    exchanges: list[Exchange] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    before: int = 0
    after: int = 0
    waited: float = 0.0
    _number: int = 0

    async def begin(self) -> "Trial":
        """Count what is there already."""
        self.before = self.after = await self.stand.counter.count()
        return self

    def operation(self) -> Operation:
        """One that was not there before; the same one in each run."""
        self._number += 1
        name = f"halt23-{self.label}-{self._number}"
        return Operation(name, str(uuid.uuid5(_NAMES, name)))

    def request(self, operation: Operation, **changes: Any) -> Request:
        """The request of an operation; see `made` for what may be changed."""
        return made(self.stand, operation, **changes)

    async def send(self, request: Request, seconds: float = ANSWER_SECONDS) -> Exchange:
        """Send it and note what came of it."""
        return self.note(await exchange(self.stand.address, request, seconds))

    def note(self, happened: Exchange) -> Exchange:
        """Note what came of a request; of many the first and the last are kept."""
        self.exchanges.append(happened)
        if len(self.exchanges) > MOST_KEPT:
            del self.exchanges[MOST_KEPT // 2]
        return happened

    async def applied(self, expected: int, linger: float = 0.0) -> int:
        """How many effects came since the beginning. Fewer than expected are waited for, more are looked for for a moment."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            self.after = await self.stand.counter.count()
            if self.after - self.before >= expected or time.monotonic() > deadline:
                break
            await asyncio.sleep(POLL_SECONDS)
        if linger and self.after - self.before <= expected:
            await asyncio.sleep(linger)
            self.after = await self.stand.counter.count()
        return self.after - self.before

    async def persist(self, request: Request, seconds: float | None = None) -> Exchange:
        """Send as a patient sender does: again and again until it succeeds, is refused for good, or the time is over."""
        began = time.monotonic()
        deadline = began + (self.stand.site.watch_seconds if seconds is None else seconds)
        pause, late = 0.02, False
        while True:
            happened = await self.send(request)
            self.waited = time.monotonic() - began
            final = happened.success or (happened.refused and not happened.come_again)
            # Who was let wait for long has tried seldom: the next attempt may be the one that succeeds.
            patient = happened.seconds < LONG_SECONDS or late
            if final or await self._done(happened) or (patient and time.monotonic() + pause > deadline):
                return happened
            late = time.monotonic() > deadline
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.5)

    async def _done(self, happened: Exchange) -> bool:
        """Whether it is refused as every repetition is here, and there is an effect."""
        if not self.is_usual(happened):
            return False
        self.after = await self.stand.counter.count()
        return self.after > self.before

    def is_usual(self, happened: Exchange) -> bool:
        """Whether this refusal is what every repetition is answered here. An error of the server's own is no answer."""
        return self.usual is not None and self.usual.refused and happened.status == self.usual.status

    def seen(self, verdict: str, text: str, severity: str | None = None, fault: Mapping[str, Any] | None = None) -> Seen:
        """Close it."""
        notes = (*self.notes, *self.stand.notes)
        self.stand.notes.clear()
        return Seen(verdict, text, severity, tuple(self.exchanges), self.before, self.after, fault, notes)


def made(
    stand: Stand,
    operation: Operation,
    *,
    other: bool = False,
    keys: Sequence[str] | None = None,
    failing: FailOnce | None = None,
    body: bytes | None = None,
) -> Request:
    """A request: with the `other` body, with these `keys` in place of its own (none, or several), made to fail, with a body of
    its own."""
    template = stand.site.receiver.operation
    values = {"operation": operation.name, "key": operation.key if keys is None else "".join(keys[:1])}
    text = template.other_body if other and template.other_body is not None else template.body
    headers = [(name, fill(value, values)) for name, value in template.headers.items()]
    if failing is not None:
        headers += [(name, fill(value, values)) for name, value in failing.headers.items()]
        text = failing.body if failing.body is not None else text
    content = body if body is not None else fill(text, values).encode()
    sent = [operation.key] if keys is None else list(keys)
    if template.key_field is not None:
        content = with_key(content, template.key_field, sent)
    elif keys is not None or not any(name.lower() == template.key_header.lower() for name, _ in headers):
        headers = [*without(headers, template.key_header), *((template.key_header, key) for key in sent)]
    path = stand.address.base + fill(template.path, values)
    return Request(template.method, path, tuple(headers), content)


def with_key(body: bytes, pointer: str, keys: Sequence[str]) -> bytes:
    """The JSON body with the key at this place, or without one."""
    data = json.loads(body)
    *parents, last = pointer.split("/")[1:]
    place = data
    for part in parents:
        place = place.setdefault(part, {})
    place.pop(last, None)
    if keys:
        place[last] = keys[0]
    return json.dumps(data).encode()


def is_json(template: Template) -> bool:
    """Whether the body of an operation is a JSON object."""
    try:
        return isinstance(json.loads(template.body), dict)
    except (ValueError, RecursionError):
        return False


async def count_once(trial: Trial, *, expected: int, linger: float = LINGER_SECONDS) -> tuple[str, str, str | None]:
    """The verdict on effects alone: so many, no more and no fewer."""
    applied = await trial.applied(expected, linger)
    if applied == expected:
        return MET, told_effects(applied), None
    return VIOLATED, f"{told_effects(applied)} instead of {expected}", LOST if applied < expected else DUPLICATED


def told_effects(number: int) -> str:
    """`1 effect`, `2 effects`."""
    return "1 effect" if number == 1 else f"{number} effects"


async def after_fault(trial: Trial, last: Exchange, fault: Mapping[str, Any] | None) -> Seen:
    """What a retry after a fault must have found: one effect, and an answer that says so.

    `last` is what the patient sender was told last. A receiver that tells every repetition "409, done already", also when
    nothing went wrong, is not stuck where it says so after a fault.
    """
    applied = await trial.applied(1, LINGER_SECONDS)
    canary = await _canary(trial)
    answered = last.success or trial.is_usual(last)
    told = f"{last.told()} after {trial.waited:.1f} s" if trial.waited >= LONG_SECONDS else last.told()
    if applied > 1:
        return trial.seen(VIOLATED, f"{told_effects(applied)}; the retry was answered {told}", DUPLICATED, fault)
    if answered and applied == 0:
        return trial.seen(VIOLATED, f"no effect, and the retry is answered {last.told()} as if there were one", LOST, fault)
    if not answered:
        what = "refused for good" if last.refused and not last.come_again else f"for {trial.waited:.0f} s"
        return trial.seen(
            VIOLATED, f"{told_effects(applied)}; every retry is answered {last.told()}, {what}; {canary[1]}", STUCK, fault
        )
    if not canary[0]:
        return trial.seen(VIOLATED, f"1 effect; {canary[1]}", STUCK, fault)
    if not last.success:
        trial.notes.append(f"every repetition is answered {last.told()} here, also where nothing went wrong")
    return trial.seen(MET, f"1 effect; the retry was answered {told}", None, fault)


async def _canary(trial: Trial) -> tuple[bool, str]:
    """Whether a new operation passes, and how to say it. Its exchange is kept, its effect is not counted with the others."""
    fresh = Trial(trial.stand, f"{trial.label}-canary")
    await fresh.begin()
    happened = trial.note(await fresh.persist(fresh.request(fresh.operation()), CANARY_SECONDS))
    if happened.success and await fresh.applied(1) >= 1:
        return True, "a new operation passes meanwhile"
    return False, f"a new operation does not pass either ({happened.told()})"

"""Probes in which nobody dies: repetitions, other bodies, keys of every shape, failing handlers, clients that go."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from scenarios.targets.battery_model import Bench
from scenarios.targets.receiver_http import Exchange, Request, Sending
from scenarios.targets.receiver_trial import (
    DUPLICATED,
    LINGER_SECONDS,
    LOST,
    MET,
    SKIPPED,
    STUCK,
    STYLE,
    UNCLEAR,
    VIOLATED,
    Seen,
    Trial,
    after_fault,
    count_once,
    told_effects,
)


async def replay(bench: Bench) -> Sequence[Seen]:
    """The same request twice: how many effects."""
    trial, first, again = await _twice(bench, "replay")
    if not first.success:
        return [trial.seen(UNCLEAR, f"the first request was answered {first.told()}")]
    verdict, text, severity = await count_once(trial, expected=1)
    return [trial.seen(verdict, f"{text}; answered {first.told()}, then {again.told()}", severity)]


async def replay_answer(bench: Bench) -> Sequence[Seen]:
    """The same request twice: whether both are told the same."""
    trial, first, again = await _twice(bench, "replay-answer")
    await trial.applied(1)
    if not first.success:
        return [trial.seen(UNCLEAR, f"the first request was answered {first.told()}")]
    if not again.success:
        last = await trial.persist(first.request)
        severity = None if last.success or last.refused else STUCK
        return [trial.seen(VIOLATED, f"the repetition is answered {again.told()}, and later {last.told()}", severity)]
    if first.body != again.body and _json(first) != _json(again):
        return [trial.seen(VIOLATED, "the repetition is answered with another body")]
    if (first.status, first.body) != (again.status, again.body):
        what = f"{first.told()}, then {again.told()}" if first.status != again.status else "the same JSON in other bytes"
        return [trial.seen(VIOLATED, f"the repetition is answered with the same result, but {what}", STYLE)]
    return [trial.seen(MET, f"both were answered {first.told()} with the same body")]


async def _twice(bench: Bench, label: str) -> tuple[Trial, Exchange, Exchange]:
    trial = await bench.trial(label)
    request = trial.request(trial.operation())
    return trial, await trial.send(request), await trial.send(request)


def _json(exchange: Exchange) -> object:
    try:
        return json.loads(exchange.body)
    except (ValueError, RecursionError):
        return exchange.body


async def other_body(bench: Bench) -> Sequence[Seen]:
    """Another body under a key that was used: how many effects."""
    trial, first, other = await _with_other_body(bench, "other-body")
    if not first.success:
        return [trial.seen(UNCLEAR, f"the first request was answered {first.told()}")]
    verdict, text, severity = await count_once(trial, expected=1)
    return [trial.seen(verdict, f"{text}; the other body was answered {other.told()}", severity)]


async def other_body_answer(bench: Bench) -> Sequence[Seen]:
    """Another body under a key that was used: what is told."""
    trial, first, other = await _with_other_body(bench, "other-body-answer")
    await trial.applied(1)
    declared = bench.site.receiver.policy.other_body
    if not first.success:
        return [trial.seen(UNCLEAR, f"the first request was answered {first.told()}")]
    if declared is not None:
        return [_as_declared(trial, other, declared, "replay")]
    if other.status == 422:
        return [trial.seen(MET, "it is answered 422")]
    if other.status == 409:
        trial.notes.append("the draft names 422 for this and 409 for a request under way")
        return [trial.seen(MET, "it is answered 409")]
    severity = STYLE if other.refused else None
    what = "as if the other body had been applied" if other.success else "which does not tell what is wrong"
    return [trial.seen(VIOLATED, f"it is answered {other.told()}, {what}", severity)]


async def _with_other_body(bench: Bench, label: str) -> tuple[Trial, Exchange, Exchange]:
    trial = await bench.trial(label)
    operation = trial.operation()
    return trial, await trial.send(trial.request(operation)), await trial.send(trial.request(operation, other=True))


def _as_declared(trial: Trial, happened: Exchange, declared: str, success_word: str) -> Seen:
    held = happened.success if declared == success_word else str(happened.status) == declared
    return trial.seen(MET if held else VIOLATED, f"it is answered {happened.told()}")


async def members_reordered(bench: Bench) -> Sequence[Seen]:
    """The same JSON, its members the other way round."""
    trial = await bench.trial("members-reordered")
    operation = trial.operation()
    request = trial.request(operation)
    first = await trial.send(request)
    data = json.loads(request.body)
    turned = json.dumps(dict(reversed(data.items()))).encode()
    again = await trial.send(Request(request.method, request.path, request.headers, turned))
    verdict, text, severity = await count_once(trial, expected=1)
    if not first.success:
        return [trial.seen(UNCLEAR, f"the first request was answered {first.told()}")]
    if verdict == MET and not again.success:
        return [trial.seen(VIOLATED, f"{text}; answered {again.told()}: to this receiver other bytes are another request")]
    return [trial.seen(verdict, f"{text}; answered {again.told()}", severity)]


async def missing_key(bench: Bench) -> Sequence[Seen]:
    """A request without a key."""
    trial = await bench.trial("missing-key")
    happened = await trial.send(trial.request(trial.operation(), keys=()))
    applied = await trial.applied(1 if happened.success else 0, LINGER_SECONDS)
    declared = bench.site.receiver.policy.missing_key
    if declared is not None:
        return [_as_declared(trial, happened, declared, "accept")]
    return [_refusal(trial, happened, applied, (400,))]


def _refusal(trial: Trial, happened: Exchange, applied: int, wanted: Sequence[int]) -> Seen:
    """What is said of a request that a receiver does best to refuse, and is free to accept."""
    if happened.success and applied == 0:
        return trial.seen(VIOLATED, f"it is answered {happened.told()}, and nothing was done", LOST)
    if happened.success:
        return trial.seen(VIOLATED, f"it is answered {happened.told()} and applied, and no repetition of it will be known")
    if applied:
        return trial.seen(VIOLATED, f"it is answered {happened.told()}, and applied all the same", DUPLICATED)
    if happened.status in wanted:
        return trial.seen(MET, f"it is refused with {happened.told()}")
    if happened.refused:
        return trial.seen(VIOLATED, f"it is refused with {happened.told()}")
    return trial.seen(VIOLATED, f"it is answered {happened.told()}: the sender cannot tell whose mistake that is")


async def empty_key(bench: Bench) -> Sequence[Seen]:
    """Two operations, both under an empty key."""
    trial = await bench.trial("key-empty")
    first = await trial.send(trial.request(trial.operation(), keys=("",)))
    second = await trial.send(trial.request(trial.operation(), keys=("",)))
    answered = sum(each.success for each in (first, second))
    applied = await trial.applied(answered, LINGER_SECONDS)
    if answered and applied < answered:
        text = f"two operations under an empty key were answered {first.told()} and {second.told()}: only {applied} applied"
        return [trial.seen(VIOLATED, text, LOST)]
    return [_refusal(trial, first, applied, range(400, 500))]


async def doubled_key(bench: Bench) -> Sequence[Seen]:
    """Two key headers in one request, and the same again."""
    trial = await bench.trial("key-doubled")
    operation, another = trial.operation(), trial.operation()
    request = trial.request(operation, keys=(operation.key, another.key))
    first, again = await trial.send(request), await trial.send(request)
    applied = await trial.applied(1 if first.success else 0, LINGER_SECONDS)
    if first.success and applied > 1:
        return [trial.seen(VIOLATED, f"{told_effects(applied)} of two equal requests with two key headers each", DUPLICATED)]
    if first.success and applied == 1:
        text = f"it is accepted ({first.told()}, then {again.told()}) with 1 effect: one of the two keys is not looked at"
        return [trial.seen(VIOLATED, text)]
    return [_refusal(trial, first, applied, range(400, 500))]


async def key_case(bench: Bench) -> Sequence[Seen]:
    """Two operations under keys that differ in the case of their letters only."""
    trial = await bench.trial("key-case")
    one, two = trial.operation(), trial.operation()
    first = await trial.send(trial.request(one, keys=(f"halt23-{one.key}-abc",)))
    second = await trial.send(trial.request(two, keys=(f"HALT23-{one.key.upper()}-ABC",)))
    applied = await trial.applied(2, LINGER_SECONDS)
    told = f"{told_effects(applied)}; answered {first.told()} and {second.told()}"
    if not first.success:
        return [trial.seen(SKIPPED, f"a key that is no UUID is refused with {first.told()}")]
    if bench.site.receiver.policy.case_sensitive is False:
        return [trial.seen(MET if applied == 1 else VIOLATED, told)]
    if applied == 2 and second.success:
        return [trial.seen(MET, told)]
    if second.success:
        return [trial.seen(VIOLATED, f"{told}: the second operation is told that it was applied, and was not", LOST)]
    return [trial.seen(VIOLATED, told)]


def key_of_length(length: int) -> Callable[[Bench], Awaitable[Sequence[Seen]]]:
    """Two operations under keys of this length whose last characters differ, and the first of them again."""

    async def probe(bench: Bench) -> Sequence[Seen]:
        trial = await bench.trial(f"key-length-{length}")
        one, two = trial.operation(), trial.operation()
        stem = (one.key.replace("-", "") * (length // 32 + 1))[: length - 1]
        keys = (f"{stem}x", f"{stem}y")
        first = await trial.send(trial.request(one, keys=keys[:1]))
        second = await trial.send(trial.request(two, keys=keys[1:]))
        again = await trial.send(trial.request(one, keys=keys[:1]))
        applied = await trial.applied(sum(each.success for each in (first, second)), LINGER_SECONDS)
        told = f"{told_effects(applied)}; answered {first.told()}, {second.told()}, and the first again {again.told()}"
        if first.success and second.success:
            if applied < 2:
                return [trial.seen(VIOLATED, f"{told}: two keys were taken for one", LOST)]
            return [trial.seen(MET if applied == 2 else VIOLATED, told, None if applied == 2 else DUPLICATED)]
        most = bench.site.receiver.policy.key_max_length
        if first.refused and second.refused and applied == 0:
            if most is not None:
                return [trial.seen(VIOLATED if length <= most else MET, told)]
            # 255 is what is commonly promised; a receiver with keys of another form refuses short ones.
            return [trial.seen(VIOLATED if length == 255 else MET, told)]
        return [trial.seen(VIOLATED, told, DUPLICATED if applied > 2 else UNCLEAR)]

    return probe


async def key_non_ascii(bench: Bench) -> Sequence[Seen]:
    """A key with letters outside of ASCII, and the same again."""
    trial = await bench.trial("key-non-ascii")
    operation = trial.operation()
    request = trial.request(operation, keys=(f"{operation.key}-ключ-é",))
    first, again = await trial.send(request), await trial.send(request)
    applied = await trial.applied(1 if first.success else 0, LINGER_SECONDS)
    if applied > 1:
        return [trial.seen(VIOLATED, f"{told_effects(applied)} of a request and its repetition", DUPLICATED)]
    if first.success and applied == 1:
        text = f"it is accepted ({first.told()}, then {again.told()}) with 1 effect"
        known = again.success or trial.is_usual(again)
        return [trial.seen(MET if known else VIOLATED, text)]
    return [_refusal(trial, first, applied, range(400, 500))]


async def failure_then_retry(bench: Bench) -> Sequence[Seen]:
    """The handler fails once, before its effect; the same request again."""
    trial = await bench.trial("failure-then-retry")
    failing = bench.site.receiver.fail_once
    request = trial.request(trial.operation(), failing=failing)
    first = await trial.send(request)
    if first.success or first.status is None or await trial.applied(0) != 0:
        text = f"the request that was to fail was answered {first.told()}, with {told_effects(trial.after - trial.before)}"
        return [trial.seen(UNCLEAR, f"{text}: see receiver.fail_once of the target file")]
    trial.usual = None  # "done already" would be wrong here
    return [await after_fault(trial, await trial.persist(request), None)]


async def hang_up_during(bench: Bench) -> Sequence[Seen]:
    """The client goes after half of the body; then the whole request comes."""
    trial = await bench.trial("hang-up-during-request")
    request = trial.request(trial.operation())
    sending = Sending(bench.shared.address, request)
    await sending.send(0.5)
    trial.note(sending.hang_up())
    early = await trial.applied(0, LINGER_SECONDS)
    seen = await after_fault(trial, await trial.persist(request), None)
    if not early:
        return [seen]
    # Its key is taken by something that nobody sent: the operation itself can never come to be.
    severity = STUCK if seen.verdict == MET else seen.severity
    return [replace(seen, verdict=VIOLATED, severity=severity, text=f"half of a request was applied; then {seen.text}")]


async def hang_up_after(bench: Bench) -> Sequence[Seen]:
    """The client sends all and goes; then the request comes again."""
    trial = await bench.trial("hang-up-after-request")
    request = trial.request(trial.operation())
    sending = Sending(bench.shared.address, request)
    await sending.send()
    trial.note(sending.hang_up())
    return [await after_fault(trial, await trial.persist(request), None)]

"""Probes in which one request comes from many processes at once."""

import base64
import json
from collections.abc import Sequence
from dataclasses import replace

from scenarios.engine.supervisor import Launch
from scenarios.targets.battery_model import Bench
from scenarios.targets.receiver_http import Exchange, Request, received
from scenarios.targets.receiver_process import end
from scenarios.targets.receiver_trial import DUPLICATED, MET, STUCK, VIOLATED, Seen, Trial, after_fault, count_once

CROWD, CROWD_ROUNDS = 8, 4
CROWD_SECONDS = 30.0


async def concurrent_duplicates(bench: Bench) -> Sequence[Seen]:
    """One request from N processes at once, several times over."""
    for _round in range(CROWD_ROUNDS):
        trial = await bench.trial(f"concurrent-duplicates-{_round + 1}")
        request = trial.request(trial.operation())
        await crowd(trial, request)
        seen = await judge_crowd(trial, request)
        if seen.verdict != MET:
            break
    return [seen]


async def judge_crowd(trial: Trial, request: Request) -> Seen:
    """What is said of the effects of a crowd. A crowd of which nobody heard of a success asks once more, patiently."""
    answers = trial.exchanges[-CROWD:]
    told = _tally(answers)
    if not any(each.success for each in answers):
        seen = await after_fault(trial, await trial.persist(request), None)
        return replace(seen, text=f"{CROWD} at once: {told}; then {seen.text}")
    verdict, text, severity = await count_once(trial, expected=1)
    return trial.seen(verdict, f"{text}; {CROWD} at once: {told}", severity)


async def concurrent_answers(bench: Bench) -> Sequence[Seen]:
    """What the crowd is told: one success; the others the same, or to come again."""
    trial = await bench.trial("concurrent-answers")
    request = trial.request(trial.operation())
    answers = await crowd(trial, request)
    again = await trial.persist(request)
    verdict, text, severity = await count_once(trial, expected=1)
    told = _tally(answers)
    if severity == DUPLICATED:
        # The other crowd may have been luckier.
        return [trial.seen(verdict, f"{text}; {CROWD} at once: {told}", severity)]
    bodies = {(each.status, each.body) for each in answers if each.success}
    wrong = [each for each in answers if not (each.success or each.come_again or trial.is_usual(each))]
    if wrong:
        return [trial.seen(VIOLATED, f"{told}: expected a result, or 409, of each")]
    if not bodies and not again.success:
        return [trial.seen(VIOLATED, f"{told}, and later {again.told()}", STUCK)]
    if len(bodies) > 1:
        return [trial.seen(VIOLATED, f"{told}: those with a success were told different results")]
    return [trial.seen(MET, told)]


async def crowd(trial: Trial, request: Request, number: int = CROWD) -> Sequence[Exchange]:
    """Send a request from so many processes at once, and note what came of it."""
    stand = trial.stand
    file = stand.site.scratch / f"{trial.label}.request"
    file.write_bytes(request.encoded(stand.address.told))
    arguments = (stand.address.host, str(stand.address.port), str(number), str(file))
    child = await stand.site.supervisor.start(Launch("scenarios.targets.receiver_crowd", arguments, stand.site.scratch, {}))
    try:
        await child.wait(CROWD_SECONDS)
    except TimeoutError:
        await end(stand.site.supervisor, child)
    try:
        told = json.loads(file.with_name(f"{file.name}.answers").read_text())
    except (OSError, ValueError):
        told = [{"response": None, "seconds": CROWD_SECONDS}] * number
    answers = [
        await received(request, None if each["response"] is None else base64.b64decode(each["response"]), each["seconds"])
        for each in told
    ]
    for each in answers:
        trial.note(each)
    return answers


def _tally(answers: Sequence[Exchange]) -> str:
    counts: dict[str, int] = {}
    for each in answers:
        counts[each.told()] = counts.get(each.told(), 0) + 1
    return ", ".join(f"{number} times {told}" if number > 1 else f"once {told}" for told, number in counts.items())

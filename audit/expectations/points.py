"""What the section `points` must come to: one scenario for each fault point, named after it.

One receipt and one history record each time. A row is a write or a place, the effects and the arrivals after a death at each
of its stages (`b`efore, `t`orn, `w`ritten, `s`ynced, `r`esponse), and the set-up that reaches it. One arrival where the
request had not been logged, or the receipt was durable, when somebody died; two where it had to be sent again; two effects
where the effect was durable and its key, kept apart, was not.
"""

from __future__ import annotations

from audit.expectations.words import (
    CUT_OFF,
    Expectation,
    Expected,
    dispatcher,
    halted,
    producer,
    producer_dies,
    receiver,
    receiver_dies,
)

STAGES = {"b": "before", "t": "torn", "w": "written", "s": "synced", "r": "response"}

ROWS: tuple[tuple[str, str, str], ...] = (
    # write or place, stage:effects/arrivals, set-up
    ("intention.append", "b:1/1 t:1/1 w:1/1 s:1/1", "producer"),
    ("intentions.create", "b:1/1 w:1/1 s:1/1", "producer"),
    ("intentions.repair", "b:1/1 w:1/1 s:1/1", "producer after intention.append.torn"),
    ("attempt.append", "b:1/1 t:1/1 w:1/1 s:1/1", "dispatcher"),
    ("attempts.create", "b:1/1 w:1/1 s:1/1", "dispatcher"),
    ("attempts.repair", "b:1/1 w:1/1 s:1/1", "dispatcher after attempt.append.torn"),
    ("outcome.append", "b:1/1 t:1/1 w:1/1 s:1/1", "refused"),
    ("inquiry.append", "b:1/1 t:1/1 w:1/1 s:1/1", "dispatcher after send.response"),
    ("inquiry", "b:1/1", "dispatcher after send.response"),
    ("receipt.append", "b:1/2 t:1/2 w:1/1 s:1/1", "dispatcher"),
    ("receipts.create", "b:1/1 w:1/1 s:1/1", "dispatcher"),
    ("receipts.repair", "b:1/2 w:1/2 s:1/2", "dispatcher after receipt.append.torn"),
    ("history.append", "b:1/1 t:1/1 w:1/1 s:1/1", "dispatcher"),
    ("history.create", "b:1/1 w:1/1 s:1/1", "dispatcher"),
    ("history.repair", "b:1/1 w:1/1 s:1/1", "dispatcher after history.append.torn"),
    ("send", "b:1/1 r:1/2", "dispatcher"),
    ("arrival.append", "b:1/1 t:1/1 w:1/2", "receiver"),
    ("answer.append", "b:1/2 t:1/2 w:1/2", "receiver"),
    ("query.append", "b:1/1 t:1/1 w:1/1", "asked"),
    ("arrivals.create", "b:1/1 w:1/1", "opening"),
    ("arrivals.repair", "b:1/2 w:1/2", "opening after answer.append.torn"),
    ("effect.append", "b:1/2 t:1/2 w:1/2 s:1/2", "receiver"),
    ("effects.create", "b:1/1 w:1/1 s:1/1", "opening"),
    ("effects.repair", "b:1/2 w:1/2 s:1/2", "opening after effect.append.torn"),
    ("key.append", "b:2/2 t:2/2 w:1/2 s:1/2", "receiver"),
    ("keys.create", "b:1/1 w:1/1 s:1/1", "opening"),
    ("keys.repair", "b:2/2 w:2/2 s:2/2", "opening after key.append.torn"),
)


def processes(setup: str, point: str) -> list[Expected]:
    """Who is started, in order, and who dies where."""
    who, _, torn = setup.partition(" after ")
    n = 2 if torn else 1
    gone = [producer(), dispatcher(code=CUT_OFF)]
    setups: dict[str, list[Expected]] = {
        "producer": [receiver(), *[producer_dies(1, torn)][: n - 1], producer_dies(n, point), producer(n + 1), dispatcher()],
        "dispatcher": [receiver(), producer(), *[halted(1, torn)][: n - 1], halted(n, point), dispatcher(n + 1)],
        "refused": [receiver(), producer(), halted(1, point), receiver(2), dispatcher(2)],
        "asked": [
            receiver_dies(1, point), producer(), halted(1, "send.response"), dispatcher(2, code=CUT_OFF), receiver(2),
            dispatcher(3),
        ],
        "receiver": [receiver_dies(1, point), *gone, receiver(2), dispatcher(2)],
        "opening": [receiver_dies(1, point), receiver(2), producer(), dispatcher()],
    }  # fmt: skip
    if who == "opening" and torn:
        return [receiver_dies(1, torn), *gone, receiver_dies(2, point), receiver(3), dispatcher(2)]
    return setups[who]


def scenarios() -> list[Expectation]:
    """One expectation for each stage of each row."""
    found = []
    for place, counts, setup in ROWS:
        for part in counts.split(" "):
            stage, _, both = part.partition(":")
            effects, _, arrivals = both.partition("/")
            point = f"{place}.{STAGES[stage]}"
            expected = (int(effects), 1, 1, int(arrivals))
            found.append(Expectation(point.replace(".", "_"), expected, processes(setup, point), counterexample=effects == "2"))
    return found


SCENARIOS = scenarios()

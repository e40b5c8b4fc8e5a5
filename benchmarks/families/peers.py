"""Dispatch against other queues: jobs a second from the table to the effect, and into the table.

Every job is one HTTP POST of the same bytes to one receiver, which counts; every queue has one worker process, and the
durability that it comes with, read from its connection. A round is played in a store of its own, in processes of its own; it
counts from the opened store until each job is marked as done. Connections to the receiver are kept open by everybody.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping

from benchmarks.measuring import Comparison, Contender, Goal, Part
from benchmarks.peers.known import KNOWN, OURS, OURS_ON_POSTGRESQL, POSTGRESQL, SQLITE, Known, Round
from benchmarks.peers.rounds import Rounds
from benchmarks.receiver import receiver
from benchmarks.servers import Server, server

AT_LEAST = 4.0
QUICK_JOBS = 10
WHAT = {SQLITE: OURS, POSTGRESQL: OURS_ON_POSTGRESQL}
# What is told beside, at the outbox's own durability: no peer as it comes, so no goal is set by it.
BESIDE = ("litequeue, FULL",)


def parts(quick: bool) -> Iterator[Part]:
    """SQLite, then PostgreSQL; each done, then enqueued, which are two readings of the same rounds."""
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(receiver())
        servers: list[Server] = []

        def new_database() -> str:
            if not servers:
                servers.append(stack.enter_context(server()))
            return servers[0].new_database()

        rounds = Rounds(url, new_database, QUICK_JOBS if quick else None)
        for kind in (SQLITE, POSTGRESQL):
            yield from _of_kind(kind, rounds, 0 if quick else 1)


def _of_kind(kind: str, rounds: Rounds, warm_up: int) -> Iterator[Part]:
    queues = [each for each in KNOWN.values() if each.kind == kind]
    present = [each for each in queues if each.missing is None]
    durable = {each.name: rounds.tried(each) for each in present}
    used = {each.name: f"{durable[each.name]}; {rounds.way(each)}" for each in present}

    def contenders(value: Callable[[Round], float], notes: Mapping[str, str]) -> tuple[Contender, ...]:
        return tuple(_contender(each, notes.get(each.name, ""), rounds, value) for each in queues)

    ours = WHAT[kind]
    yield Comparison(
        f"jobs done, {kind}",
        "jobs a second",
        contenders(lambda played: played.done_per_second, used),
        tuple(
            Goal(f"peers: {ours} over {each.name}, jobs done", ours, each.name, at_least=AT_LEAST)
            for each in queues
            if each.name not in (ours, *BESIDE)
        ),
        "One worker process, jobs enqueued before, until every one is marked as done.",
        warm_up=warm_up,
    )
    yield Comparison(
        f"jobs enqueued, {kind}",
        "jobs a second",
        contenders(lambda played: played.enqueued_per_second, durable),
        note="One producer, one job after the other, each committed for itself: the same rounds.",
        warm_up=warm_up,
    )


def _contender(known: Known, note: str, rounds: Rounds, value: Callable[[Round], float]) -> Contender:
    return Contender(known.name, lambda number: value(rounds.round(known, number)), note, known.missing)

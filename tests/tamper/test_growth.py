"""Archives with far too much of one thing: eight times as much takes about eight times as long, never its square."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.audit.real import Part, document
from tests.tamper.ground import Field, Ground
from tests.tamper.trees import peaks

SCENARIO = "delivery/keyed_delivery"
FEW, TIMES = 400, 8
LONG = 24_000
START_BYTES, MOST_FOR_A_BYTE = 32 * 1024 * 1024, 7
"""What the audit takes before it has read anything, and how many bytes it takes for one of a scenario's journals."""
SLOWEST_RATIO = 3 * TIMES
"""What is quadratic takes 64 times as long."""


def unanswered(part: Part, count: int) -> None:
    arrivals = part.journal("receiver/arrivals")
    data = arrivals[0]["data"]
    arrivals[:] = [{"type": "arrival", "id": f"arrival-{n}", "data": data} for n in range(1, count + 1)]


def unanswered_with_keys_of_their_own(part: Part, count: int) -> None:
    unanswered(part, count)
    for number, record in enumerate(part.journal("receiver/arrivals")):
        record["data"] = {**record["data"], "key": f"key-{number}"}


def answered_backwards(part: Part, count: int) -> None:
    answer = part.data("receiver/arrivals", 2)
    unanswered(part, count)
    part.journal("receiver/arrivals").extend(
        {"type": "answer", "id": f"arrival-{n}", "data": answer} for n in range(count, 0, -1)
    )


def processes_that_no_step_started(part: Part, count: int) -> None:
    last = part.processes[-1]
    part.processes += [{**last, "pid": 10 + n, "incarnation": 3 + n} for n in range(count)]


def exported(part: Part, count: int) -> None:
    """Transitions and events of dispatches that nobody enqueued, and rows that no transition tells of."""

    def edit(tables: dict[str, list[dict[str, object]]]) -> None:
        for table, member in (("dispatch_outbox", "id"), ("status_transitions", "entity_id"), ("admin_events", "entity_id")):
            last = tables[table][-1]
            tables[table] += [{**last, member: f"{EXPORTED[table]}{number:031x}"} for number in range(count)]

    part.export("end", edit)


EXPORTED = {"dispatch_outbox": "a", "status_transitions": "b", "admin_events": "c"}


def test_time_grows_with_an_export(ground_of: Field) -> None:
    grows(exported, ground_of.ground("dispatch/purge_frees_the_key"))


@pytest.mark.parametrize(
    "much", [unanswered, unanswered_with_keys_of_their_own, answered_backwards, processes_that_no_step_started]
)
def test_time_grows_with_the_archive(much: Callable[[Part, int], None], ground_of: Field) -> None:
    grows(much, ground_of.ground(SCENARIO))


def grows(much: Callable[[Part, int], None], ground: Ground) -> None:
    """Hold how the time of an audit grows with much of something."""
    seconds = {}
    for count in (FEW, FEW * TIMES):
        part = ground.base.part()
        much(part, count)
        files = part.sealed()
        changes = {path: data for path, data in files.items() if data != ground.base.files.get(path)}
        best = float("inf")
        for _ in range(2):
            began = time.process_time()
            report = ground.audit(changes)
            best = min(best, time.process_time() - began)
            assert report.verdict == "FAIL"
        seconds[count] = best
    assert seconds[FEW * TIMES] < SLOWEST_RATIO * seconds[FEW], seconds


@pytest.mark.campaign
def test_memory_is_that_of_the_largest_scenario_however_many_there_are(ground_of: Field) -> None:
    one, four, size = peaks(ground_of.ground(SCENARIO), ground_of.ground(*ground_of.whole.names), LONG)
    assert four < 1.2 * one, (one, four)
    assert one < START_BYTES + MOST_FOR_A_BYTE * size, (one, size)


def test_a_scenario_without_end_is_not_gone_through(ground_of: Field) -> None:
    ground = ground_of.ground(SCENARIO)
    part = ground.base.part()
    manifest = part.manifest(part.files())
    plan = manifest["protocol"]["scenarios"][0]
    manifest["protocol"]["scenarios"] = [{**plan, "steps": [*plan["steps"], *[{"do": "stop", "process": "receiver"}] * 300]}]
    found = [str(finding) for finding in ground.audit({"manifest.json": document(manifest)}).findings]
    assert any("more than the 200 of any scenario" in finding for finding in found), found

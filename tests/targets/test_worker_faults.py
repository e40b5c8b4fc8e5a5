"""The names of a worker's cases, and what is made of what was seen."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from outbox.errors import BadInput
from scenarios.targets import faults, judge, stored, verdicts
from scenarios.targets.outcomes import Arrival

JOB, CANARY = "halt23-job-1", "halt23-canary-1"


@pytest.mark.parametrize(
    "name",
    [
        "work:huey.storage:412#2",
        "setup:worker.py:3#1",
        "work:inner/worker.py:3#1+recover:worker.py:9#2",
        "enqueue:sys:fsync#3",
        "work:point:receipt.append.before#1",
        "receiver:hangs-up",
    ],
)
def test_a_name_tells_the_case_and_the_case_its_name(name: str) -> None:
    assert str(faults.parse(name)) == name


@pytest.mark.parametrize("name", ["", "work", "work:worker.py:0#1", "work:worker.py:3#0", "sleep:a.py:1#1", "receiver:sulks"])
def test_what_names_no_case_is_refused_with_what_would(name: str) -> None:
    with pytest.raises(BadInput, match="names no case: expected ROLE:MODULE:LINE#N"):
        faults.parse(name)


@pytest.mark.parametrize(("count", "struck"), [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (50, [1, 2, 50])])
def test_of_many_occurrences_the_first_two_and_the_last_are_struck(count: int, struck: list[int]) -> None:
    assert faults.occurrences(count) == struck
    assert faults.occurrences(count, last=False) == struck[:2]


def arrival(job: str | None, key: str | None, status: int | None = 200) -> Arrival:
    return Arrival(job=job, key=key, status=status, applied=status != 503, after_restart=True, seconds=1.0)


@pytest.mark.parametrize(
    ("arrivals", "keyed", "unkeyed"),
    [
        ([], 0, 0),
        ([arrival(JOB, "a")], 1, 1),
        ([arrival(JOB, "a"), arrival(JOB, "a", None)], 1, 2),
        ([arrival(JOB, "a"), arrival(JOB, "b")], 2, 2),
        ([arrival(JOB, None), arrival(JOB, None)], 2, 2),
        ([arrival(JOB, "a", 503), arrival(JOB, "a")], 1, 1),
        ([arrival(CANARY, "same"), arrival(JOB, "same", 409)], 0, 1),
        ([arrival(None, "a")], 0, 0),
    ],
)
def test_effects_are_counted_by_key_and_by_arrival(arrivals: list[Arrival], keyed: int, unkeyed: int) -> None:
    counted = judge.effects(arrivals, (JOB, CANARY))[JOB]
    assert (counted.keyed, counted.unkeyed) == (keyed, unkeyed)


@pytest.mark.parametrize(
    ("arrivals", "is_stored", "verdict", "said"),
    [
        ([arrival(CANARY, "c")], False, verdicts.LOST, f"{JOB} was not delivered, and is stored no more"),
        ([arrival(CANARY, "c")], True, verdicts.STUCK, f"{CANARY}, enqueued after the restart, was, so the worker lives"),
        ([], None, verdicts.STUCK, "whether it is still stored cannot be told"),
        ([arrival(JOB, "a")], None, verdicts.STUCK, f"{CANARY}, enqueued after the restart, was not delivered"),
        (
            [arrival(JOB, "a"), arrival(CANARY, "c"), *[arrival(JOB, "a", 409)] * 3],
            None,
            verdicts.STUCK,
            f"{JOB} comes again and again with another body under its key",
        ),
        (
            [arrival(JOB, "a"), arrival(CANARY, "c"), *[arrival(JOB, "a", 409)] * 2],
            None,
            verdicts.UNKEYED,
            "under the same key",
        ),
        ([arrival(JOB, "a"), arrival(CANARY, "a", 409)], None, verdicts.STUCK, f"{CANARY} came under the key of {JOB} only"),
        (
            [arrival(JOB, "a"), arrival(JOB, "b"), arrival(CANARY, "c")],
            None,
            verdicts.KEYED,
            "its key is another one each time",
        ),
        ([arrival(JOB, None), arrival(JOB, None), arrival(CANARY, "c")], None, verdicts.KEYED, "it is sent without a key"),
        (
            [arrival(JOB, "a"), arrival(JOB, "a"), arrival(CANARY, "c")],
            None,
            verdicts.UNKEYED,
            "came 2 times under the same key",
        ),
    ],
)
def test_each_verdict_has_its_reason(arrivals: list[Arrival], is_stored: bool | None, verdict: str, said: str) -> None:
    counted = judge.effects(arrivals, (JOB, CANARY))
    refused = judge.refused(arrivals, (JOB, CANARY))
    told = verdicts.of_worker(fired=True, doubts=(), effects=counted, canary=CANARY, stored=is_stored, refused=refused)
    assert told == verdict
    assert said in " ".join(judge.reasons(arrivals, counted, judge.Watch(CANARY, 3.0, is_stored, None), verdict))


def test_a_job_is_found_in_a_file_in_a_name_and_in_a_row(tmp_path: Path) -> None:
    assert not stored.holds(tmp_path, JOB)
    (tmp_path / "queue").mkdir()
    (tmp_path / "queue" / "log").write_bytes(b"\0\1" + JOB.encode() + b"\xff")
    assert stored.holds(tmp_path, JOB)
    (tmp_path / "queue" / "log").unlink()
    (tmp_path / "queue" / f"{JOB}.json").touch()
    assert stored.holds(tmp_path, JOB)


def test_a_row_that_was_deleted_is_stored_no_more_whatever_bytes_are_left(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("pragma secure_delete = off")
        database.execute("create table jobs (name text)")
        database.execute("insert into jobs values (?)", (JOB,))
        assert stored.holds(tmp_path, JOB)
        database.execute("delete from jobs")
    assert JOB.encode() in path.read_bytes()
    assert not stored.holds(tmp_path, JOB)


def test_a_row_that_is_in_the_log_of_the_database_alone_is_stored(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)) as database:
        database.execute("pragma journal_mode = wal")
        database.execute("create table jobs (name text)")
        database.execute("insert into jobs values (?)", (JOB,))
        assert JOB.encode() not in (tmp_path / "jobs.db").read_bytes()
        assert stored.holds(tmp_path, JOB)


@pytest.mark.parametrize("name", ["a b.py", "a+b#1%.py", "é.py"])
def test_any_name_of_a_script_can_stand_in_the_name_of_a_case(name: str) -> None:
    case = faults.Case((faults.Fault(faults.WORK, faults.LINE, f"{faults.script_name(name)}:7", 2),))
    assert faults.parse(str(case)) == case


@pytest.mark.parametrize(
    "name",
    ["work:a:1#1+receiver:dies", "work:a:1#1+enqueue:a:1#1", "work:a:1#1+work:a:1#1+work:a:1#1", "recover:a:1#1+recover:a:1#1"],
)
def test_what_no_recovery_can_die_of_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="behind \\+ stands one death of the recovery"):
        faults.parse(name)

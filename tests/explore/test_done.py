"""What was to be done to a system is only told, and only trusted, where the records show that it was done."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from audit import campaign_leases
from scenarios.explore import exchanges
from scenarios.explore.derive import CUTS, WHOLE
from scenarios.explore.leases import attempts_in_a_lease
from scenarios.explore.model import Case, Cut, Pause
from scenarios.explore.story import story
from scenarios.explore.subjects import wired
from scenarios.explore.verdicts import HELD, UNKNOWN
from scenarios.oracle.variants import subjects
from scenarios.relay import EXCHANGES
from tests.explore.ground import KEYED, Ground, changed, named, subject

DUE = "00000000000000000000000000000001"


def record(directory: Path, fault: str, *sizes: int) -> None:
    """Let a relay in `directory` have had one connection, of these sizes."""
    names = ("request_bytes", "request_forwarded_bytes", "response_bytes", "response_forwarded_bytes")
    (directory / "relay").mkdir()
    journal = EXCHANGES.open(directory / "relay")
    journal.append("exchange", "connection-1", {"fault": fault, **dict(zip(names, sizes, strict=True))})
    journal.close()


def said(directory: Path, fault: str, connection: int = 1) -> list[str]:
    return asyncio.run(exchanges.undone(directory, [Cut(fault, connection)]))


DONE = {
    "cut-request:start": (200, 0, 0, 0),
    "reset-request:end": (200, 200, 90, 0),
    "cut-response:60": (200, 200, 90, 60),
    "reset-response:end": (200, 200, 90, 90),
    "duplicate-request": (200, 200, 90, 90),
    "hold-response": (200, 200, 90, 0),
    "redirect": (200, 0, 0, 70),
    "unreadable-success": (200, 200, 90, 80),
}


@pytest.mark.parametrize("fault", DONE)
def test_a_cut_that_the_relay_recorded_was_done(tmp_path: Path, fault: str) -> None:
    record(tmp_path, fault, *DONE[fault])
    assert said(tmp_path, fault) == []


# Their sizes are those of a plain exchange.
SEEN_BY_NAME_ONLY = {"duplicate-request", "cut-response:end", "reset-response:end"}


@pytest.mark.parametrize("fault", sorted({*CUTS, *WHOLE} - SEEN_BY_NAME_ONLY))
def test_a_relay_that_let_everything_through_has_done_nothing(tmp_path: Path, fault: str) -> None:
    record(tmp_path, fault, 200, 200, 90, 90)
    assert len(said(tmp_path, fault)) == 1


@pytest.mark.parametrize(
    ("fault", "recorded", "sizes", "why"),
    [
        ("redirect", "none", (200, 200, 90, 90), "the relay's record of it has the fault none"),
        ("cut-response:7", "cut-response:60", (200, 200, 90, 60), "the relay's record of it has the fault cut-response:60"),
        ("cut-request:start", "cut-request:start", (0, 0, 0, 0), "no request came"),
        ("cut-response:start", "cut-response:start", (200, 200, 0, 0), "of the response's 0 bytes 0 went through"),
        ("cut-response:9999", "cut-response:9999", (200, 200, 90, 90), "of the response's 90 bytes 90 went through"),
        ("hold-response", "hold-response", (200, 200, 0, 0), "no response was held back"),
    ],
)
def test_what_speaks_against_a_cut_is_said(tmp_path: Path, fault: str, recorded: str, sizes: tuple[int, ...], why: str) -> None:
    record(tmp_path, recorded, *sizes)
    assert said(tmp_path, fault) == [f"{fault} was to be done to connection 1 and was not: {why}"]


def test_a_connection_that_never_came_was_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanges, "NEWS_SECONDS", 0)
    missing = "cut-response:7 was to be done to connection 2 and was not: the relay has no record of such a connection"
    assert said(tmp_path, "cut-response:7", 2) == [missing]
    record(tmp_path, "none", 200, 200, 90, 90)
    assert said(tmp_path, "cut-response:7", 2) == [missing]


def test_a_cut_that_never_comes_is_unknown_and_is_not_told_as_done(ground: Ground, tmp_path: Path) -> None:
    played = ground.play(named(wired(KEYED), "wire:hold-response#9"), tmp_path / "case")
    assert played.verdict.outcome == UNKNOWN
    assert "round 1: hold-response was to be done to connection 9 and was not" in played.verdict.doubts[0]


@pytest.mark.parametrize(
    ("doubts", "died", "told"),
    [
        ([], [], "the relay did redirect to connection 1 in round 1;"),
        (["round 1: redirect was not done"], [], "the relay was to do redirect to connection 1 in round 1;"),
        ([], [1], "the relay was to do redirect to connection 1 in round 1, then sender died at"),
    ],
)
def test_a_story_tells_as_done_what_was_done(doubts: list[str], died: list[int], told: str) -> None:
    deaths = [{"process": "sender", "point": "send.before", "occurrence": 1, "round": each, "left": ""} for each in died]
    result = {"case": "a/b/wire:redirect#1", "doubts": doubts, "violations": [], "deaths": deaths, "counts": {}}
    assert story(result).startswith(told)


def test_a_recovery_that_says_what_it_found_and_changes_nothing_is_stuck(ground: Ground, tmp_path: Path) -> None:
    which = changed(KEYED, "dispatcher", "first_then_words")
    verdict = ground.play(named(which, "send.before#1"), tmp_path / "case").verdict
    assert (verdict.kinds, verdict.doubts) == (("stuck",), ())


def move(at: float, previous: str | None, reason: str = "dispatch.delivering.attempt") -> dict[str, Any]:
    return {"entity_id": DUE, "previous_status": previous, "reason_code": reason, "created_at": at}


@pytest.mark.parametrize(
    ("moves", "found"),
    [
        ([], []),
        ([move(1000.0, "pending"), move(1015.0, "delivering")], []),
        ([move(1000.0, "pending"), move(1001.0, "pending")], []),
        ([move(1000.0, "pending"), move(1014.5, "delivering")], [14.5]),
        ([move(1000.0, "pending"), move(1014.0, "delivering", "other"), move(1020.0, "delivering")], []),
        ([move(1000.0, "pending"), move(1014.0, "delivering"), move(1028.0, "delivering")], [14, 14]),
        ([move(1000.0, "delivering")], []),
    ],
)
def test_an_attempt_within_the_lease_of_another_is_seen_by_engine_and_audit(
    moves: list[dict[str, Any]], found: list[float]
) -> None:
    told = [f"an attempt at {DUE} began {passed:g} s after another that had not ended, within its lease" for passed in found]
    assert list(attempts_in_a_lease(moves, 15)) == told
    assert campaign_leases.broken(moves, 15) == told


@pytest.mark.parametrize(("name", "kinds"), [("dispatch/keyed", ()), ("oracle/no-lease", ("phantom",))])
def test_who_comes_in_the_last_second_of_a_lease_must_not_attempt(
    ground: Ground, tmp_path: Path, name: str, kinds: tuple[str, ...]
) -> None:
    which = next((each for each in subjects() if each.name == name), None) or subject(name)
    case = Case(which, ((Pause("scheduler", "dispatch.claim.committed", in_lease=True),),))
    played = ground.play(case, tmp_path / "case")
    assert str(case) == f"{name}/pause-in-lease:dispatch.claim.committed#1"
    assert (played.verdict.kinds, played.verdict.doubts) == (kinds, ())
    other = next(process for process in played.processes if process.name == "other_scheduler")
    assert "1014" in other.program.arguments
    assert (played.verdict.outcome == HELD) == (not kinds)

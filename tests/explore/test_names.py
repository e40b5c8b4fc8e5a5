"""A case's name is stable text: what a campaign prints is read again as the same case, and what names none is refused."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import run
from outbox import faults
from outbox.errors import BadInput
from scenarios.engine import lines
from scenarios.explore.command import find
from scenarios.explore.derive import CUTS, WHOLE
from scenarios.explore.model import RELAY, Case, Cut, Death, Pause, Subject, parse
from scenarios.explore.subjects import SUBJECTS, wired

FEW = settings(max_examples=40)
POINTS = sorted(faults.declared())
LINES = [f"outbox.workflow:{number}" for number in sorted(lines.executable("outbox.workflow"))]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any case that could be played: in one round a process is struck once at most, and in all of them a connection."""
    which = draw(st.sampled_from(SUBJECTS))
    through_relay = draw(st.booleans())
    which = wired(which) if through_relay else which
    rounds = draw(st.lists(struck(which, through_relay=through_relay), max_size=3))
    cuts = [fault.connection for fault in chain(*rounds) if isinstance(fault, Cut)]
    assume(len(set(cuts)) == len(cuts))
    while rounds and not rounds[-1]:
        rounds.pop()
    return Case(which, tuple(rounds))


def struck(which: Subject, *, through_relay: bool) -> st.SearchStrategy[tuple[Death | Pause | Cut, ...]]:
    numbers = st.integers(1, 999_999_999)
    mortal = [role.process for role in which.roles if role.process != RELAY]
    patient = [role.process for role in which.roles if role.stoppable and not role.server]
    leased = [role.process for role in which.roles if role.lease_seconds is not None]
    points = st.sampled_from(POINTS)
    at_points = st.one_of(
        st.builds(Death, st.sampled_from(mortal), points | st.sampled_from(LINES), numbers),
        st.builds(Pause, st.sampled_from(patient), points, numbers),
        st.builds(Pause, st.sampled_from(leased), points, numbers, st.just(True)) if leased else st.nothing(),
    ).filter(lambda fault: which.may_reach(fault.process, fault.point))
    cuts = st.builds(Cut, st.sampled_from((*CUTS, *WHOLE)), numbers) if through_relay else st.nothing()
    return st.tuples(
        st.lists(cuts, max_size=2, unique_by=lambda cut: cut.connection) if through_relay else st.just([]),
        st.lists(at_points, max_size=2, unique_by=lambda fault: fault.process),
    ).map(lambda both: tuple(chain(*both)))


@FEW
@given(case=cases())
def test_a_name_is_read_as_the_case_that_printed_it(case: Case) -> None:
    text = str(case)
    assert parse(text, [case.subject]) == case
    assert text.isascii()
    assert not any(character.isspace() for character in text)


@FEW
@given(case=cases(), other=cases())
def test_two_cases_have_two_names(case: Case, other: Case) -> None:
    assert (str(case) == str(other)) == ((case.subject.name, case.rounds) == (other.subject.name, other.rounds))


@FEW
@given(case=cases())
def test_a_name_tells_the_subject_among_all(case: Case) -> None:
    has_relay = any(role.process == RELAY for role in find(str(case)).subject.roles)
    assert has_relay == any(isinstance(fault, Cut) for fault in case.faults)
    assert find(str(case)).subject.name == case.subject.name


@FEW
@given(text=st.text() | st.text("abcdefghijklmnopqrstuvwxyz:#&+./1", max_size=30).map("journal/keyed/{}".format))
def test_any_other_text_is_refused_or_is_the_name_it_is_read_as(text: str) -> None:
    try:
        case = parse(text, SUBJECTS)
    except BadInput as error:
        assert "names no case" in str(error)
    else:
        assert parse(str(case), SUBJECTS) == case


@pytest.mark.parametrize(
    ("text", "help_"),
    [
        ("", "there is no subject ''; there are: journal/keyed, "),
        ("receipt.append.torn#1", "there is no subject ''"),
        ("journal/nowhere/none", "there is no subject 'journal/nowhere'; there are: "),
        ("journal/keyed/receipt.append.torn", "expected POINT#N, PROCESS:POINT#N, PROCESS:MODULE:LINE#N, pause:POINT"),
        ("journal/keyed/receipt.append.torn#0", "'receipt.append.torn#0' is no fault"),
        ("journal/keyed/receipt.append.torn#1+", "'' is no fault"),
        ("journal/keyed/none+none", "its last round is 'none'"),
        ("journal/keyed/send.before#1+none", "its last round is 'none'"),
        ("journal/keyed/cat:receipt.append.torn#1", "has no process cat; it has: producer, "),
        ("journal/keyed/intentions.locked.before#1", "no fault point 'intentions.locked.before'"),
        ("journal/keyed/receipt.append.torn#1&send.before#1", "dispatcher is struck twice in one round"),
        ("journal/keyed/pause:effect.append.torn#1", "receiver cannot be stopped"),
        ("journal/keyed/receiver:send.before#1", "receiver has no point send.before: that is one of dispatcher"),
        ("journal/keyed/pause-in-lease:send.before#1", "dispatcher has no lease in journal/keyed"),
        ("journal/keyed/wire:redirect#1+wire:hold-response#1", "connection 1 is struck twice in one case"),
        ("journal/keyed/pause:intention.append.torn#1", "producer cannot be stopped"),
        ("journal/keyed/dispatcher:outbox.nowhere:12#1", "'outbox.nowhere' is no module under study"),
        ("journal/keyed/dispatcher:outbox.workflow:1#1", "no function of outbox.workflow has code in line 1"),
        ("journal/keyed/cat:outbox.workflow:270#1", "has no process cat; it has: producer, "),
        ("journal/keyed/outbox.workflow:270#1", "'outbox.workflow:270#1' is no fault"),
        ("journal/keyed/pause:dispatcher:outbox.workflow:270#1", "is no fault"),
        ("journal/keyed/wire:cut-nothing#1", "no fault 'cut-nothing'"),
        ("journal/keyed/wire:cut-request:nowhere#1", "needs a place"),
    ],
)
def test_what_names_no_case_is_refused_with_what_would(text: str, help_: str) -> None:
    with pytest.raises(BadInput) as refused:
        find(text)
    assert help_ in str(refused.value)


@pytest.mark.parametrize("command", ["replay", "shrink"])
def test_a_bad_name_is_bad_usage_and_leaves_nothing(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([command, "journal/keyed/nonsense", "--out", str(tmp_path / "out")]) == 2
    printed = capsys.readouterr()
    assert (printed.out, "'nonsense' is no fault" in printed.err) == ("", True)
    assert not (tmp_path / "out").exists()

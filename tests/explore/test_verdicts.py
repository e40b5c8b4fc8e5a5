"""The four ways to fail are told apart, and a doubt outweighs them all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.explore.model import Allowed, Case, Cut, Death
from scenarios.explore.state import State
from scenarios.explore.verdicts import DUPLICATE, HELD, KINDS, LOST, PHANTOM, STUCK, UNKNOWN, VIOLATED, Verdict, judge
from tests.explore.ground import KEYED, UNKEYED

CLEAN = State("", {"first": 1}, {"first": 1}, {"first": 1}, 1, 1, (), {}, (), (), (), "")
DIED = Death("dispatcher", "send.before")
few_counts = st.dictionaries(st.sampled_from(("first", "second", "")), st.integers(1, 3))
states = st.builds(
    State,
    st.just(""),
    few_counts,
    few_counts,
    few_counts,
    st.integers(0, 3),
    st.just(3),
    st.sampled_from(((), ("first has no receipt",))),
    st.just({}),
    st.just(()),
    st.just(()),
    st.sampled_from(((), ("effects.jsonl",))),
    st.just(""),
)


def kinds(state: State, *, finished: bool = True, case: Case | None = None) -> tuple[str, ...]:
    return judge(case or Case(KEYED), state, finished=finished).kinds


def test_what_is_as_promised_holds() -> None:
    assert judge(Case(KEYED), CLEAN, finished=True) == Verdict()
    assert Verdict().outcome == HELD


@pytest.mark.parametrize(
    ("state", "finished", "expected"),
    [
        (replace(CLEAN, effects={}), True, (LOST,)),
        (replace(CLEAN, effects={}, receipts={}), True, (LOST,)),
        (replace(CLEAN, receipts={}), True, (LOST,)),
        (replace(CLEAN, damaged=("effects.jsonl",)), True, (LOST,)),
        (replace(CLEAN, effects={"first": 2}), True, (DUPLICATE,)),
        (replace(CLEAN, receipts={"first": 2}), True, (DUPLICATE,)),
        (replace(CLEAN, effects={"first": 1, "other": 1}), True, (PHANTOM,)),
        (replace(CLEAN, receipts={"first": 1, "other": 1}), True, (PHANTOM,)),
        (replace(CLEAN, history={"other": 1}), True, (PHANTOM,)),
        (CLEAN, False, (STUCK,)),
        # Who is stuck may still deliver: nothing is lost yet. But a receipt without an effect is a loss at any time.
        (replace(CLEAN, effects={}, receipts={}), False, (STUCK,)),
        (replace(CLEAN, effects={}), False, (LOST, STUCK)),
        (replace(CLEAN, effects={"first": 2, "other": 1}, damaged=("x",)), False, (LOST, DUPLICATE, PHANTOM, STUCK)),
        (replace(CLEAN, effects={"other": 1}), True, (LOST, PHANTOM)),
    ],
)
def test_each_way_to_fail_has_its_word(state: State, finished: bool, expected: tuple[str, ...]) -> None:
    assert kinds(state, finished=finished) == expected


def test_a_receipt_with_nothing_behind_it_is_told_as_one() -> None:
    (violation,) = judge(Case(KEYED), replace(CLEAN, effects={}), finished=True).violations
    assert violation.sentence == "first was promised and has 0 effects, and a receipt says that it was"


def test_who_is_stuck_is_told_with_what_is_left() -> None:
    unfinished = replace(CLEAN, receipts={}, unfinished=("first has no receipt",))
    assert judge(Case(KEYED), unfinished, finished=False).violations[0].sentence == "after the last round: first has no receipt"


@pytest.mark.parametrize(
    ("case", "most"),
    [
        (Case(KEYED), 1),
        (Case(KEYED, ((DIED,), (DIED,))), 1),
        (Case(UNKEYED), 1),
        (Case(UNKEYED, ((DIED,),)), 2),
        (Case(UNKEYED, ((DIED,), (DIED,))), 3),
        (Case(replace(KEYED, allowed=Allowed(each_copy=1)), ((Cut("duplicate-request"),),)), 2),
        (Case(replace(KEYED, allowed=Allowed(each_copy=1)), ((Cut("hold-response"), DIED),)), 1),
    ],
)
def test_how_often_an_effect_may_come_follows_from_the_receiver_and_the_faults(case: Case, most: int) -> None:
    assert kinds(replace(CLEAN, effects={"first": most}), case=case) == ()
    assert kinds(replace(CLEAN, effects={"first": most + 1}), case=case) == (DUPLICATE,)


@pytest.mark.parametrize("most", [1, 5])
def test_an_effect_that_never_came_is_lost_whatever_may_come_twice(most: int) -> None:
    assert kinds(replace(CLEAN, effects={}), case=Case(replace(KEYED, allowed=Allowed(most=most)))) == (LOST,)


@settings(max_examples=60)
@given(state=states, finished=st.booleans(), doubt=st.booleans())
def test_a_doubt_outweighs_everything_and_hides_nothing(state: State, finished: bool, doubt: bool) -> None:
    verdict = judge(Case(KEYED), state, finished=finished, doubts=["derive again"] if doubt else [])
    without = judge(Case(KEYED), state, finished=finished)
    assert verdict.violations == without.violations
    assert verdict.outcome == (UNKNOWN if doubt else VIOLATED if without.violations else HELD)
    assert [kind for kind in KINDS if kind in verdict.kinds] == list(verdict.kinds)


@settings(max_examples=60)
@given(state=states, finished=st.booleans())
def test_only_the_very_state_that_was_promised_holds(state: State, finished: bool) -> None:
    promised = (state.effects, state.receipts) == ({"first": 1}, {"first": 1})
    others = set(state.history) - {"first"} or state.damaged
    held = judge(Case(KEYED), state, finished=finished).outcome == HELD
    assert held == bool(promised and not others and finished)

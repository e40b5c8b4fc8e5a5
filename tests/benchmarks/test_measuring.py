"""Contenders take turns, ratios are taken within a round, and what cannot be measured is told."""

from collections.abc import Callable

import pytest

from benchmarks.measuring import FLAT, LINEAR, Comparison, Contender, Goal, Growth, Measured, Series, Slope, measure


def quiet(_text: str) -> None:
    pass


def noted(name: str, order: list[tuple[str, int]], values: list[float]) -> Contender:
    """Says when it runs; returns the next value."""

    def run(number: int) -> float:
        order.append((name, number))
        return values[number]

    return Contender(name, run)


def compared(*goals: Goal, b: Callable[[int], float] | None = None, missing: str | None = None) -> Measured:
    contenders = (
        Contender("a", lambda number: [0.0, 10.0, 20.0, 30.0][number]),
        Contender("b", b or (lambda number: [0.0, 5.0, 5.0, 5.0][number]), missing=missing),
    )
    return measure(Comparison("both", "seconds", contenders, goals, rounds=3), quiet)


def test_each_round_runs_all_and_begins_with_another_one() -> None:
    order: list[tuple[str, int]] = []
    contenders = tuple(noted(name, order, [1.0] * 4) for name in "abc")
    measure(Comparison("x", "seconds", contenders, rounds=3, warm_up=1), quiet)
    names = "".join(name for name, _number in order)
    assert [names[start : start + 3] for start in range(0, 12, 3)] == ["cab", "abc", "bca", "cab"]
    assert [number for _name, number in order] == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3


def test_warm_up_counts_nowhere() -> None:
    assert [line.values for line in compared().lines] == [(10.0, 20.0, 30.0), (5.0, 5.0, 5.0)]


def test_a_ratio_is_taken_within_each_round_and_its_median_is_told_with_least_and_most() -> None:
    (verdict,) = compared(Goal("a over b", "a", "b", at_least=4)).verdicts
    assert (verdict.ratio, verdict.least, verdict.most, verdict.met) == (4.0, 2.0, 6.0, True)


@pytest.mark.parametrize(
    ("goal", "met"),
    [
        (Goal("g", "a", "b", at_least=4.1), False),
        (Goal("g", "a", "b", at_most=4.0), True),
        (Goal("g", "a", "b", at_most=3.9), False),
        (Goal("g", "a", "b"), True),
    ],
)
def test_a_goal_is_met_by_the_median_alone(goal: Goal, met: bool) -> None:
    assert compared(goal).verdicts[0].met is met


def test_who_cannot_run_here_is_not_run_and_says_what_to_install() -> None:
    def never(_round: int) -> float:
        raise AssertionError("it was run")

    found = compared(Goal("a over b", "a", "b", at_least=1), b=never, missing="pip install b")
    assert (found.lines[1].values, found.lines[1].skipped) == ((), "pip install b")
    (verdict,) = found.verdicts
    assert (verdict.ratio, verdict.met, verdict.skipped) == (None, None, "b: pip install b")


def test_a_goal_that_names_nobody_is_a_mistake_that_is_told_before_anything_runs() -> None:
    with pytest.raises(ValueError, match="names c; there are: a, b"):
        compared(Goal("g", "a", "c"), b=lambda _round: pytest.fail("it was run"))


def grown(shape: str, at_most: float, values: dict[int, list[float]]) -> Measured:
    left = {size: list(each) for size, each in values.items()}
    series = Series("s", lambda size: left[size].pop(0))
    part = Growth("g", "rows", "seconds", tuple(values), (series,), (Slope("slope", "s", shape, at_most),), rounds=3)
    return measure(part, quiet)


def test_flat_is_the_largest_over_the_smallest_size_by_the_medians_of_the_rounds() -> None:
    found = grown(FLAT, 1.5, {1: [9.0, 2.0, 1.0], 100: [3.0, 3.0, 99.0]})
    assert (found.lines[0].values, found.verdicts[0].ratio, found.verdicts[0].met) == ((2.0, 3.0), 1.5, True)


def test_linear_is_the_same_of_each_unit_of_size() -> None:
    found = grown(LINEAR, 1.1, {10: [1.0] * 3, 1000: [120.0] * 3})
    assert found.verdicts[0].ratio == pytest.approx(1.2)
    assert found.verdicts[0].met is False


def test_a_series_that_cannot_run_is_told_and_its_slope_is_not_judged() -> None:
    series = Series("s", lambda _size: pytest.fail("it was run"), missing="apt-get install s")
    found = measure(Growth("g", "rows", "s", (1, 2), (series,), (Slope("slope", "s", FLAT, 1),)), quiet)
    assert (found.lines[0].skipped, found.verdicts[0].met) == ("apt-get install s", None)

"""What a benchmark is: contenders that take turns, ratios between them, and what the ratios should be.

A machine's speed drifts while it is measured, so an absolute number says little and a difference between two runs less. Here
the contenders of one comparison take turns in one run: each round runs all of them, and each round begins with another one. A
ratio is taken within each round; what is told is the median of the rounds, with the least and the most. A growth measures one
thing at several sizes and asks whether its cost is flat, or linear: of the medians of its rounds.

Nothing here knows what is measured, and a goal that is missed is told, not raised.
"""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

FLAT = "flat"
LINEAR = "linear"


@dataclass(frozen=True, slots=True)
class Contender:
    """One of those that are compared. `run(round)` returns its value in the unit of the comparison; `note` says how it was set
    up; `missing` says what to install where it cannot run here, else None."""

    name: str
    run: Callable[[int], float]
    note: str = ""
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class Goal:
    """What the ratio of the values of two contenders should be: `of` divided by `to`, at least or at most so much."""

    text: str
    of: str
    to: str
    at_least: float | None = None
    at_most: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Contenders side by side. `unit` is of their values; `rounds` are counted, `warm_up` rounds before them are not."""

    name: str
    unit: str
    contenders: tuple[Contender, ...]
    goals: tuple[Goal, ...] = ()
    note: str = ""
    rounds: int = 5
    warm_up: int = 1


@dataclass(frozen=True, slots=True)
class Series:
    """What is measured at each size of a growth: `run(size)` returns the value."""

    name: str
    run: Callable[[int], float]
    note: str = ""
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class Slope:
    """How a series should grow. FLAT: the value at the largest size divided by that at the smallest is at most `at_most`.
    LINEAR: the same of the value for each unit of size."""

    text: str
    series: str
    shape: str
    at_most: float


@dataclass(frozen=True, slots=True)
class Growth:
    """Cost against size: `quantity` names what is counted by `sizes`."""

    name: str
    quantity: str
    unit: str
    sizes: tuple[int, ...]
    series: tuple[Series, ...]
    slopes: tuple[Slope, ...] = ()
    note: str = ""
    rounds: int = 1


Part = Comparison | Growth
Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Line:
    """What was measured of one contender or series: `values` by round, or by size (medians of the rounds)."""

    name: str
    note: str
    values: tuple[float, ...]
    skipped: str | None = None

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.values)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a goal: the ratio (median, least, most of the rounds), or why there is none."""

    text: str
    at_least: float | None
    at_most: float | None
    ratio: float | None
    least: float | None = None
    most: float | None = None
    skipped: str | None = None

    @property
    def met(self) -> bool | None:
        """Whether the median meets the goal; None where it could not be measured."""
        if self.ratio is None:
            return None
        return (self.at_least is None or self.ratio >= self.at_least) and (self.at_most is None or self.ratio <= self.at_most)


@dataclass(frozen=True, slots=True)
class Measured:
    """A part, measured. `sizes` and `quantity` are those of a growth."""

    name: str
    unit: str
    note: str
    lines: tuple[Line, ...]
    verdicts: tuple[Verdict, ...]
    quantity: str | None = None
    sizes: tuple[int, ...] = ()


def measure(part: Part, told: Told, rounds: int | None = None) -> Measured:
    """Measure one part. `told` hears of each step; `rounds` replaces the part's own number. Raises ValueError for a part that
    names a contender which it does not have."""
    return _compare(part, told, rounds) if isinstance(part, Comparison) else _grow(part, told, rounds)


def _compare(part: Comparison, told: Told, rounds: int | None) -> Measured:
    _known([name for goal in part.goals for name in (goal.of, goal.to)], [each.name for each in part.contenders], part.name)
    present = [each for each in part.contenders if each.missing is None]
    values: dict[str, list[float]] = {each.name: [] for each in present}
    for number in range(-part.warm_up, rounds or part.rounds):
        for contender in _rotated(present, number):
            told(f"{part.name}: {'warm-up' if number < 0 else f'round {number + 1}'}: {contender.name}")
            value = contender.run(number + part.warm_up)
            if number >= 0:
                values[contender.name].append(value)
    lines = [Line(each.name, each.note, tuple(values.get(each.name, ())), each.missing) for each in part.contenders]
    return Measured(part.name, part.unit, part.note, tuple(lines), tuple(_judged(goal, lines) for goal in part.goals))


def _rotated(contenders: Sequence[Contender], number: int) -> Iterator[Contender]:
    first = number % max(1, len(contenders))
    yield from contenders[first:]
    yield from contenders[:first]


def _judged(goal: Goal, lines: Sequence[Line]) -> Verdict:
    of, to = (next(line for line in lines if line.name == name) for name in (goal.of, goal.to))
    for line in (of, to):
        if line.skipped is not None:
            return Verdict(goal.text, goal.at_least, goal.at_most, None, skipped=f"{line.name}: {line.skipped}")
    ratios = [mine / other for mine, other in zip(of.values, to.values, strict=True)]
    return Verdict(goal.text, goal.at_least, goal.at_most, statistics.median(ratios), min(ratios), max(ratios))


def _grow(part: Growth, told: Told, rounds: int | None) -> Measured:
    _known([slope.series for slope in part.slopes], [each.name for each in part.series], part.name)
    values: dict[tuple[str, int], list[float]] = {}
    for number in range(rounds or part.rounds):
        for size in part.sizes:
            for series in part.series:
                if series.missing is None:
                    told(f"{part.name}: {size:,} {part.quantity}, round {number + 1}: {series.name}")
                    values.setdefault((series.name, size), []).append(series.run(size))
    lines = [
        Line(
            each.name,
            each.note,
            () if each.missing else tuple(statistics.median(values[each.name, size]) for size in part.sizes),
            each.missing,
        )
        for each in part.series
    ]
    verdicts = tuple(_sloped(slope, lines, part.sizes) for slope in part.slopes)
    return Measured(part.name, part.unit, part.note, tuple(lines), verdicts, part.quantity, part.sizes)


def _sloped(slope: Slope, lines: Sequence[Line], sizes: Sequence[int]) -> Verdict:
    line = next(line for line in lines if line.name == slope.series)
    if line.skipped is not None:
        return Verdict(slope.text, None, slope.at_most, None, skipped=f"{line.name}: {line.skipped}")
    ratio = line.values[-1] / line.values[0]
    if slope.shape == LINEAR:
        ratio /= sizes[-1] / sizes[0]
    return Verdict(slope.text, None, slope.at_most, ratio, ratio, ratio)


def _known(named: Sequence[str], there: Sequence[str], part: str) -> None:
    unknown = sorted(set(named) - set(there))
    if unknown:
        raise ValueError(f"{part}: a goal names {', '.join(unknown)}; there are: {', '.join(there)}")

"""Hypothesis chooses histories: the one of a seed, and the shortest that still fails.

The history of a seed is the first one that Hypothesis comes to with it after the simplest of all: it depends on the subject,
the seed and the release of Hypothesis, and on nothing that happens. To shrink it the same search is made again, and this time
the history is played, and those that Hypothesis makes of it. Nobody else imports Hypothesis, which is an extra.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain

try:
    import hypothesis
    from hypothesis import strategies
except ImportError as error:
    from outbox.errors import BadInput

    raise BadInput(
        f"--mode random: {error.name} is not installed; install halt23[random] (in a checkout: pip install -e '.[random]')"
    ) from error

from scenarios.explore.cast import cast, multiplies, points, runnable, server
from scenarios.explore.derive import CUTS, WHOLE
from scenarios.explore.histories import (
    CLOCK,
    HALT,
    HOW,
    KILL,
    MOST_OPERATIONS,
    RUN,
    SERVE,
    STOP,
    History,
    Step,
    Strike,
)
from scenarios.explore.model import Role, Subject

# Hypothesis makes short lists by itself, so a history is several of them in a row.
PARTS, LONGEST_PART, LONGEST_MEANWHILE = 4, 8, 3
# Within a lease, past it, past a backoff, past all; and back.
JUMPS = (700, 1, 20, 100, 700, 5000, 5000, -1, -100, -5000)
CONNECTIONS = 4
OCCURRENCES = (1, 1, 1, 1, 1, 2, 2, 3)
# A response that is held back costs the time that its sender waits for it.
HOLD = "hold-response"
Choice = strategies.SearchStrategy


def of_seed(subject: Subject, seed: int) -> History:
    """The history that this seed gives."""
    found: list[History] = []
    _search(subject, seed, found.append, ())
    return found[-1]


def shrunk(subject: Subject, seed: int, fails: Callable[[History], bool], most: int) -> History:
    """The simplest history that Hypothesis finds and that still `fails`, beginning with that of the seed, which does; it plays
    at most `most` of them."""
    whole = of_seed(subject, seed)
    known = {whole: True}
    smallest = whole
    begun = False

    def judge(history: History) -> None:
        nonlocal smallest, begun
        begun = begun or history == whole
        if not begun:
            return
        if history not in known:
            known[history] = len(known) < most and fails(history)
        if known[history]:
            smallest = history
            raise AssertionError("it fails")

    try:
        _search(subject, seed, judge, (hypothesis.Phase.shrink,))
    except AssertionError:
        return smallest
    return whole


def _search(subject: Subject, seed: int, judge: Callable[[History], None], phases: Sequence[hypothesis.Phase]) -> None:
    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=2,
        phases=(hypothesis.Phase.generate, *phases),
        database=None,
        deadline=None,
        derandomize=False,
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=hypothesis.Verbosity.quiet,
        suppress_health_check=list(hypothesis.HealthCheck),
        backend="hypothesis",
    )
    @hypothesis.given(histories(subject))
    def search(history: History) -> None:
        judge(history)

    search()


@cache
def histories(subject: Subject) -> Choice[History]:
    """The histories of a subject."""
    most = MOST_OPERATIONS if multiplies(subject) else 1
    return strategies.integers(1, most).flatmap(lambda operations: _of(cast(subject, operations), operations))


@cache
def _of(subject: Subject, operations: int) -> Choice[History]:
    step = _steps(subject)
    cut = strategies.tuples(
        strategies.integers(1, CONNECTIONS), strategies.sampled_from([*(each for each in WHOLE if each != HOLD), *CUTS, HOLD])
    )
    # Without a relay more often than with one: it is one more process, and the senders are impatient then.
    cuts: Choice[list[tuple[int, str]]] = strategies.one_of(
        strategies.just([]), strategies.just([]), strategies.lists(cut, min_size=1, max_size=3, unique_by=lambda each: each[0])
    )
    part = strategies.lists(step, max_size=LONGEST_PART)
    return strategies.builds(
        lambda wire, first, *parts: History(operations, tuple(wire), (*first, *chain.from_iterable(parts))),
        cuts,
        _beginning(subject),
        *[part] * PARTS,
    )


def _beginning(subject: Subject) -> Choice[tuple[Step, ...]]:
    """Some of the producers, so that what follows has something to do."""
    steps = [Step(RUN, role.process) for role in runnable(subject) if role.once]
    return strategies.tuples(*(strategies.sampled_from(((), (each,), (each,))) for each in steps)).map(
        lambda chosen: tuple(chain.from_iterable(chosen))
    )


def _steps(subject: Subject) -> Choice[Step]:
    meanwhile = strategies.one_of(
        _clock(),
        strategies.builds(Step, strategies.just(RUN), strategies.sampled_from(_stoppable(subject))),
        _serve(subject),
        strategies.just(Step(KILL)),
        *(_struck(subject, role, (HALT, KILL)) for role in runnable(subject) if role.stoppable),
    )
    choices: list[Choice[Step]] = [*[_clock()] * 4, strategies.just(Step(KILL)), *[_serve(subject)] * 5]
    for role in runnable(subject):
        struck = _struck(subject, role, (HALT, KILL))
        choices += [strategies.just(Step(RUN, role.process)), struck]
        if not role.once:  # it has work as long as anything is undone, so it is worth striking again and again
            choices += [struck] * 5
        if role.stoppable:
            choices += [_stopped(subject, role, meanwhile)] * 4
    return strategies.one_of(choices)


def _stoppable(subject: Subject) -> list[str]:
    return [role.process for role in runnable(subject) if role.stoppable]


def _clock() -> Choice[Step]:
    return strategies.builds(lambda seconds: Step(CLOCK, seconds=seconds), strategies.sampled_from(JUMPS))


def _serve(subject: Subject) -> Choice[Step]:
    return strategies.builds(
        lambda strike: Step(SERVE, strike=strike), strategies.none() | _strike(subject, server(subject), HOW)
    )


def _struck(subject: Subject, role: Role, how: Sequence[str]) -> Choice[Step]:
    return strategies.builds(lambda strike: Step(RUN, role.process, strike), _strike(subject, role, how))


def _stopped(subject: Subject, role: Role, meanwhile: Choice[Step]) -> Choice[Step]:
    return strategies.builds(
        lambda strike, steps: Step(RUN, role.process, strike, meanwhile=tuple(steps)),
        _strike(subject, role, (STOP,)),
        strategies.lists(meanwhile, min_size=1, max_size=LONGEST_MEANWHILE),
    )


def _strike(subject: Subject, role: Role, how: Sequence[str]) -> Choice[Strike]:
    every = points(subject, role.process)
    # Files are created once, and repaired only after a death that tore them.
    often = [point for point in every if not any(word in point for word in (".create.", ".repair."))] or every
    return strategies.builds(
        Strike,
        strategies.sampled_from(list(how)),
        strategies.one_of(*[strategies.sampled_from(often)] * 3, strategies.sampled_from(every)),
        strategies.sampled_from(OCCURRENCES),
    )

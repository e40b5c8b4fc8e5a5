"""Choosing scenarios by section and by name."""

from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from outbox.errors import BadInput
from scenarios.model import SQLITE, Scenario


def runnable(scenarios: Sequence[Scenario], store: str) -> tuple[Scenario, ...]:
    """Those that can be run with databases of this store."""
    return tuple(scenario for scenario in scenarios if scenario.store in (None, store))


def select(
    scenarios: Sequence[Scenario], only: Sequence[str], sections: Sequence[str], store: str = SQLITE
) -> tuple[Scenario, ...]:
    """The scenarios in these sections whose name, or `section/name`, matches one of the globs `only`; all where none is given.

    Those that need another store are left out. Raises BadInput for a section that does not exist, a glob that matches nothing,
    and one that matches only what is left out.
    """
    known = list(dict.fromkeys(scenario.section for scenario in scenarios))
    for section in sections:
        if section not in known:
            raise BadInput(f"--section {section}: there is no such section; there are: {', '.join(known)}")
    chosen = [scenario for scenario in scenarios if not sections or scenario.section in sections]
    for pattern in only:
        if not any(_matches(scenario, pattern) for scenario in chosen):
            raise BadInput(f"--only {pattern!r} matches no scenario{_nearest(pattern, chosen)}; python run.py list names all")
    wanted = [each for each in chosen if not only or any(_matches(each, pattern) for pattern in only)]
    found = runnable(wanted, store)
    if not found:
        raise BadInput(f"{wanted[0].path} needs --store {wanted[0].store}")
    return found


def _nearest(pattern: str, scenarios: Sequence[Scenario]) -> str:
    """Those that the pattern may have meant, as the middle of a sentence."""
    near = get_close_matches(pattern.rpartition("/")[2], [each.name for each in scenarios], n=5)
    return f"; did you mean {' or '.join(near)}" if near else ""


def _matches(scenario: Scenario, pattern: str) -> bool:
    return fnmatchcase(scenario.name, pattern) or fnmatchcase(scenario.path, pattern)

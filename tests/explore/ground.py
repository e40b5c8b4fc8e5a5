"""What the tests of exploring share: subjects that are small or wrong on purpose, and a place to play them.

`Ground` owns one supervisor with its houses for the whole session; campaigns and cases of the tests are played on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from scenarios.catalogue.parts import dispatcher, receiver
from scenarios.engine.stage import Bounds
from scenarios.engine.stores import SqliteStore
from scenarios.explore import results
from scenarios.explore.campaign import CASES, Campaign, Plan
from scenarios.explore.derive import Derived, derive
from scenarios.explore.model import Allowed, Case, Role, Subject, parse
from scenarios.explore.readers import read_journals
from scenarios.explore.rounds import KEEP_ALL, Play, Played, Room
from scenarios.explore.state import Place, State
from scenarios.explore.subjects import AT_LEAST_ONE, ONE_EFFECT, SUBJECTS, TIME, journal
from scenarios.explore.tenants import Houses
from scenarios.model import Program
from tests.support import ROOT, ProcessBox

T = TypeVar("T")
BOUND_SECONDS = 60
LANES = 2
PROGRAMS = "tests.explore.programs"
# A pass that is only there to be waited for need not be waited for as long as a real one.
SHORT = Bounds(ready_seconds=5.0, run_seconds=5.0, stop_seconds=5.0)


def subject(name: str) -> Subject:
    """One that is shipped."""
    return next(each for each in SUBJECTS if each.name == name)


def program(process: str, name: str, *arguments: str) -> Program:
    """A program of `tests.explore.programs`."""
    return Program(process, PROGRAMS, (name, *arguments))


def through(name: str, wrapped: Program) -> Program:
    """`wrapped`, run by a program of `tests.explore.programs`."""
    return program(wrapped.process, name, wrapped.module, *wrapped.arguments)


def only(base: Subject, name: str, *beside: Role) -> Subject:
    """The same with one intention, and with more roles at its end."""
    roles = tuple(role for role in base.roles if role.process != "second_producer")
    return replace(base, name=name, roles=(*roles, *beside), operations=base.operations[:1])


def changed(base: Subject, process: str, wrapper: str) -> Subject:
    """The same with one of its programs run by another."""
    roles = tuple(
        replace(role, program=through(wrapper, role.program)) if role.process == process else role for role in base.roles
    )
    return replace(base, roles=roles)


def sent(name: str, kind: str, *options: str, allowed: Allowed = ONE_EFFECT) -> Subject:
    """One intention, sent to a receiver of this kind."""
    return only(journal(name, receiver(kind), dispatcher(*TIME, *options), allowed), name)


def without_history(place: Place) -> State:
    """The state for a sender that writes no history: who marks first has no answer to put there."""
    state = read_journals(place)
    return replace(state, unfinished=tuple(each for each in state.unfinished if not each.endswith("history record")))


KEYED = sent("small/keyed", "keyed")
UNKEYED = sent("small/unkeyed", "unkeyed", allowed=AT_LEAST_ONE)
MARK_FIRST = replace(sent("broken/mark-first", "keyed", "--policy", "mark-before-send"), read=without_history)
EFFECT_THEN_KEY = sent("broken/effect-then-key", "effect-then-key")
# Only what is put beside it can be struck.
UNARMED = changed(changed(changed(KEYED, "producer", "unarmed"), "receiver", "unarmed"), "dispatcher", "unarmed")
SMALL_BROKEN = replace(changed(changed(MARK_FIRST, "producer", "unarmed"), "receiver", "unarmed"), name="small/broken")
CHEAP = only(UNARMED, "small/cheap", Role(program("often", "often", "12"), owns=("send",)))


class Listener:
    """Writes down which cases have ended."""

    def __init__(self, heard: list[str]) -> None:
        self._heard = heard
        self.levels: list[tuple[str, int]] = []

    def level(self, name: str, total: int) -> None:
        """Note the level and how many cases it will have."""
        self.levels.append((name, total))

    def ended(self, result: Mapping[str, Any]) -> None:
        """Note the case's name."""
        self._heard.append(result["case"])


class Ground:
    """One supervisor, databases and houses for many campaigns."""

    def __init__(self) -> None:
        self._box = ProcessBox()
        self._houses = Houses(self._box._supervisor, ROOT, LANES)
        self._box.do(self._houses.__aenter__())
        self.room = Room(self._box._supervisor, SqliteStore(), bounds=SHORT, houses=self._houses)

    def close(self) -> None:
        """End all processes."""

        async def leave() -> None:
            await self._houses.__aexit__(None, None, None)

        self._box.do(leave())
        self._box.close()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine where the supervisor lives."""
        return asyncio.run_coroutine_threadsafe(work, self._box._loop).result(BOUND_SECONDS)

    def play(self, case: Case, directory: Path, **room: Any) -> Played:
        """Play one case; its files stay."""
        return self.do(Play(case, replace(self.room, **{"keep": KEEP_ALL, **room}), directory).run())

    def derive(self, which: Subject, directory: Path, **room: Any) -> Derived:
        """The two runs without faults, and the planted effect."""
        return self.do(derive(which, replace(self.room, **room), directory))

    def campaign(self, plan: Plan, directory: Path, *, resume: bool = False, told: list[str] | None = None) -> Campaign:
        """Run a campaign to its end."""
        (directory / CASES).mkdir(parents=True, exist_ok=True)
        self.listener = Listener([] if told is None else told)
        made = Campaign(plan, self.room, directory, self.listener)
        self.do(made.run(resume=resume))
        return made


def plan(*subjects: Subject, **options: Any) -> Plan:
    """A plan in as many lanes as there are houses."""
    return Plan(subjects, **{"jobs": LANES, **options})


def named(which: Subject, faults: str) -> Case:
    """The case of this subject with these faults, as a campaign prints them."""
    return parse(f"{which.name}/{faults}", [which])


def told_by(directory: Path) -> dict[str, dict[str, Any]]:
    """The results in `directory` by the name of their case."""
    return {result["case"]: result for result in results.read(directory)}

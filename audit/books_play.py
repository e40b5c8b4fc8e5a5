"""The steps of a scenario around a dispatch outbox, carried out on the audit's own tables.

Each program is a generator that goes from one fault point to the next. A process that is armed to halt is dropped at its point
with all that it had not committed; one that is to pause is left there, in the middle of whatever it does, until a step resumes
it; one that waits for the database, or for a receiver that is stopped, goes on as soon as it can. What each export step must
have found, what each program must have printed, and with which code it must have ended, follows from that alone.
"""

from __future__ import annotations

from audit.books_enqueue import enqueue, revive
from audit.books_operators import operate
from audit.books_scan import scan
from audit.books_sends import Lost, Servers
from audit.books_tables import BadInput, Database, Refused
from audit.books_text import Unknown
from audit.case import HALTED, RECEIVER
from audit.expectations import POSTGRES
from audit.findings import show
from audit.shapes import number_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from audit.books_tables import Program
    from audit.case import Case, Ran
    from audit.plan import Launch

DISPATCH, OPERATORS = "scenarios.dispatch", "outbox.dispatch"
COMMANDS: dict[str, Callable[[Process, list[str]], Program[int]]] = {"enqueue": enqueue, "scan": scan, "revive": revive}
REFUSED, MACHINE_REFUSED = 2, 16
READY, PAUSED, ENDED = "ready", "paused", "ended"


class Process:
    """One process of a scenario at work on the books."""

    __slots__ = ("_counts", "_files", "_program", "_said", "_state", "case", "code", "database", "launch", "limited", "servers")

    def __init__(self, launch: Launch, play: Play) -> None:
        self.case, self.database, self.servers = play.case, play.database, play.servers
        self.launch = launch
        self.limited = False
        self.code: int | None = None
        self._files = play.files
        self._said: list[str] = []
        self._counts: dict[str, int] = {}
        self._state = READY
        self._program = _program(self)

    @property
    def span(self) -> tuple[int, int]:
        """The steps between which it ran."""
        return self.launch.step, self.launch.ends

    @property
    def stdout(self) -> str:
        """What it printed: who halts takes with it what was not handed over yet."""
        return "" if self.code in (None, HALTED) else "".join(f"{line}\n" for line in self._said)

    @property
    def paused(self) -> bool:
        """Whether it stands at the point where it was to pause."""
        return self._state == PAUSED

    def say(self, line: str) -> None:
        """Print a line."""
        self._said.append(line)

    def note(self, place: str, sentence: str) -> None:
        """Say what cannot be followed at the step that started it."""
        self.case.first.note(place, sentence, self.launch.step)

    def time_in(self, path: str) -> float:
        """The time that a clock file holds now."""
        now = number_in(self._files.get(path))
        if now is None:
            raise Refused
        return now

    def resume(self) -> None:
        """Go on after a pause."""
        if self._state == PAUSED:
            self._state = READY

    def end(self) -> None:
        """It is killed, and what it had begun is gone."""
        self._program.close()
        self._state = ENDED

    def advance(self) -> bool:
        """Go on until it pauses, waits or ends; whether it came any further."""
        moved = False
        while self._state == READY:
            try:
                point = next(self._program)
            except StopIteration as stop:
                self.code, self._state = stop.value, ENDED
                return True
            if point is None:
                return moved
            moved = True
            self._reach(point)
        return moved

    def _reach(self, point: str) -> None:
        self._counts[point] = occurrence = self._counts.get(point, 0) + 1
        armed = [f"{point}#{occurrence}", *([point] if occurrence == 1 else [])]
        if self.launch.halt_at in armed:
            self.end()
            self.code = HALTED
        elif self.launch.pause_at in armed:
            self._state = PAUSED


def _program(process: Process) -> Program[int]:
    """The program of a process, with what becomes of its errors."""
    launch = process.launch
    command, *rest = launch.arguments or [""]
    try:
        if launch.module == OPERATORS:
            return (yield from operate(process, launch.arguments))
        if launch.module != DISPATCH or command not in COMMANDS:
            raise Unknown(f"the program {show(launch.module)} with {show(command)} is one that the audit does not follow")
        return (yield from COMMANDS[command](process, rest))
    except BadInput:
        return REFUSED
    except Refused:
        return MACHINE_REFUSED


class Play:
    """A scenario, step by step: `documents` by the number of their export step, `processes` with their recorded selves."""

    def __init__(self, case: Case, store: str) -> None:
        self.case = case
        self.database = Database(shared=store == POSTGRES)
        self.servers = Servers(case)
        self.files: dict[str, str] = {}
        self.documents: dict[int, dict[str, Any]] = {}
        self.processes: list[tuple[Process, Ran | None]] = []
        self._running: dict[str, Process] = {}
        self._waiting = list(case.launches)
        self._ran = {ran.number: ran for ran in case.ran}

    def run(self) -> bool:
        """Carry out all steps; False, with a finding, where the records or the audit's knowledge end before that."""
        for number, step in enumerate(self.case.plan["steps"], 1):
            try:
                self._step(number, step)
                self._go_on()
                self._settled(number, step)
            except Unknown as problem:
                self.case.first.note("protocol", f"step {number}: {problem}", number)
                return False
            except Refused:
                self.case.first.note("protocol", f"step {number}: the database server is not there to be asked", number)
                return False
            except Lost:
                return False
        for shelf in self.servers.shelves.values():
            for arrival in shelf.rest():
                self.case.first.at(None)(arrival.place, f"the arrival {show(arrival.id)} was sent by no scan")
        return True

    def _step(self, number: int, step: dict[str, Any]) -> None:
        do = step["do"]
        for launch in self._launched(number):
            self._launch(launch)
        if do == "write":
            self.files[step["path"]] = step["content"]
        elif do == "limit_files" and step["process"] in self._running:
            self._running[step["process"]].limited = True
        elif do == "kill_database":
            self.database.kill()
        elif do == "start_database":
            self.database.up = True
        elif do == "resume":
            self.servers.resume(step["process"])
            if step["process"] in self._running:
                self._running[step["process"]].resume()
        elif do in ("stop", "kill"):
            self.servers.end(step["process"])
            if step["process"] in self._running:
                self._running.pop(step["process"]).end()
        elif do == "await":
            self.servers.end(step["process"])
        elif do == "export":
            self.database.made = True  # an export opens the database as a producer does
            self.documents[number] = self.database.read().document()

    def _launched(self, number: int) -> list[Launch]:
        mine = [launch for launch in self._waiting if launch.step == number]
        self._waiting = self._waiting[len(mine) :]
        return mine

    def _launch(self, launch: Launch) -> None:
        ran = self._ran.get(self.case.launches.index(launch))
        if launch.do == "start":
            self.servers.start(launch)
        elif launch.module != RECEIVER:
            process = Process(launch, self)
            self.processes.append((process, ran))
            self._running[launch.process] = process

    def _go_on(self) -> None:
        """Let everybody go as far as they can, in the order in which they were started."""
        while any([process.advance() for process, _ran in self.processes]):
            continue

    def _settled(self, number: int, step: dict[str, Any]) -> None:
        """Who has to be somewhere at the end of a step is there."""
        do = step["do"]
        plans = step["runs"] if do == "together" else [step] if do in ("run", "await", "await_paused") else []
        for plan in plans:
            name = plan["process"]
            process = self._running.get(name)
            if do == "await_paused":
                there = process.paused if process is not None else self.servers.stands(name) is not False
            else:
                there = process is None or process.code is not None
            if not there:
                where = "stands at its pause" if do == "await_paused" else "has ended"
                words = f"step {number} asks that {show(name)} {where}, but the books do not bring it there"
                self.case.first.note("protocol", words, number)
                raise Lost
            if process is not None and process.code is not None:
                self._running.pop(name)

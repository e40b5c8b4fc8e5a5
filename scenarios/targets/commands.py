"""The commands of a target as processes: filled, with an environment, watched where they are to be, bounded.

A command has nothing of our environment but where programs are found and where its user is at home; the rest is the target
file's. How it is started (exec, or a fork that has its modules) changes nothing that it could see.
"""

import asyncio
import json
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scenarios.engine import foreign
from scenarios.engine.supervisor import Child, Command, Ending, Supervisor
from scenarios.targets import model
from scenarios.targets.faults import script_name
from scenarios.targets.model import Target

WATCH = Path(__file__).parent / "watch"
WATCH_VARIABLE = "HALT23_WATCH"
CANNOT_START_EXIT_CODE = 70
KEPT_VARIABLES = ("PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "SYSTEMROOT")
KILL_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended, and what it wrote. `bound` is set where it had to be ended: after so many seconds."""

    ending: Ending
    stdout: str
    stderr: str
    seconds: float
    bound: float | None = None

    @property
    def good(self) -> bool:
        """Whether it ended by itself and with 0."""
        return self.ending.exit_code == 0 and self.bound is None

    @property
    def told(self) -> str:
        """`exit code 1; it said: …`."""
        how = f"it went on for {self.bound:g} s and was killed" if self.bound is not None else str(self.ending)
        words = self.stderr.strip().splitlines() or self.stdout.strip().splitlines()
        return f"{how}; it said: {words[-1][:300]}" if words else f"{how}; it said nothing"


@dataclass(frozen=True, slots=True)
class Watched:
    """What the watch inside a Python program is asked: see `watch/halt23_watch.py`."""

    packages: Sequence[str]
    scripts: Mapping[str, str]
    halt: tuple[str, int, int] | None = None
    witness: Path | None = None
    lines: Path | None = None
    modules: Path | None = None
    most: int = 1000

    @property
    def setting(self) -> str:
        """As the variable has it."""
        told: dict[str, Any] = {"packages": list(self.packages), "scripts": dict(self.scripts), "most": self.most}
        told["halt"] = list(self.halt) if self.halt else None
        for name in ("witness", "lines", "modules"):
            path = getattr(self, name)
            told[name] = None if path is None else str(path)
        return json.dumps(told)


@dataclass(frozen=True, slots=True)
class Arm:
    """What is done to a command from outside: its lines are watched, its system calls traced, variables are added."""

    watched: Watched | None = None
    trace: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


PLAIN = Arm()


class Commands:
    """The commands of one target. `house` starts what is executed, `forker`, once there is one, what is forked."""

    def __init__(self, target: Target, python: str, house: Supervisor) -> None:
        self.target, self.python, self.house = target, python, house
        self.forker: Supervisor | None = None
        self.scripts = self._scripts()

    def values(self, directory: Path, **more: str) -> dict[str, str]:
        """What stands for the placeholders in a case that is played in `directory`."""
        return {"python": self.python, "target": str(self.target.folder), "dir": str(directory), **more}

    def argv(self, command: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
        """A command, filled."""
        return model.fill_all(command, values)

    def environment(self, values: Mapping[str, str], arm: Arm = PLAIN) -> dict[str, str]:
        """All of a command's environment."""
        kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        theirs = {name: model.fill(value, values) for name, value in self.target.contents.environment.items()}
        made = {**kept, "LANG": "C.UTF-8", "TZ": "UTC", **theirs, **arm.environment}
        if arm.watched is not None:
            made["PYTHONPATH"] = os.pathsep.join(filter(None, (str(WATCH), made.get("PYTHONPATH"))))
            made[WATCH_VARIABLE] = arm.watched.setting
        return made

    def is_forked(self, argv: Sequence[str]) -> bool:
        """Whether this command runs in a fork."""
        return self.forker is not None and foreign.can_fork(argv, self.python)

    async def start(self, command: Sequence[str], values: Mapping[str, str], arm: Arm = PLAIN) -> "Running":
        """Start a command. Raises HarnessBug."""
        argv = self.argv(command, values)
        forked = self.is_forked(argv)
        supervisor = self.forker if forked and self.forker is not None else self.house
        launch = Command(argv, Path(values["dir"]), self.environment(values, arm), forked, arm.trace)
        return Running(supervisor, await supervisor.start(launch))

    def _scripts(self) -> dict[str, str]:
        """The files below the target's folder that its commands name: by path, what they are called."""
        worker = self.target.contents.worker
        if worker is None:
            return {}
        found = {}
        folder = self.target.folder
        for command in (worker.setup, worker.enqueue, worker.work, worker.recover):
            for argument in command or ():
                path = Path(os.path.normpath(argument.replace("{target}", str(folder))))
                if argument.startswith("{target}/") and path.is_relative_to(folder) and path.is_file():
                    # However the interpreter comes to call it.
                    found[str(path)] = found[str(path.resolve())] = script_name(path.relative_to(folder).as_posix())
        return found


class Running:
    """A command that was started."""

    def __init__(self, supervisor: Supervisor, child: Child) -> None:
        self._supervisor, self.child = supervisor, child

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.child.running

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; harmless if it has ended."""
        self._supervisor.signal(self.child, number)

    async def ended(self, seconds: float) -> Ran:
        """Its end, for which it has so many seconds; then it is killed."""
        bound = None
        try:
            ending = await self.child.wait_ended(seconds)
        except TimeoutError:
            bound = seconds
            ending = await self.kill()
        try:
            await self.child.wait(KILL_SECONDS if not ending.left else 0.2)
        except TimeoutError:
            self.child.drop_output()  # somebody else holds it
        seconds = ending.monotonic - self.child.started
        return Ran(ending, self.child.stdout.text(), self.child.stderr.text(), seconds, bound)

    async def kill(self) -> Ending:
        """Kill it with all that it started in its group."""
        self.signal(signal.SIGKILL)
        return await self.child.wait_ended(KILL_SECONDS)

    async def terminate(self, seconds: float) -> Ran:
        """SIGTERM, and past the bound SIGKILL."""
        self.signal(signal.SIGTERM)
        return await self.ended(seconds)


async def first_of(*events: "asyncio.Future[Any]", seconds: float) -> bool:
    """Wait until one of them is done; whether one was. They are not cancelled."""
    done, _ = await asyncio.wait(events, timeout=max(seconds, 0), return_when=asyncio.FIRST_COMPLETED)
    return bool(done)

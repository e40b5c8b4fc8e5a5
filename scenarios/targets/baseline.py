"""The run without faults: whether the target does what it says at all, and what a case can strike.

It is run three times. First with every command executed: here a target that cannot be judged is refused, in words that say what
to mend; here is told which modules it imports. Then twice as the cases will run it, with the lines listed: what both runs came
to can be struck. Where those runs end otherwise than the first, a fork is not the same program to this target, and its commands
are executed from then on.
"""

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from outbox.errors import BadInput
from scenarios.engine import foreign
from scenarios.engine.supervisor import Command
from scenarios.targets import judge, stored
from scenarios.targets.commands import CANNOT_START_EXIT_CODE, PLAIN, Arm, Commands, Ran, Running, Watched
from scenarios.targets.faults import ENQUEUE, HALT_EXIT_CODE, RECOVER, SETUP, WORK, script_name
from scenarios.targets.model import IDLE, Worker
from scenarios.targets.slot import Slot, size_of
from scenarios.targets.steps import CANARY, COMMAND_SECONDS, JOB, Steps

WORK_SECONDS = 60.0
LARGEST_STATE_BYTES = 1 << 26
PRELOAD_SECONDS = 60.0
# Below a folder of one's own: packages that were installed there, and a standard library.
_BROUGHT = re.compile(r"(?:^|/)(?:site-packages|dist-packages|python3\.\d+)/")
_FULL = re.compile(r"No space left on device|File too large|disk is full|database or disk is full", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Lines:
    """What a command came to, in the order in which it was first met: of each line its file and function, and how often. How
    often is chance for lines that are not `steady`: they depend on how long somebody waited."""

    places: Mapping[str, tuple[str, str]]
    counts: Mapping[str, int]
    steady: frozenset[str] = frozenset()


@dataclass(slots=True)
class Baseline:
    """What the fault-free runs have told. `by_bytes`: whether a job that is waiting has its name in the files; `gone`: whether
    one that was done has it there no more."""

    work_seconds: float
    by_bytes: bool
    gone: bool = False
    lines: dict[str, Lines] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    # What has lines that nobody sees.
    unseen: list[str] = field(default_factory=list)
    traces: bool = False


class Baselines:
    """Plays fault-free runs in one slot."""

    def __init__(self, commands: Commands, worker: Worker, slot: Slot) -> None:
        self._commands, self._worker, self._slot = commands, worker, slot
        self._modules: dict[str, str] = {}
        self._unseen: list[str] = []
        self._traces = False

    async def first(self) -> Baseline:
        """See that the target can be judged. Raises BadInput where it cannot."""
        listing = self._slot.folder / "modules"
        steps = Steps(self._commands, self._worker, self._slot)
        await self._slot.begin()
        await self._slot.empty()
        arm = Arm(Watched((), {}, modules=listing))
        by_bytes = await self._enqueued(steps, arm)
        worked = await steps.work((JOB,), WORK_SECONDS, arm)
        await self._must_have_worked(steps, worked, JOB)
        if listing.exists():
            self._take_listing(listing)
        await self._must(steps, ENQUEUE, CANARY, PLAIN)
        await self._must_have_worked(steps, await steps.work((JOB, CANARY), WORK_SECONDS), CANARY)
        gone = by_bytes and not stored.holds(self._slot.directory, JOB)
        return Baseline(
            worked.seconds, by_bytes, gone, notes=sorted(set(steps.notes)), unseen=self._unseen, traces=self._traces
        )

    def _take_listing(self, listing: Path) -> None:
        """What was imported, and whether lines went out of sight."""
        started, traces = [], False
        for line in listing.read_text("utf-8").splitlines():
            name, _, origin = line.partition("\t")
            if name == "!starts":
                started.append(origin)
            elif name == "!traces":
                traces = True
            else:
                self._modules.setdefault(name, origin)
        if started:
            others = ", ".join(sorted(set(started)))
            self._unseen.append(f"it starts other programs ({others}), and none of their lines is struck: try --mode syscalls")
        self._traces = traces
        if traces:
            self._unseen.append("it sets a trace function of its own, and no line is struck after that: try --mode syscalls")

    def own_modules(self) -> dict[str, str]:
        """Modules that were imported from the target's folder, as a user's own scripts are: by path, what they are called.
        What an environment in that folder brings is not the user's own."""
        folder = self._commands.target.folder.resolve()
        found = {}
        for module, origin in self._modules.items():
            if any(f"{module}.".startswith(f"{each}.") for each in self._worker.packages):
                continue
            path = Path(os.path.realpath(origin))
            if path.suffix == ".py" and path.is_relative_to(folder):
                name = path.relative_to(folder).as_posix()
                if not _BROUGHT.search(name):
                    found[origin] = found[str(path)] = script_name(name)
        return found

    async def _enqueued(self, steps: Steps, arm: Arm) -> bool:
        """Run what comes before `work`, and remember what each begins with; whether the job's name is then in the files."""
        slot = self._slot
        if self._worker.setup is not None:
            slot.remember(SETUP)
            await self._must(steps, SETUP, None, arm)
        slot.remember(ENQUEUE)
        await self._must(steps, ENQUEUE, JOB, arm)
        if size_of(slot.directory) > LARGEST_STATE_BYTES:
            raise BadInput(
                f"the folder of {self._commands.target.name} holds more than {LARGEST_STATE_BYTES >> 20} MiB after enqueue: it "
                "fills the disk, and could not be copied for each case; let it write less"
            )
        slot.remember(WORK)
        count = await stored.pending(self._commands, steps.values)
        if self._worker.pending is not None and not count:
            said = "gave no number" if count is None else "was 0"
            raise BadInput(f"pending counts wrongly: after enqueue it {said}, and a job is waiting")
        return stored.holds(slot.directory, JOB)

    async def _must(self, steps: Steps, role: str, job: str | None, arm: Arm) -> None:
        """A command that has to succeed. Raises BadInput."""
        ran = await steps.run(role, job, arm)
        if ran is None:
            return
        _usable(role, ran)
        if ran.bound is not None:
            raise BadInput(f"{role} did not end within {COMMAND_SECONDS:g} s without any fault; it must do its work and exit 0")
        if not ran.good:
            raise BadInput(f"{role} fails without any fault: {ran.told}")

    async def _must_have_worked(self, steps: Steps, ran: Ran, job: str) -> None:
        _usable(WORK, ran)
        arrived = [each for each in self._slot.arrivals if each.job == job]
        other = judge.taken(self._slot.arrivals, job)
        if other is not None:
            told = judge.TAKEN.format(job=job, other=other)
            raise BadInput(f"without any fault {told}. Give each job a key that none had before: mend that first")
        if self._worker.ends == IDLE and ran.bound is not None:
            raise BadInput(
                f"work did not end within {ran.bound:g} s, though ends is 'idle' ({job} arrived {len(arrived)} times): let it "
                'exit 0 when nothing is left to do, or write ends = "signal" if it runs until SIGTERM'
            )
        if self._worker.ends != IDLE and ran.bound is None and ran.ending.exit_code != 0 and not arrived:
            raise BadInput(f"work ended before it delivered anything, without any fault: {ran.told}")
        if not arrived:
            others = [f"{each.method} {each.path}" for each in self._slot.arrivals if each.job is None][:3]
            more = f"; what came names no job: {', '.join(others)}" if others else "; nothing arrived at {url}"
            raise BadInput(
                f"without any fault {job} is not delivered: work ended ({ran.told}){more}. The request must carry the job's "
                "name in its body, its Idempotency-Key or its path"
            )
        if self._worker.ends == IDLE and not ran.good:
            raise BadInput(f"work fails without any fault: {ran.told}")
        if len(arrived) > 1:
            raise BadInput(f"without any fault {job} arrives {len(arrived)} times: mend that first, no crash is needed for it")
        if self._worker.pending is not None and await stored.pending(self._commands, steps.values) != 0:
            raise BadInput("pending counts wrongly: it is not 0 after everything was delivered and work has ended")

    async def loadable(self) -> tuple[str, ...] | str:
        """The modules that a spawner can load for forks of this target; or why there can be none."""
        listing = self._slot.folder / "asked"
        folder = str(self._commands.target.folder.resolve())
        own = (folder, str(self._slot.directory))
        asked = [(name, origin) for name, origin in self._modules.items() if not origin.startswith(own) and name != "__main__"]
        listing.write_text("".join(f"{name}\t{origin}\n" for name, origin in asked), encoding="utf-8")
        program = str(Path(__file__).with_name("preloading.py"))
        values = Steps(self._commands, self._worker, self._slot).values
        command = Command(
            (sys.executable, "-P", program, str(listing)), self._slot.directory, self._commands.environment(values)
        )
        ran = await Running(self._commands.house, await self._commands.house.start(command)).ended(PRELOAD_SECONDS)
        if not ran.good:
            return f"its modules cannot be loaded beforehand ({ran.told})"
        told = json.loads(ran.stdout)
        if told["threads"] > 1:
            return "its modules start threads when they are imported"
        return tuple(told["modules"])

    async def listed(self, scripts: Mapping[str, str]) -> dict[str, Lines] | str:
        """One run with its lines listed; or what makes it another run than the first."""
        steps = Steps(self._commands, self._worker, self._slot)
        await self._slot.begin()
        await self._slot.empty()
        found: dict[str, Lines] = {}
        for role in (SETUP, ENQUEUE, WORK):
            listing = self._slot.folder / f"lines.{role}"
            listing.unlink(missing_ok=True)
            arm = Arm(Watched(self._worker.packages, scripts, lines=listing))
            self._slot.remember(role)
            ran: Ran | None
            if role == WORK:
                ran = await steps.work((JOB,), WORK_SECONDS, arm)
            else:
                ran = await steps.run(role, JOB if role == ENQUEUE else None, arm)
            if ran is None:
                continue
            if not ran.good and (role != WORK or self._worker.ends == IDLE):
                return f"{role}: {ran.told}"
            found[role] = read_lines(listing)
        if [each.job for each in self._slot.arrivals] != [JOB]:
            return f"{len(self._slot.arrivals)} requests arrived"
        if self._worker.recover is not None:
            found[RECOVER] = await self._recovery(steps, scripts)
        return found

    async def _recovery(self, steps: Steps, scripts: Mapping[str, str]) -> Lines:
        """The lines of `recover` after a work that died before it did anything."""
        listing = self._slot.folder / f"lines.{RECOVER}"
        listing.unlink(missing_ok=True)
        await steps.before(WORK)
        ran = await steps.run(RECOVER, None, Arm(Watched(self._worker.packages, scripts, lines=listing)))
        if ran is not None and not ran.good:
            raise BadInput(f"recover fails without any fault: {ran.told}")
        return read_lines(listing)


def _usable(role: str, ran: Ran) -> None:
    """Raise BadInput where a command cannot be judged at all."""
    if ran.ending.exit_code == HALT_EXIT_CODE:
        raise BadInput(
            f"{role} exits {HALT_EXIT_CODE} by itself, without any fault: that is how an injected halt ends; let it use "
            "another code"
        )
    if ran.ending.exit_code == CANNOT_START_EXIT_CODE and "cannot be started" in ran.stderr:
        raise BadInput(f"{role} cannot be started: {ran.stderr.strip()}")
    if ran.ending.left:
        raise BadInput(
            f"{role} ended and left {ran.ending.left} processes running: it forks away. Run it in the foreground, so that its "
            "end is the end of its work"
        )
    if ran.ending.signal == "SIGXFSZ" or (not ran.good and _FULL.search(ran.stderr)):
        raise BadInput(f"{role} fills the disk: {ran.told}")


def read_lines(path: Path) -> Lines:
    """The lines of a listing."""
    places: dict[str, tuple[str, str]] = {}
    counts: Counter[str] = Counter()
    if path.exists():
        for line in path.read_text("utf-8").splitlines():
            where, file, function = line.split("\t", 2)
            places.setdefault(where, (file, function))
            counts[where] += 1
    return Lines(places, counts)


def common(first: Lines, second: Lines, *, waits: bool) -> Lines:
    """What both runs came to. Of a program that `waits` for work no count is steady."""
    counts = {where: min(count, second.counts[where]) for where, count in first.counts.items() if where in second.counts}
    steady = frozenset(where for where in counts if not waits and first.counts[where] == second.counts[where])
    return Lines({where: first.places[where] for where in counts}, counts, steady)


def merged(first: Mapping[str, Lines], second: Mapping[str, Lines], *, waits: bool) -> dict[str, Lines]:
    """The same for each role; `work` may wait."""
    return {role: common(lines, second[role], waits=waits and role == WORK) for role, lines in first.items() if role in second}


def forkable(commands: Commands, worker: Worker) -> bool:
    """Whether any command of a worker could run in a fork."""
    values = commands.values(Path("/"), url="", job="")
    all_: Sequence[Sequence[str] | None] = (worker.setup, worker.enqueue, worker.work, worker.recover)
    return any(command is not None and foreign.can_fork(commands.argv(command, values), commands.python) for command in all_)

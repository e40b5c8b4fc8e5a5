"""System calls of a case: recorded, struck, and held against what may follow from a call that failed.

Beside the invariants of every case these hold where an error was injected. A record that could not be written or synced is
worth nothing: on the strength of it nothing else may be recorded, and it is not synced again as if the first time had worked;
the journal is cut back, or the process ends. Who could not write ends with a code other than 0. And whatever happens a program
ends with a code that it declares, and without a traceback.
"""

import asyncio
import contextlib
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

from scenarios.engine.processes import Process
from scenarios.engine.stage import Stage, StepFailed
from scenarios.explore import calls, strace
from scenarios.explore.calls import SYNCS, WRITES, Call, Listings, Strike, strikes
from scenarios.explore.model import Case, Role
from scenarios.explore.sysfaults import SysFault
from scenarios.explore.verdicts import LOST, UNDECLARED, Violation

FOLDER, LOG = "calls", ".strace"
VARIABLE = "SYSCALL_AT"
JOURNAL = ".jsonl"
# An interrupted call is made again by right, and what is written short is written on.
NO_REFUSAL = (strace.KILLED, "EINTR", strace.SHORT)
DECLARED_CODES = frozenset({0, 2, *range(10, 17)})
# Python ends with 1 by itself; these programs declare it, too.
NOTHING_TO_DO = 1
MAY_FIND_NOTHING = frozenset({"outbox.dispatch", "scenarios.explore.consumer", "scenarios.oracle.operators"})
TRACEBACK = "Traceback (most recent call last)"
ITSELF, KILL = "itself", "SIGKILL"
_NO_LIMIT = -1  # RLIM_INFINITY


class Tracing:
    """The straces of one case: with `record` on every process, else on those that are struck, as `listings` say where.

    Without either it does nothing.
    """

    def __init__(self, case: Case, stage: Stage, *, record: bool, listings: Listings | None) -> None:
        self._case, self._stage = case, stage
        self._record, self._listings = record, listings
        self._following: dict[tuple[int, str], asyncio.Task[str | None]] = {}
        self.doubts: list[str] = []
        self.violations: list[Violation] = []

    def make_room(self) -> None:
        """Make the folder for what strace writes; the stage's folder is there."""
        if self._record or any(isinstance(fault, SysFault) for fault in self._case.faults):
            (self._stage.directory / FOLDER).mkdir()

    def command(self, role: Role, number: int) -> tuple[str, ...]:
        """The strace for the role in round `number`; empty where none is needed. Raises StepFailed where what is to be struck
        does not come without faults."""
        log = self._path(number, role.process)
        if self._record:
            return strace.recording(log)
        fault = self._case.armed(number, role.process)
        if not isinstance(fault, SysFault):
            return ()
        return strace.striking(self._strike(fault, number), fault.error, self._stage.directory, log)

    def follow(self, process: Process, number: int) -> None:
        """Cut its write short, where that is its fault; the process has just been started."""
        fault = self._case.armed(number, process.name)
        if isinstance(fault, SysFault) and fault.error == strace.SHORT:
            strike = self._strike(fault, number)
            self._following[number, process.name] = asyncio.create_task(self._cut_short(process, strike))

    def _strike(self, fault: SysFault, number: int) -> Strike:
        listed = self._listings[number - 1] if self._listings is not None and number <= len(self._listings) else {}
        for strike in strikes(listed.get(fault.process, ())):
            can_be = fault.error != strace.SHORT or (strike.before is not None and strike.call.size > 1)
            if can_be and (strike.call.name, strike.number) == (fault.call, fault.occurrence):
                return strike
        raise StepFailed(
            f"{fault.process} comes to no {fault.setting} in round {number} without faults; derive again, or name one that a "
            "campaign prints"
        )

    async def _cut_short(self, process: Process, strike: Strike) -> str | None:
        """Let one write of the process have half of its bytes; what was in the way, or None."""
        seconds = self._stage.bounds.run_seconds
        call, path = strike.call, self._stage.directory / strike.call.target
        if not await process.child.wait_stopped(seconds):
            return "it ended before its write could be cut short"
        at = call.offset if call.offset is not None else path.stat().st_size
        _limit(process, at + call.size // 2)
        self._go_on(process)
        stopped = await process.child.wait_stopped(seconds)
        if stopped:
            _limit(process, _NO_LIMIT)
            self._go_on(process)
        return None

    def _go_on(self, process: Process) -> None:
        self._stage.signal(process, signal.SIGCONT)

    async def close(self) -> None:
        """Nobody is followed any more. Every process of the case has ended."""
        for (number, name), task in self._following.items():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, TimeoutError, OSError):
                if (problem := await task) is not None:
                    self.doubts.append(f"round {number}: {name}: {problem}; derive again")

    def finish(self, processes: Sequence[Process]) -> None:
        """Make listings of what strace wrote, see that every strike came, and hold what followed from it."""
        # Where all calls are recorded the first need not be the first thread's; where one is struck the log is of a few paths.
        pids = {f"{each.step}.{each.name}": each.child.pid for each in processes} if self._record else {}
        for path in sorted((self._stage.directory / FOLDER).glob(f"*{LOG}")):
            found = calls.parse(path.read_text("utf-8", "replace"), self._stage.directory, pids.get(path.stem))
            path.with_suffix("").write_text(calls.listing(found), encoding="utf-8")
            path.unlink()
        struck = [(n, each) for n, faults in enumerate(self._case.rounds, 1) for each in faults if isinstance(each, SysFault)]
        for number, fault in struck:
            process = next((each for each in processes if (each.name, each.step) == (fault.process, number)), None)
            if process is not None:
                self._hold(fault, number, process)
        if struck:
            self.violations += [Violation(UNDECLARED, sentence) for sentence in undeclared(processes)]

    def _hold(self, fault: SysFault, number: int, process: Process) -> None:
        path = self._path(number, fault.process).with_suffix("")
        found = calls.read_listing(path.read_text("utf-8")) if path.exists() else ()
        at = struck_at(fault, found)
        if at is None:
            self.doubts.append(
                f"round {number}: {fault.process} was to be struck at {fault.setting} and was not; "
                "this run is not the one that the case was derived from: derive again"
            )
            return
        server = self._case.subject.role(fault.process).server
        code = process.child.ended.result().exit_code
        self.violations += [Violation(LOST, sentence) for sentence in relied_on(fault, found, at)]
        on_file = found[at].name in calls.ON_FILES and not self._case.subject.uses_database
        if on_file and not server and code == 0 and refused(fault):
            self.violations.append(Violation(LOST, f"{fault.process} ended with 0, though {found[at].told} had failed"))

    def _path(self, number: int, process: str) -> Path:
        return self._stage.directory / FOLDER / f"{number}.{process}{LOG}"


def recorded(directory: Path, processes: Sequence[str], rounds: int) -> Listings:
    """The listings of a recorded run: for each round the calls of each process that was started in it."""
    paths = [{name: directory / FOLDER / f"{number}.{name}" for name in processes} for number in range(1, rounds + 1)]
    return [
        {name: calls.read_listing(path.read_text("utf-8")) for name, path in each.items() if path.exists()} for each in paths
    ]


def refused(fault: SysFault) -> bool:
    """Whether the injected error says that the machine will not do what it was asked."""
    return fault.error not in NO_REFUSAL


def struck_at(fault: SysFault, found: Sequence[Call]) -> int | None:
    """Which of the calls was struck, from 0; None where none was."""
    of_name = [at for at, call in enumerate(found) if call.name == fault.call]
    if len(of_name) < fault.occurrence:
        return None
    at = of_name[fault.occurrence - 1]
    call = found[at]
    if fault.error == strace.SHORT:
        return at if call.result == str(call.size // 2) else None
    wanted = f"{fault.error}{calls.INJECTED}" if fault.error else calls.NO_RESULT
    return at if call.result == wanted else None


def relied_on(fault: SysFault, found: Sequence[Call], at: int) -> Iterator[str]:
    """Records that were written on the strength of one that was not, or not synced."""
    failed = found[at]
    if fault.error == strace.SHORT and failed.target.endswith(JOURNAL):
        behind = (call for call in found[at + 1 :] if call.target == failed.target)
        later = next((call for call in behind if call.name in (*WRITES, *SYNCS, "ftruncate")), None)
        if later is not None and later.name in SYNCS:
            yield f"{fault.process}: {later.told}, though only a part of a record had been written"
        return
    directory = failed.name in SYNCS and not failed.target.endswith(JOURNAL)
    if not refused(fault) or failed.name not in (*WRITES, *SYNCS) or not (directory or failed.target.endswith(JOURNAL)):
        return
    whole = False  # whether the file is again as it was before
    for call in found[at + 1 :]:
        good = call.result in calls.GOOD or call.result.isdigit()
        own = call.target == failed.target
        if not good or not call.target.endswith(JOURNAL):
            continue
        if own and call.name in calls.OPENS:
            return  # it is read and checked from its beginning
        if own and call.name == "ftruncate":
            whole = True
        elif own and failed.name in SYNCS and call.name in (*WRITES, *SYNCS):
            yield f"{fault.process}: {call.told} after its sync had failed"
            return
        elif call.name in WRITES and not whole and (not directory or Path(failed.target) in Path(call.target).parents):
            yield f"{fault.process}: {call.told}, on the strength of {failed.told}, which had failed"
            return


def doubtful_ends(processes: Sequence[Process], *, struck: bool) -> Iterator[str]:
    """Processes that a signal ended which nobody of the case had sent. With `struck` only by SIGKILL, which is what a machine
    sends that has no memory left: what else a program does when a call of it fails is its own doing, and undeclared."""
    for process in processes:
        sent = process.child.ended.result().signal
        if ended_itself_by_signal(process) and (sent == KILL or not struck):
            yield f"{process} was ended by {sent}, which nobody had sent; see what the machine, or the program, says of it"


def ended_itself_by_signal(process: Process) -> bool:
    """Whether a signal ended it, and neither a fault of the case nor the harness did."""
    return process.child.ended.result().signal is not None and process.ended_by == ITSELF


def undeclared(processes: Sequence[Process]) -> Iterator[str]:
    """Programs that ended as no program of the study says that it may."""
    for process in processes:
        ending = process.child.ended.result()
        code = ending.exit_code
        declared = code in DECLARED_CODES or (code == NOTHING_TO_DO and process.program.module in MAY_FIND_NOTHING)
        if TRACEBACK in process.child.stderr.text():
            yield f"{process}: it said a traceback: {process.child.stderr.text().strip().splitlines()[-1]}"
        elif ended_itself_by_signal(process) and ending.signal != KILL:
            yield f"{process}: it ended with {ending.signal}, which nobody had sent"
        elif code is not None and not declared:
            yield f"{process}: it ended with {code}, which it does not declare"


def _limit(process: Process, size: int) -> None:
    """Let no file of the process grow beyond `size` bytes."""
    import resource  # noqa: PLC0415 - not everywhere; here there is strace

    hard = resource.prlimit(process.child.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(process.child.pid, resource.RLIMIT_FSIZE, (size, hard))

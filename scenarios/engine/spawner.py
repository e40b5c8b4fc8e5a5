"""The spawner: a small single-threaded process that is the parent of every process under study.

The harness asks it over a socket to start programs and to send signals; it reports each start, each stop by SIGSTOP, and each
end with the kernel's own exit code. In mode `exec` a child becomes a new interpreter, in mode `fork` it calls the program's
`main` in a copy of this process, which has the modules loaded: the same program, many times faster to start. A command of
somebody else becomes whatever it says, or, where it is Python and asked for, runs in a fork too (`scenarios.engine.foreign`).

No child outlives the harness. When the socket ends, however the harness died, every child and whatever it left behind is
killed; a child dies with the spawner (Linux), has a session of its own, and takes its process group with it when it ends.

A child may be traced: it waits until strace says that it is attached, and goes on then. Its end is told when strace has ended,
too, so that what strace wrote is whole.

    python -m scenarios.engine.spawner CONTROL_DESCRIPTOR fork|rehearsed-fork|exec MODULE …

With `rehearsed-fork` the programs are run once before the first is forked; see `scenarios.engine.rehearsal`.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import psutil

from scenarios.engine import foreign, leftovers, lines, rehearsal
from scenarios.engine.entry import entry_module, run_entry

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
# Where the kernel lets only parents trace (Yama), a child says that others may: strace is its sibling.
PR_SET_PTRACER, PR_SET_PTRACER_ANY = 0x59616D61, 2**64 - 1
CANNOT_START_EXIT_CODE = 70
EXEC, REHEARSED = "exec", "rehearsed-fork"
END_SECONDS = 10.0
LOOK_AGAIN_SECONDS = 0.1
LARGEST_FILE_BYTES = 1 << 28
# strace ends with whom it traces. One that does not is ended, or the end of its child would never be told.
TRACER_SECONDS = 5.0
_MAX_MESSAGE_BYTES = 1 << 20
_DESCRIPTORS_END = 4096


class Spawner:
    """Serves one harness over `control` until that socket ends."""

    def __init__(self, control: socket.socket, mode: str) -> None:
        self._control = control
        self._mode = mode
        self._buffer = b""
        self._descriptors: list[int] = []
        self._children: dict[int, int] = {}  # pid to the harness's number
        self._traced: dict[int, int] = {}  # pid of a child to that of its strace, as long as that lives
        self._heard: dict[int, int] = {}  # pid of strace to where it says what it does
        self._untold: dict[int, dict[str, Any]] = {}  # pid of strace to the end of its child, which waits for strace's own
        self._marks: dict[int, leftovers.Mark] = {}  # of children that are somebody else's commands
        self._ours = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
        self._late: dict[int, float] = {}  # pid of strace, whose child has ended, to when it is ended itself
        self._own_pid = os.getpid()
        self._libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
        if self._libc:
            # Orphans of the programs come to us instead of to init, so that they can be found and ended.
            self._libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def serve(self) -> None:
        """Work until the harness is gone, then end everything."""
        woken_read, woken_write = os.pipe()
        os.set_blocking(woken_read, False)
        os.set_blocking(woken_write, False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(woken_write, warn_on_full_buffer=False)
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(woken_read, selectors.EVENT_READ)
            try:
                while True:
                    for tracer, late in self._late.items():
                        if time.monotonic() > late:
                            os.kill(tracer, signal.SIGKILL)
                    for key, _events in selector.select(TRACER_SECONDS if self._late else None):
                        if key.fileobj is self._control:
                            if not self._receive():
                                return
                        else:
                            os.read(woken_read, 4096)
                            self._reap()
            except (BrokenPipeError, ConnectionResetError):
                return
            finally:
                self._end_everything()

    def _receive(self) -> bool:
        data, descriptors, _flags, _address = socket.recv_fds(self._control, _MAX_MESSAGE_BYTES, 16)
        self._descriptors += descriptors
        if not data:
            return False
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if message["do"] == "spawn":
                self._spawn(message)
            else:
                self._signal(message["number"], message["signal"])
        return True

    def _send(self, **message: object) -> None:
        self._control.sendall(json.dumps(message).encode() + b"\n")

    def _spawn(self, message: Mapping[str, Any]) -> None:
        stdout, stderr, *self._descriptors = self._descriptors
        command = message.get("command")
        mark = leftovers.mark(message["directory"], (stdout, stderr)) if command else None
        if command and message["forked"]:
            foreign.prepare(command, message["directory"])
        started = time.monotonic()
        words = os.pipe() if message["trace"] else None
        pid = os.fork()
        if pid == 0:
            self._become(message, stdout, stderr, words)
        os.close(stdout)
        os.close(stderr)
        self._children[pid] = message["number"]
        if mark is not None:
            self._marks[pid] = mark
        if words is not None:
            self._attach(pid, message["trace"], *words)
        self._send(event="started", number=message["number"], pid=pid, monotonic=started)

    def _attach(self, pid: int, trace: Sequence[str], hear: int, say: int) -> None:
        """Start strace on a child that waits for it. Where that fails the child finds nobody to wait for, and says so."""
        try:
            tracer = os.posix_spawnp(
                trace[0],
                [*trace, "-p", str(pid)],
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, say, 2), (os.POSIX_SPAWN_DUP2, say, 1)],
                setpgroup=0,
            )
        except OSError:
            os.close(hear)
        else:
            self._traced[pid], self._heard[tracer] = tracer, hear
        finally:
            os.close(say)

    def _signal(self, number: int, signal_number: int) -> None:
        # Only the parent can do this without a race: until it has reaped the child, the pid is nobody else's.
        for pid, known in self._children.items():
            if known == number:
                os.kill(pid, signal_number)

    def _reap(self) -> None:
        while True:
            try:
                changed = os.waitid(os.P_ALL, 0, os.WEXITED | os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if changed is None:
                return
            pid = changed.si_pid
            if changed.si_code == os.CLD_STOPPED:
                os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG)
                if pid in self._children:
                    self._send(event="stopped", number=self._children[pid])
                continue
            number = self._children.pop(pid, None)
            left = self._left_by(pid)
            if number is not None:
                _kill_group(pid)
            _pid, status, usage = os.wait4(pid, 0)
            if number is not None:
                ended = {
                    "event": "ended",
                    "number": number,
                    "exit_code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
                    "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
                    "monotonic": time.monotonic(),
                    "user_cpu_seconds": usage.ru_utime,
                    "system_cpu_seconds": usage.ru_stime,
                    "max_rss_bytes": usage.ru_maxrss * 1024,
                    "left": left,
                }
                tracer = self._traced.pop(pid, None)
                if tracer in self._heard:
                    self._untold[tracer] = ended
                    self._late[tracer] = time.monotonic() + TRACER_SECONDS
                else:
                    self._send(**ended)
            elif pid in self._heard:
                os.close(self._heard.pop(pid))
                if pid in self._untold:
                    del self._late[pid]
                    self._send(**self._untold.pop(pid))

    def _left_by(self, pid: int) -> int:
        """End what somebody else's command has left behind; how many processes that were. The zombie is not reaped yet, so its
        number is still its own."""
        mark = self._marks.pop(pid, None)
        if mark is None:
            return 0
        orphans = leftovers.orphans({pid, *self._children, *self._heard})
        # Where no other command of somebody else is running, whoever has shed every mark was left by this one, too.
        found = orphans if not self._marks else [each for each in orphans if leftovers.belongs(each, pid, mark)]
        for each in found:
            leftovers.end(each)
        return len(found)

    def _end_everything(self) -> None:
        """Kill every descendant, also those that left their group, and reap it, until the kernel says that there is none."""
        deadline = time.monotonic() + END_SECONDS
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        for pid in self._children:
            _kill_group(pid)
        while time.monotonic() < deadline:
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            try:
                while os.waitpid(-1, os.WNOHANG) != (0, 0):
                    pass
            except ChildProcessError:
                return
            # The next one ends; or none does, for those that are left were forked while the others were listed.
            signal.sigtimedwait([signal.SIGCHLD], LOOK_AGAIN_SECONDS)

    def _become(self, message: Mapping[str, Any], stdout: int, stderr: int, words: tuple[int, int] | None) -> NoReturn:
        """In the child: turn into the program. Never returns."""
        code = CANNOT_START_EXIT_CODE
        try:
            self._settle(message, stdout, stderr, words)
            if message.get("command"):
                code = self._become_foreign(message["command"], forked=message["forked"])
            else:
                code = self._become_ours(message["module"], message["arguments"])
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def _become_ours(self, module: str, arguments: Sequence[str]) -> int:
        if self._mode == EXEC:
            watched = [lines.WRAPPER] if lines.is_asked_for(os.environ) else []
            command = [sys.executable, "-m", *watched, module, *arguments]
            os.execve(sys.executable, command, os.environ)  # noqa: S606 - on purpose
        sys.argv = [module, *arguments]
        return run_entry(module, arguments)

    def _become_foreign(self, command: Sequence[str], *, forked: bool) -> int:
        """Turn into somebody else's command, or run it here: then its exit code. No file that it writes can fill the disk."""
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        largest = LARGEST_FILE_BYTES if hard == resource.RLIM_INFINITY else min(hard, LARGEST_FILE_BYTES)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
        if forked:
            return foreign.run(command, self._ours)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and what is ignored stays so
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        try:
            os.execvpe(command[0], list(command), os.environ)  # noqa: S606 - on purpose
        except OSError as error:
            os.write(2, f"{command[0]}: cannot be started: {error.strerror}\n".encode())
            return CANNOT_START_EXIT_CODE

    def _settle(self, message: Mapping[str, Any], stdout: int, stderr: int, words: tuple[int, int] | None) -> None:
        os.setsid()
        if self._libc:
            self._libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != self._own_pid:  # the spawner died in between: nobody would end us
                os._exit(CANNOT_START_EXIT_CODE)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        if words is not None:
            if self._libc:
                self._libc.prctl(PR_SET_PTRACER, ctypes.c_ulong(PR_SET_PTRACER_ANY), 0, 0, 0)
            _await_tracer(*words)
        os.closerange(3, _DESCRIPTORS_END)
        os.chdir(message["directory"])
        os.environ.clear()
        os.environ.update(message["environment"])


def _await_tracer(hear: int, say: int) -> None:
    """Wait until strace says that it is attached; end where it never will be."""
    os.close(say)
    said = b""
    while b" attached" not in said:
        more = os.read(hear, 4096)
        if not more:
            os.write(2, b"strace could not be attached: " + (said or b"it cannot be started") + b"\n")
            os._exit(CANNOT_START_EXIT_CODE)
        said += more


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # the group is empty, or the child has not yet made it


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry, for the supervisor only."""
    descriptor, mode, *modules = sys.argv[1:] if argv is None else argv
    # A Ctrl-C or a stop is the harness's to handle; it ends us by closing the socket.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if mode != EXEC:
        # With a + in front they are somebody else's, and may be missing.
        foreign.preload([each[1:] for each in modules if each.startswith("+")])
        for module in modules:
            if not module.startswith("+"):
                importlib.import_module(entry_module(module))
        if mode == REHEARSED:
            rehearsal.rehearse(run_entry)
        gc.collect()
        gc.freeze()  # collections in the children would copy the pages that they share with us
    control = socket.socket(fileno=int(descriptor))
    control.set_inheritable(False)  # whoever held it would hide that we have ended
    Spawner(control, mode).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())

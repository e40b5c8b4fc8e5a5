"""The few kinds of error, one for each owner of the fault, with the exit code that a process ends with.

Who has to act is the first question of whoever reads a message, so it decides the class: the caller (`BadInput`), whoever
runs the machine (`MachineRefused`), whoever holds the lock (`LockHeld`), or somebody who must look at a file by hand before
anything else happens (`DamagedJournal`). A bug of our own is none of these: it stays an ordinary exception with its traceback,
and the process ends with Python's code 1. Exit code 23 is not here: it is the injected halt and nothing else (`outbox.faults`).
"""

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from typing import TextIO


class Halt23Error(Exception):
    """Base of all errors that are raised on purpose. The text is the whole message: what happened, where, what to do."""

    exit_code = 1


class BadInput(Halt23Error):
    """The caller gave something that cannot be used. Nothing was changed. Remedy: give what the message asks for."""

    exit_code = 2


class LockHeld(Halt23Error):
    """Another live process owns the file. Nothing was changed. Remedy: let it end, or work on another directory."""

    exit_code = 13


class DamagedJournal(Halt23Error):
    """A complete record of a journal is not what was written. The file is left untouched.

    Remedy: keep a copy, find out what changed it, and restore the file from a copy that reads well.
    """

    exit_code = 14


class MachineRefused(Halt23Error):
    """The operating system refused: disk full, no permission, port in use. Remedy: named in the message.

    `disk_full` tells whether more space would have helped.
    """

    exit_code = 16

    def __init__(self, message: str, *, disk_full: bool = False) -> None:
        super().__init__(message)
        self.disk_full = disk_full


def say(text: str, stream: TextIO | None) -> bool:
    """Print a line at once. A stream that is closed, full or read by nobody is no error of the program's; False then."""
    if stream is None:
        return False
    try:
        print(text, file=stream, flush=True)
    except OSError:
        with contextlib.suppress(OSError, ValueError):  # the interpreter would try again, and complain, at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return False
    return True


def reported(program: str, run: Callable[[], int]) -> int:
    """Run a process entry. An error raised on purpose becomes a line on standard error and its exit code.

    Ctrl-C ends the process by SIGINT, as it ends any program, after a line that says so.
    """
    try:
        return run()
    except Halt23Error as error:
        say(f"{program}: {error}", sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        say(f"{program}: interrupted", sys.stderr)
        say_nothing_more()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
        return 1


def say_nothing_more() -> None:
    """Flush what was printed; afterwards the process may end without Python's own tidying."""
    with contextlib.suppress(OSError):
        if sys.stdout is not None:
            sys.stdout.flush()

"""Ends a private server when we go without a word, and removes its folder; started before anything else.

The guard is a process of its own session, so that whoever kills our group with Ctrl-C does not kill the one who tidies up. It
knows what works in the folder by the folder's name on the command line.
"""

import os
import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import os, shutil, sys, time
import psutil
alive, directory = int(sys.argv[1]), sys.argv[2]
if os.read(alive, 1):
    sys.exit()
deadline = time.monotonic() + 30
while time.monotonic() < deadline:
    working = [each for each in psutil.process_iter(["cmdline"]) if directory in " ".join(each.info["cmdline"] or ())]
    working = [each for each in working if each.pid != os.getpid()]
    for each in working:
        try:
            each.kill()
        except psutil.NoSuchProcess:
            pass
    shutil.rmtree(directory, ignore_errors=True)
    if not working and not os.path.exists(directory):
        break
    time.sleep(0.05)
"""


class Guard:
    """Watches over `directory` from now until `dismiss`, or until we are gone."""

    def __init__(self, directory: Path) -> None:
        theirs, self._word = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(theirs), str(directory)], pass_fds=(theirs,), start_new_session=True
        )
        os.close(theirs)

    def dismiss(self, timeout_seconds: float) -> None:
        """There is nothing left to tidy up. Raises subprocess.TimeoutExpired."""
        os.write(self._word, b"x")
        os.close(self._word)
        self._process.wait(timeout_seconds)

"""Programs for the harness to start: each does one thing that a process under study might do.

python -m tests.scenarios.programs NAME [ARGUMENT …]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

READY = "READY 127.0.0.1:0"


def wait_forever() -> None:
    # A signal that comes just before `signal.pause` would wake nobody; here it leaves a byte behind.
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write)
    while True:
        os.read(read, 1)


def do_exit(code: str) -> int:
    """Return an exit code."""
    return int(code)


def do_fail() -> int:
    """Meet a bug of its own."""
    raise RuntimeError("a bug of its own")


def do_usage() -> int:
    """Be called wrongly."""
    argparse.ArgumentParser(prog="program").parse_args(["--nonsense"])
    return 0


def do_text() -> int:
    """End with a sentence, as `sys.exit` allows."""
    sys.exit("it gave up")


def do_halt() -> int:
    """End as an injected halt does: at once, with what was printed still in the buffer."""
    print("never seen")
    os._exit(23)


def do_raise_signal(name: str) -> int:
    """End by a signal of its own."""
    os.kill(os.getpid(), getattr(signal, name))
    return 0


def do_wait() -> int:
    """Say READY and live until somebody ends it."""
    print(READY, flush=True)
    wait_forever()
    return 0


def do_silent() -> int:
    """Live until somebody ends it, and say nothing."""
    wait_forever()
    return 0


def do_print_and_wait() -> int:
    """Print without flushing, say READY past the buffer, and live until somebody ends it."""
    print("in the buffer")
    os.write(1, f"{READY}\n".encode())
    wait_forever()
    return 0


def do_stubborn() -> int:
    """Say READY and take no notice of SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return do_wait()


def do_on_term(code: str) -> int:
    """Say READY; end with this code when asked to end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(int(code)))
    return do_wait()


def do_fail_when_told() -> int:
    """Leave the pid in a file, say READY; when asked to end, end with code 5."""
    Path("pid").write_text(str(os.getpid()))
    return do_on_term("5")


def do_end_other() -> int:
    """End the process whose pid stands in the file, behind the harness's back, and wait until it is gone."""
    other = psutil.Process(int(Path("pid").read_text()))
    other.terminate()
    other.wait(30)
    return 0


def do_tell(fifo: str) -> int:
    """Write the pid into a FIFO that somebody reads, and live until somebody ends it."""
    with open(fifo, "w") as file:
        file.write(str(os.getpid()))
    wait_forever()
    return 0


def do_stdin() -> int:
    """Tell how much standard input holds."""
    print(len(sys.stdin.buffer.read()))
    return 0


def do_environment() -> int:
    """Tell the environment."""
    print(json.dumps(dict(os.environ), sort_keys=True))
    return 0


def do_place() -> int:
    """Tell the working directory, the session and the open descriptors."""
    descriptors = []
    for descriptor in range(256):
        try:
            os.fstat(descriptor)
        except OSError:
            continue
        descriptors.append(descriptor)
    leads = os.getsid(0) == os.getpid() == os.getpgid(0)
    print(json.dumps({"directory": os.getcwd(), "leads_session": leads, "descriptors": descriptors}))
    return 0


def do_flood(count: str) -> int:
    """Write so many bytes to both outputs."""
    sys.stdout.write("o" * int(count))
    sys.stderr.write("e" * int(count))
    return 0


def do_daemon(then: str) -> int:
    """Leave a descendant behind that has its own session and nobody's output; then `end` or `wait`."""
    read, write = os.pipe()
    between = os.fork()
    if between == 0:
        os.setsid()
        if os.fork() == 0:
            nowhere = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(nowhere, descriptor)
            os.write(write, str(os.getpid()).encode())
            wait_forever()
        os._exit(0)
    os.waitpid(between, 0)
    pid = os.read(read, 20).decode()
    print(f"READY daemon:{pid}", flush=True)
    if then == "wait":
        wait_forever()
    return 0


def do_breed(fifo: str) -> int:
    """Leave a daemon behind that forks on and on. It and all that it forks hold `fifo` open for writing."""
    if os.fork() == 0:
        os.setsid()
        os.open(fifo, os.O_WRONLY)
        print(READY, flush=True)
        for _ in range(500):
            if os.fork() == 0:
                signal.alarm(60)  # a test that fails leaves nobody for long
                wait_forever()
        wait_forever()
    wait_forever()
    return 0


def do_hold_output() -> int:
    """End, and leave a descendant behind that keeps this process's output open."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        os.write(write, b".")
        wait_forever()
    os.read(read, 1)
    return 0


def do_damage(path: str) -> int:
    """Change one byte of a journal's first record."""
    file = Path(path)
    content = bytearray(file.read_bytes())
    content[20] ^= 1
    file.write_bytes(bytes(content))
    return 0


PROGRAMS: dict[str, Callable[..., int]] = {
    name.removeprefix("do_"): function for name, function in list(globals().items()) if name.startswith("do_")
}


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry."""
    name, *arguments = sys.argv[1:] if argv is None else argv
    return PROGRAMS[name](*arguments)


if __name__ == "__main__":
    sys.exit(main())

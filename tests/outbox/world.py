"""What most tests here need: an outbox directory, a receiver process, and what their journals hold, read without our reader."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scenarios.engine.ports import Ports
from tests.support import BOUND_SECONDS, ROOT, Ended, ProcessBox, Running

Line = dict[str, Any]


def lines(path: Path) -> list[Line]:
    """The complete lines of a journal as JSON; a torn tail is left out, an absent file has none."""
    if not path.exists():
        return []
    *complete, _tail = path.read_bytes().split(b"\n")
    return [json.loads(line) for line in complete]


def state(directory: Path) -> dict[str, bytes]:
    """Every file of a directory with its bytes."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def payload(value: Mapping[str, str]) -> bytes:
    """The bytes of a payload that holds text."""
    assert value["encoding"] == "utf-8"
    return value["content"].encode()


def python(code: str, *arguments: str, prefix: Sequence[str] = (), **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a small program in an interpreter of its own, with the checkout to import from."""
    return subprocess.run(
        [*prefix, sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=BOUND_SECONDS,
        stdin=subprocess.DEVNULL,
        env=environment_of(**environment),
        check=False,
    )


def environment_of(**added: str) -> dict[str, str]:
    """The environment of a program: the fixed variables and what is added."""
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1", "LANG": "C.UTF-8", **added}


class World:
    """One outbox directory, and one receiver with a port that stays its own while it is down."""

    def __init__(self, box: ProcessBox, root: Path) -> None:
        self.box = box
        self.outbox, self.receiver_directory = root / "outbox", root / "receiver"
        self._ports = Ports()
        self.port = self._ports.of("receiver")
        self.receiver: Running | None = None

    def close(self) -> None:
        """End the receiver and give the port back."""
        if self.receiver is not None:
            self.receiver.kill()
        self._ports.close()

    @property
    def url(self) -> str:
        """Where the receiver is, when it is."""
        return f"http://127.0.0.1:{self.port}"

    def start_receiver(self, kind: str = "keyed", halt_at: str | None = None) -> Running:
        """Start the receiver."""
        arguments = [kind, "--dir", str(self.receiver_directory), "--port", str(self.port)]
        self.receiver = self.box.start("receivers", arguments, armed(halt_at))
        return self.receiver

    def produce(self, key: str = "turn-1", body: str = '{"q":1}', *more: str, halt_at: str | None = None) -> Ended:
        """Run a producer to its end."""
        arguments = ["--dir", str(self.outbox), "--key", key, "--body", body, *more]
        return self.box.run("outbox.producer", arguments, armed(halt_at))

    def dispatch(self, *more: str, halt_at: str | None = None, receiver: str | None = None) -> Ended:
        """Run one dispatcher pass to its end."""
        arguments = ["--dir", str(self.outbox), "--receiver", receiver or self.url, *more]
        return self.box.run("outbox.dispatcher", arguments, armed(halt_at))

    def journal(self, name: str) -> Path:
        """A journal of the outbox, or the receiver's `effects` or `arrivals`."""
        directory = self.receiver_directory if name in ("effects", "arrivals") else self.outbox
        return directory / f"{name}.jsonl"

    def records(self, name: str, record_type: str | None = None) -> list[Line]:
        """The complete records of a journal, of one type or all."""
        return [each for each in lines(self.journal(name)) if record_type in (None, each["type"])]

    def counts(self) -> tuple[int, int, int]:
        """Effects, receipts, history records."""
        return len(self.records("effects")), len(self.records("receipts")), len(self.records("history"))


def armed(halt_at: str | None) -> dict[str, str]:
    """The environment that arms a fault, or nothing."""
    return {} if halt_at is None else {"HALT_AT": halt_at}


def summary(ended: Ended) -> dict[str, int]:
    """The counts that a dispatcher printed, those that are not zero."""
    counts: dict[str, int] = json.loads(ended.stdout)
    assert counts["intentions"] == sum(counts.values()) - counts["intentions"] - counts["history_added"]
    return {name: count for name, count in counts.items() if count}

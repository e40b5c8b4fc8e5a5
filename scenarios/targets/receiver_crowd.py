"""N processes that send the same request at once. Standard library only: a crowd must come together quickly.

    python -m scenarios.targets.receiver_crowd HOST PORT N FILE

FILE holds the request; its bytes go out as they are. Each process connects, says so, and waits; when all are there, all are let
go together. What came back to each is written to FILE.answers as one JSON array: `response` (base64; null where nothing did),
and `began` and `seconds` by the monotonic clock.
"""

import base64
import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Sequence

BOUND_SECONDS = 20.0
MAX_RESPONSE_BYTES = 1 << 20


def _one(address: tuple[str, int], message: bytes, ready: int, go: int, told: int) -> None:
    """One of the crowd: connect, wait, send, and tell what came back."""
    answer: str | None = None
    began = 0.0
    with contextlib.suppress(OSError):
        connection = socket.create_connection(address, BOUND_SECONDS)
        os.write(ready, b"+")
        os.read(go, 1)
        began = time.monotonic()
        connection.sendall(message)
        received = bytearray()
        with contextlib.suppress(OSError):
            while (part := connection.recv(1 << 16)) and len(received) < MAX_RESPONSE_BYTES:
                received += part
        answer = base64.b64encode(received).decode()
    line = json.dumps({"response": answer, "began": began, "seconds": time.monotonic() - began if began else 0.0})
    with os.fdopen(told, "w") as file:
        file.write(line)


def crowd(host: str, port: int, message: bytes, number: int) -> list[dict[str, object]]:
    """Fork them, let them go, and gather what they tell."""
    ready_read, ready_write = os.pipe()
    go_read, go_write = os.pipe()
    telling = []
    for _each in range(number):
        told_read, told_write = os.pipe()
        if os.fork() == 0:
            # The end of this pipe is the signal to go, so nobody else may hold its other end.
            os.close(go_write)
            try:
                _one((host, port), message, ready_write, go_read, told_write)
            finally:
                os._exit(0)
        os.close(told_write)
        telling.append(told_read)
    os.close(ready_write)
    there = 0
    while there < number and (more := os.read(ready_read, number)):
        there += len(more)
    os.close(go_write)
    found = []
    for descriptor in telling:
        with os.fdopen(descriptor) as file:
            text = file.read()
        found.append(json.loads(text) if text else {"response": None, "began": 0.0, "seconds": 0.0})
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry, for the battery only."""
    host, port, number, file = sys.argv[1:] if argv is None else argv
    with open(file, "rb") as request:  # noqa: PTH123 - pathlib is a third of the start of such a process
        message = request.read()
    with open(f"{file}.answers", "w") as answers:  # noqa: PTH123 - as above
        json.dump(crowd(host, int(port), message, int(number)), answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())

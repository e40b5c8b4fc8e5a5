"""A notify command: what a dispatch outbox runs to hand a payload over. An instrument, not under study; standard library only.

    python -m scenarios.courier --receiver http://127.0.0.1:PORT [--careless] ROUTE <PAYLOAD

It POSTs its standard input to ROUTE at the receiver, under the dispatch's id as the key. Exit codes: 0 a success status came
back, 1 another one or none, 2 bad input. With `--careless` it does not wait for the answer: 0 says that the request was handed
to the kernel, which is all that many real commands know when they exit.
"""

import argparse
import os
import re
import socket
import sys
from collections.abc import Sequence

SECONDS = 5.0
_RECEIVER = re.compile(r"http://127\.0\.0\.1:(\d{1,5})", re.ASCII)
_ROUTE = re.compile(r"/[!-~]*", re.ASCII)
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry; see the module for the exit codes."""
    parser = argparse.ArgumentParser(prog="python -m scenarios.courier", description="Hand a payload over.")
    parser.add_argument("route", metavar="ROUTE")
    parser.add_argument("--receiver", required=True, metavar="URL", help="http://127.0.0.1:PORT")
    parser.add_argument("--careless", action="store_true", help="do not wait for the answer")
    given = parser.parse_args(argv)
    match = _RECEIVER.fullmatch(given.receiver)
    if match is None or not 0 < int(match[1]) < 65536 or not _ROUTE.fullmatch(given.route):
        parser.error("expected --receiver http://127.0.0.1:PORT and a route of visible ASCII that begins with /")
    request = _request(given.route, sys.stdin.buffer.read())
    try:
        with socket.create_connection(("127.0.0.1", int(match[1])), SECONDS) as connection:
            connection.sendall(request)
            if given.careless:
                return 0
            return _told(_answer(connection))
    except OSError as error:
        print(f"no answer: {type(error).__name__}", file=sys.stderr)
        return 1


def _request(route: str, payload: bytes) -> bytes:
    headers = {
        "Host": "receiver.localhost",
        "Content-Type": "application/json",
        "Content-Length": str(len(payload)),
        "Idempotency-Key": os.environ.get("HALT23_DISPATCH_ID", ""),
        "Halt23-Attempt": os.environ.get("HALT23_ATTEMPT", ""),
        "Connection": "close",
    }
    lines = [f"POST {route} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + payload


def _answer(connection: socket.socket) -> bytes:
    answer = b""
    while chunk := connection.recv(65536):
        answer += chunk
    return answer


def _told(answer: bytes) -> int:
    match = _STATUS.match(answer)
    if match is None:
        print("no answer: the connection ended", file=sys.stderr)
        return 1
    status = int(match[1])
    if 200 <= status < 300:
        return 0
    print(f"the receiver answered {status}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

"""A receiver that is none, in the way that MODE says. Standard library only: it starts quickly."""

import json
import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MODE = os.environ["MODE"]
PORT, DIRECTORY = int(sys.argv[1]), Path(sys.argv[2])
KEYS: dict[str, int] = {}
REQUESTS: list[str] = []


class Handler(BaseHTTPRequestHandler):
    """Keyed, in memory, but for its MODE."""

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Tell the count."""
        self._answer(200, {"count": len(KEYS) * {"counts-nothing": 0, "counts-twice": 2}.get(MODE, 1)})

    def do_POST(self) -> None:
        """Apply once."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        key = self.headers["Idempotency-Key"] or ""
        REQUESTS.append(key)
        if MODE == "never-answers":
            time.sleep(3600)
        if MODE == "exits-23" and len(REQUESTS) == 3:
            os._exit(23)
        if MODE == "fills-the-disk":
            with (DIRECTORY / "log").open("ab") as file:
                for _each in range(300):
                    file.write(b"x" * (1 << 20))
        if MODE == "refuses":
            self._answer(404, {"error": "no such place"})
            return
        KEYS.setdefault(key, len(KEYS) + 1)
        self._answer(200, {"number": KEYS[key], "bytes": len(body)})

    def _answer(self, status: int, data: object) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Be bad."""
    if MODE == "exits-23-at-once":
        sys.exit(23)
    if MODE == "never-ready":
        time.sleep(3600)
    if MODE == "forks-away" and os.fork():
        time.sleep(0.2)
        os._exit(0)
    if MODE == "forks-away":
        os.setsid()
    if MODE == "ignores-sigterm":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ThreadingHTTPServer(("127.0.0.1", 0 if MODE == "listens-elsewhere" else PORT), Handler).serve_forever()


if __name__ == "__main__":
    main()

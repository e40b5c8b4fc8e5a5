"""The HTTP side that all receivers share: reading requests within bounds, logging them, answering, starting and stopping.

`POST /operations` is handed to the receiver's kind; `GET /operations/KEY` asks it whether KEY was applied; `GET /effects`
streams the effects and changes nothing, not even the log. Anything else is an arrival that is refused. Listens on 127.0.0.1
only, prints `READY 127.0.0.1:PORT` when connections are accepted, finishes the requests in progress on SIGTERM.

Two options make concurrency a matter of declaration: `gate` N holds the first N requests until all are there and serves them in
the order of their senders' names; `work_until` N lets performing an effect take until N requests have come.
"""

import asyncio
import contextlib
import fcntl
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from aiohttp import web

from outbox import journal
from outbox.errors import MachineRefused, say
from receivers.arrivals import MAX_BODY_BYTES, Answer, Arrival, ArrivalLog, read_key, refusal
from receivers.kind import Context, Crowd, Gate, Kind, Options
from receivers.ledger import EFFECTS, Ledger

OPERATIONS_ROUTE = "/operations"
EFFECTS_ROUTE = "/effects"
SENDER_HEADER = "Halt23-Sender"
SHUTDOWN_SECONDS = 5.0
BEHIND_ALL = 512
MAX_LOGGED_CHARACTERS = 2000
MAX_HEADER_BYTES = 65_536

# A request in progress is waited for before the library is told to stop; then only its response is still on its way.
RESPONSE_SECONDS = 1.0


class Server:
    """One receiver: its directory, its journals and its kind. Raises as `outbox.journal` does."""

    def __init__(self, directory: Path, kind: type[Kind], options: Options) -> None:
        journal.make_directory(directory)
        self._directory = directory
        self._ledger = Ledger(directory)
        self._log = ArrivalLog(directory)
        self._gate = Gate(options.gate)
        self._crowd = Crowd(options.work_until)
        self._kind = kind(Context(directory, options, self._ledger, self._crowd.wait))
        self._in_progress = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def close(self) -> None:
        """Give the journals up."""
        self._kind.close()
        self._log.close()
        self._ledger.close()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        self._in_progress += 1
        self._idle.clear()
        try:
            return await self._handle(request)
        finally:
            self._in_progress -= 1
            if self._in_progress == 0:
                self._idle.set()

    async def finish(self, timeout_seconds: float) -> None:
        """Wait until no request is in progress, but no longer than this."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await self._idle.wait()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.path == EFFECTS_ROUTE and request.method == "GET":
            return await self._effects(request)
        if request.path.startswith(f"{OPERATIONS_ROUTE}/") and request.method == "GET":
            return _response(self._query(request.path.removeprefix(f"{OPERATIONS_ROUTE}/")))
        body, problem = await _read(request)
        await self._gate.enter(request.headers.get(SENDER_HEADER, ""))
        arrival = self._arrival(request, body)
        try:
            self._log.arrived(arrival)
        except MachineRefused as error:
            return _response(_storage_failure(error))
        self._crowd.arrived()
        try:
            answer = problem or await self._kind.serve(arrival)
        except MachineRefused as error:
            answer = _storage_failure(error)
        try:
            self._log.answered(arrival, answer)
        except MachineRefused as error:
            # What was done is done: the sender is told, and the operator learns that the log has a gap.
            _complain(error)
        return _response(answer)

    def _arrival(self, request: web.Request, body: bytes | None) -> Arrival:
        key, key_problem = read_key(request.headers.getall("Idempotency-Key", []))
        return Arrival(
            id=self._log.next_id(),
            method=request.method,
            route=request.path_qs[:MAX_LOGGED_CHARACTERS],
            key=key,
            key_problem=key_problem,
            attempt=_logged(request, "Halt23-Attempt"),
            sender=_logged(request, SENDER_HEADER),
            fingerprint=None if body is None else journal.fingerprint(body),
            body_bytes=None if body is None else len(body),
        )

    def _query(self, key: str) -> Answer:
        try:
            effect = self._kind.find_operation(key)
        except LookupError:
            return refusal(404, "not_found", "this receiver has no status query")
        told: dict[str, object] = {"applied": effect is not None}
        if effect is not None:
            told |= {"status": effect.status, "result": effect.result.decode()}
        try:
            self._log.asked(key, "applied" if effect else "not_applied")
        except MachineRefused as error:
            _complain(error)
        return Answer("told", 200, journal.canonical(told).encode())

    async def _effects(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        count = 0
        await response.write(b'{"effects":[')
        for record in EFFECTS.read(self._directory):
            data = record.data
            effect = {"id": record.id, "key": data["key"], "fingerprint": data["fingerprint"], "number": data["number"]}
            await response.write((b"," if count else b"") + journal.canonical(effect).encode())
            count += 1
        await response.write(b'],"count":%d}\n' % count)
        await response.write_eof()
        return response


def _logged(request: web.Request, header: str) -> str | None:
    value = request.headers.get(header)
    return None if value is None else value[:MAX_LOGGED_CHARACTERS]


async def _read(request: web.Request) -> tuple[bytes | None, Answer | None]:
    """The request's body, and the answer if the request must not be served."""
    if request.path not in (OPERATIONS_ROUTE, EFFECTS_ROUTE):
        return None, refusal(404, "not_found", f"there is only {OPERATIONS_ROUTE} and {EFFECTS_ROUTE}")
    allowed = "POST" if request.path == OPERATIONS_ROUTE else "GET"
    if request.method != allowed:
        return None, refusal(405, "method_not_allowed", f"only {allowed} is allowed here", allow=allowed)
    too_large = refusal(413, "body_too_large", f"the body is larger than {MAX_BODY_BYTES} bytes")
    if (request.content_length or 0) > MAX_BODY_BYTES:
        return None, too_large
    try:
        return await request.read(), None
    except web.HTTPRequestEntityTooLarge:
        return None, too_large
    except (web.RequestPayloadError, ConnectionError):
        return None, refusal(400, "body_incomplete", "the connection ended in the middle of the body")


def _storage_failure(error: MachineRefused) -> Answer:
    _complain(error)
    if error.disk_full:
        return refusal(507, "storage_full", "the disk is full; nothing was done", outcome="failed")
    return refusal(503, "storage_failed", "the receiver cannot write; nothing was done", outcome="failed")


def _complain(error: MachineRefused) -> None:
    say(f"receiver: {error}", sys.stderr)


def tell_ready(listener: socket.socket) -> None:
    """Print the READY line. Raises MachineRefused where nobody can be told: who does not know the port cannot use it."""
    if not say(f"READY 127.0.0.1:{listener.getsockname()[1]}", sys.stdout):
        raise MachineRefused("standard output cannot be written, so nobody can learn the port; open it and start again")


def _response(answer: Answer) -> web.Response:
    headers = {"Content-Type": "application/json", "Server": "halt23"}
    if answer.outcome == "replayed":
        headers["Idempotency-Replayed"] = "true"
    if answer.allow:
        headers["Allow"] = answer.allow
    if answer.retry_after is not None:
        headers["Retry-After"] = str(answer.retry_after)
    return web.Response(status=answer.status, body=answer.body, headers=headers)


def listen(port: int) -> socket.socket:
    """A listening socket on 127.0.0.1, on an ephemeral port for 0. Raises MachineRefused where the port cannot be had."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise MachineRefused(f"port {port} on 127.0.0.1 cannot be had: {error.strerror}; choose another, or 0") from error
    return _behind_all(listener)


def _behind_all(listener: socket.socket) -> socket.socket:
    """The same listener under a number higher than any connection's.

    When a process dies, Linux closes what it had open from the highest number down. A sender that sees its connection end must
    find that nobody listens any more, or what it meets next would be chance: refused, or accepted and then reset.
    """
    try:
        number = fcntl.fcntl(listener.fileno(), fcntl.F_DUPFD_CLOEXEC, BEHIND_ALL)
    except OSError:  # so many files are not allowed here: chance it is
        return listener
    listener.close()
    return socket.socket(fileno=number)


@contextlib.asynccontextmanager
async def serving(directory: Path, port: int, kind: type[Kind], options: Options) -> AsyncIterator[socket.socket]:
    """A receiver that serves as long as this lasts; yields its listening socket, and then finishes what is in progress.

    Raises BadInput, LockHeld, DamagedJournal and MachineRefused.
    """
    kind.check(options)
    listener = listen(port)
    try:
        server = Server(directory, kind, options)
    except BaseException:
        listener.close()
        raise
    application = web.Application(client_max_size=MAX_BODY_BYTES)
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(
        application,
        access_log=None,
        handle_signals=False,
        shutdown_timeout=RESPONSE_SECONDS,
        auto_decompress=False,
        max_field_size=MAX_HEADER_BYTES,
    )
    await runner.setup()
    try:
        site = web.SockSite(runner, listener)
        await site.start()
        yield listener
        # The library takes no more bytes of a body once it shuts down: requests in progress are waited for before.
        await site.stop()
        await server.finish(SHUTDOWN_SECONDS)
    finally:
        await runner.cleanup()
        server.close()


async def run(directory: Path, port: int, kind: type[Kind], options: Options) -> None:
    """Serve until SIGTERM or SIGINT. Raises as `serving` does, before the READY line."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with serving(directory, port, kind, options) as listener:
        tell_ready(listener)
        await stopped.wait()

"""What a scan sends, and what comes back: each send takes the next arrival of the receiver that it went to.

A route that is a URL goes by HTTP to the receiver that the command line names for its host; any other goes by the notify
command (`scenarios.courier`). Where no receiver runs, nothing arrives. Where one runs, the next arrival of its journal must be
this very send, and what its answer says is the result. One that was never answered was served by a receiver that died; where a
receiver is stopped while it serves, its place among its records is counted here, and the sender waits.
"""

from __future__ import annotations

from audit.books_enqueue import PORTS, host_of
from audit.books_text import Unknown
from audit.books_words import DID_NOT_HAPPEN, HAPPENED, MAY_HAVE_HAPPENED
from audit.case import RECEIVER
from audit.findings import show
from audit.hashing import digest
from audit.plan import folder_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from audit.books_play import Process
    from audit.books_tables import Program, Row
    from audit.books_text import Arguments
    from audit.case import Case
    from audit.journals import Record
    from audit.plan import Launch

    Route = Callable[[Process, "Claim"], Program["Result"]]

READ = "/operations"
"""The path whose requests a receiver reads; it refuses all others before their bodies."""
LOCAL = ("localhost", "127.0.0.1")
COURIER = "http://127.0.0.1:"
NO_TEMPLATE = "no notify template is configured ([dispatch] notify_template in halt23.toml)"
CLOSED = "connection_closed: ServerDisconnectedError: Server disconnected"
STAGES = (".append.before", ".append.torn", ".append.written", ".append.synced")


class Lost(Exception):
    """The records do not go on as this scan would have; a finding says where."""


class Claim:
    """One attempt that a scan has to make: the row as the claim left it, and when that was."""

    __slots__ = ("at", "attempt", "id", "number", "row")

    def __init__(self, row: Row, at: float) -> None:
        self.row = dict(row)
        self.id: str = row["id"]
        self.attempt: int = row["attempt"]
        self.number: int = row["claim_number"]
        self.at = at


class Result:
    """What became of a send."""

    __slots__ = ("error", "outcome")

    def __init__(self, outcome: str, error: str | None = None) -> None:
        self.outcome, self.error = outcome, error


def route_of(arguments: Arguments) -> Route:
    """How a scan with these arguments sends."""
    hosts = dict(each.split("=", 1) for each in arguments.all("--receiver") if "=" in each)
    courier, careless = arguments.get("--courier"), arguments.has("--careless")

    def send(process: Process, claim: Claim) -> Program[Result]:
        yield "dispatch.send.before"
        scheme, mark, rest = claim.row["deliver_to"].partition("://")
        if mark and scheme.lower() in PORTS:
            result = yield from _by_http(process, claim, hosts, rest, scheme.lower())
        elif courier is None:
            result = Result(DID_NOT_HAPPEN, NO_TEMPLATE)
        else:
            result = yield from _by_command(process, claim, courier, careless=careless)
        yield "dispatch.send.response"
        return result

    return send


def _by_http(process: Process, claim: Claim, hosts: dict[str, str], rest: str, scheme: str) -> Program[Result]:
    authority = host_of(rest)
    host, _colon, port = authority.partition(":")
    if host not in hosts:
        host = host.lower()
        if host in LOCAL or host in hosts:
            raise Unknown(f"the route {show(claim.row['deliver_to'])} leads to no receiver that the scan was told of")
        error = f"the host {host} of the route is not this machine; name it in [dispatch] allow_hosts to send there"
        return Result(DID_NOT_HAPPEN, error)
    server = process.servers.at(hosts[host])
    if server is None:
        said = f"no connection to {host}:{port or PORTS[scheme]}: Connection refused"
        return Result(DID_NOT_HAPPEN, f"connection_refused: {said}")
    target = rest[len(authority) :].partition("#")[0]
    answer = yield from server.serve(process, claim, target if target.startswith("/") else f"/{target}")
    return Result(MAY_HAVE_HAPPENED, CLOSED) if answer is None else _told(answer)


def _told(answer: Record) -> Result:
    """What an HTTP answer means."""
    status = answer.data["status"]
    said = f"the receiver answered {status}"
    if 200 <= status < 300:
        return Result(HAPPENED)
    if answer.data["reason"] == "key_in_flight":
        return Result(DID_NOT_HAPPEN, "in_flight: the receiver is working on this key")
    if status in (409, 422):
        return Result(DID_NOT_HAPPEN, f"conflict: {said}: the key is bound to another body")
    if status in (429, 503, 507):
        return Result(DID_NOT_HAPPEN, f"unavailable: {said}")
    if 400 <= status < 500:
        return Result(DID_NOT_HAPPEN, f"refused: {said}")
    return Result(MAY_HAVE_HAPPENED, f"server_error: {said}")


def _by_command(process: Process, claim: Claim, courier: str, *, careless: bool) -> Program[Result]:
    """The notify command: what it says on standard error is the reason of a failure."""
    route = claim.row["deliver_to"]
    if not courier.startswith(COURIER) or not route.startswith("/"):
        raise Unknown(f"the notify command refuses the receiver {show(courier)} or the route {show(route)}")
    server = process.servers.at(courier.removeprefix(COURIER))
    if server is None:
        return Result(MAY_HAVE_HAPPENED, "no answer: ConnectionRefusedError")
    answer = yield from server.serve(process, claim, route, waits=not careless)
    if careless:
        return Result(HAPPENED)
    if answer is None:
        return Result(MAY_HAVE_HAPPENED, "no answer: the connection ended")
    status = answer.data["status"]
    return Result(HAPPENED) if 200 <= status < 300 else Result(MAY_HAVE_HAPPENED, f"the receiver answered {status}")


class Server:
    """One incarnation of a receiver, and the place in its journal of arrivals."""

    __slots__ = ("_counts", "_mortal", "_pause", "_shelf", "alive", "paused")

    def __init__(self, launch: Launch, shelf: Shelf) -> None:
        self._shelf = shelf
        self._mortal, self._pause = launch.halt_at is not None or launch.signal is not None, _parsed(launch.pause_at)
        self._counts: dict[str, int] = {}
        self.alive = True
        self.paused = False

    def serve(self, process: Process, claim: Claim, route: str, *, waits: bool = True) -> Program[Record | None]:
        """The answer to a send; None where the receiver died before it. Without `waits` nobody is there to hear it."""
        while self.paused and waits:
            yield None
        arrival = self._shelf.next()
        if arrival is None:
            words = f"attempt {claim.attempt} of the dispatch {show(claim.id)} was sent, but there is no arrival of it"
            process.note(self._shelf.place, words)
            raise Lost
        _same(process, claim, route, arrival)
        answer = self._shelf.answers.get(arrival.id)
        writes = ("arrival", "effect", "answer") if self._shelf.acts_on(arrival) else ("arrival", "answer")
        for kind in writes:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self.paused = self.paused or self._pause in [(f"{kind}{stage}", self._counts[kind]) for stage in STAGES]
        while self.paused and waits:
            yield None
        if answer is None:
            self.alive = False
            if not self._mortal:
                process.note(arrival.place, f"{show(arrival.id)} was never answered, but no fault was armed in its receiver")
                raise Lost
        return answer


def _parsed(armed: str | None) -> tuple[str, int] | None:
    """A fault point and its occurrence."""
    point, mark, occurrence = (armed or "").partition("#")
    return (point, int(occurrence) if mark else 1) if armed else None


def _same(process: Process, claim: Claim, route: str, arrival: Record) -> None:
    """An arrival is the request that was sent, between the steps of its scan."""
    arrival.span = process.span
    body: bytes = claim.row["payload"].encode("utf-8", "surrogatepass")
    read = route.partition("?")[0] == READ
    wanted: dict[str, Any] = {
        "attempt": str(claim.attempt),
        "body_bytes": len(body) if read else None,
        "fingerprint": digest(body) if read else None,
        "key": claim.id,
        "method": "POST",
        "route": route,
        "sender": None,
    }
    for member, value in wanted.items():
        if arrival.data[member] != value:
            words = f"attempt {claim.attempt} of the dispatch {show(claim.id)} sent {show(value)}"
            process.note(f"{arrival.place} data.{member}", f"is {show(arrival.data[member])}, but {words}")


class Shelf:
    """The arrivals of one directory of journals, and how far they are taken."""

    __slots__ = ("_acted", "_arrivals", "_taken", "answers", "place")

    def __init__(self, case: Case, folder: str) -> None:
        store = case.stores.get(folder)
        arrivals = store["arrivals"] if store else None
        self.place = arrivals.path if arrivals else f"{case.folder}{folder}"
        self._arrivals = arrivals.of("arrival") if arrivals else []
        self.answers = arrivals.by_id("answer") if arrivals else {}
        self._acted = {effect.data["arrival"] for effect in store["effects"].records} if store else set()
        self._taken = 0

    def next(self) -> Record | None:
        """The first arrival that no send has taken yet."""
        if self._taken == len(self._arrivals):
            return None
        self._taken += 1
        return self._arrivals[self._taken - 1]

    def acts_on(self, arrival: Record) -> bool:
        """Whether an arrival led to an effect."""
        return arrival.id in self._acted

    def rest(self) -> list[Record]:
        """The arrivals that no send took."""
        return self._arrivals[self._taken :]


class Servers:
    """The receivers of a scenario, as its steps start and end them."""

    __slots__ = ("_case", "_running", "shelves")

    def __init__(self, case: Case) -> None:
        self._case = case
        self._running: dict[str, Server] = {}
        self.shelves: dict[str, Shelf] = {}

    def start(self, launch: Launch) -> None:
        """A step starts a receiver."""
        arguments = launch.arguments
        if launch.module != RECEIVER or "--dir" not in arguments[:-1]:
            raise Unknown(f"the server {show(launch.process)} is none that a scan is known to send to")
        folder = folder_at(self._case.plan["steps"], arguments[arguments.index("--dir") + 1], launch.step)
        shelf = self.shelves.setdefault(folder, Shelf(self._case, folder))
        self._running[launch.process] = Server(launch, shelf)

    def end(self, name: str) -> None:
        """A step ends it."""
        self._running.pop(name, None)

    def resume(self, name: str) -> None:
        """It goes on after a pause."""
        if name in self._running:
            self._running[name].paused = False

    def stands(self, name: str) -> bool | None:
        """Whether a receiver is stopped at its pause; None where there is none of that name."""
        return self._running[name].paused if name in self._running else None

    def at(self, port: str) -> Server | None:
        """The receiver that listens where a placeholder stands; None where nobody does."""
        server = self._running.get(port.removeprefix("{").removesuffix(".port}"))
        return server if server is not None and server.alive else None

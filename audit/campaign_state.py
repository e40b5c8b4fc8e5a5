"""What was durable in a folder of a campaign: read from its journals and tables, counted, and hashed.

A line of a journal counts where its checksum fits and it is a record; anything else is damage, and a last line without its
newline is a torn tail. The same bytes are read once, however many cases have them: most cases share most of their files.
"""

from __future__ import annotations

from audit import campaign_causes, campaign_leases, exports, journals
from audit.books_words import ATTEMPT, PENDING, TRANSPORT_OK
from audit.findings import show
from audit.hashing import digest, sha256
from audit.journals import CHECKSUM_END, OPENING
from audit.records import SHAPES
from audit.shapes import exactly, holds, in_order, optional
from audit.strict_json import Malformed, encode, parse, parse_laid_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from audit.campaign_plan import Subject
    from audit.files import Tree
    from audit.findings import Note

SENDER = tuple(f"outbox/{name}.jsonl" for name in ("intentions", "attempts", "receipts", "history"))
RECEIVER = tuple(f"receiver/{name}.jsonl" for name in ("effects", "arrivals"))
OTHERS = ("receiver/keys.jsonl",)
TABLES = {**exports.TABLES, "admin_events": {**exports.EVENT, "entity_id": optional(exports.IDENTITY)}}
"""A purge is an event of no single dispatch."""
OUTBOX, MOVES, _ = TABLES
RECEIPTS = ("dispatch.delivered.transport_ok", "dispatch.dead_letter.ack_timeout", "dispatch.acked.consumer")
MOST_REMEMBERED = 4000


class Lines:
    """One journal: its records by type, what else it holds, and what is wrong with its form."""

    __slots__ = ("damaged", "name", "notes", "records", "torn")

    def __init__(self, name: str) -> None:
        self.name = name
        self.records: list[dict[str, Any]] = []
        self.torn = 0
        self.damaged = 0
        self.notes: list[tuple[str, str]] = []

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The records of one type."""
        return [record for record in self.records if record["type"] == kind]


class State:
    """One look at what was durable: counts by operation, what is left to do, its digest, and all of it in words."""

    __slots__ = (
        "arrivals", "attempts", "damaged", "digest", "effects", "ended", "history", "intended", "lines", "receipts",
        "repeated", "told",
        "uncaused", "unfinished",
    )  # fmt: skip

    def __init__(self) -> None:
        self.effects: dict[str, int] = {}
        self.receipts: dict[str, int] = {}
        self.history: dict[str, int] = {}
        self.arrivals = self.attempts = 0
        self.ended: dict[str, str] = {}
        self.uncaused: list[str] = []
        self.repeated: list[str] = []
        self.intended: list[str] = []
        self.unfinished: list[str] = []
        self.damaged: list[str] = []
        self.digest = ""
        self.told = ""
        self.lines: dict[str, Lines] = {}

    def counts(self) -> dict[str, int]:
        """The sums that a result has."""
        sums = (sum(each.values()) for each in (self.effects, self.receipts, self.history))
        return dict(zip(("effects", "receipts", "history", "arrivals"), (*sums, self.arrivals), strict=True))


class States:
    """Reads states from one archive."""

    __slots__ = ("_known", "tree")

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._known: dict[tuple[str, bytes], Lines] = {}

    def read(self, folder: str, names: list[str], subject: Subject, tables: str | None, note: Note) -> State:
        """The state in a folder whose files are `names`; `tables` is the export, where there is one."""
        contents = {}
        for name in (*SENDER, *RECEIVER, *OTHERS):
            if name in names and (data := self.tree.read(folder + name)) is not None:
                contents[name] = data
        files = {name: self._lines(folder, name, contents.get(name, b"")) for name in (*SENDER, *RECEIVER)}
        for name in OTHERS:
            if name in contents:
                self._lines(folder, name, contents[name])
        state = State()
        state.lines = files
        state.arrivals = len(files[RECEIVER[1]].of("arrival"))
        of_files = _hash(contents)
        if subject.database:
            rows = self.tables(tables, note) if tables is not None else {}
            state.digest = digest((encode(rows) + of_files).encode("ascii"))
            of_tables(state, rows, files, subject.data["unfinished"])
            if subject.lease_seconds is not None:
                state.uncaused += campaign_leases.broken(rows.get(MOVES, []), subject.lease_seconds)
        else:
            state.digest = of_files
            _of_journals(state, files)
        return state

    def _lines(self, folder: str, name: str, data: bytes) -> Lines:
        if (name, data) not in self._known:
            if len(self._known) > MOST_REMEMBERED:
                self._known.clear()
            found = self._known[name, data] = _read(name, data)
            journal = name.rpartition("/")[2].removesuffix(".jsonl")

            def keep(place: str, sentence: str) -> None:
                found.notes.append((place.removeprefix(folder), sentence))

            if data and journal in SHAPES:
                journals.read(self.tree, folder + name, journal, keep)
        return self._known[name, data]

    def tables(self, path: str, note: Note) -> dict[str, Any]:
        """The tables of one export; none, with findings, where they cannot be worked with."""
        data = self.tree.read(path)
        if data is None:
            return {}
        try:
            document, in_layout = parse_laid_out(data)
        except Malformed as problem:
            note(path, f"cannot be read: {problem}")
            return {}
        if not in_layout:
            note(path, "is not in the study's layout: a line for each member and item, one blank a level")
        return document_tables(document, path, note)


def of_bytes(contents: Mapping[str, bytes | None], subject: Subject) -> State:
    """What the journals among some files hold. Of a database nothing is known here."""
    state = State()
    state.lines = files = {name: _read(name, contents.get(name) or b"") for name in (*SENDER, *RECEIVER)}
    if subject.database:
        of_tables(state, {}, files, subject.data["unfinished"])
    else:
        kept = {name: contents.get(name) for name in (*SENDER, *RECEIVER, *OTHERS)}
        state.digest = _hash({name: data for name, data in kept.items() if data is not None})
        _of_journals(state, files)
    return state


def document_tables(document: dict[str, Any], path: str, note: Note) -> dict[str, Any]:
    """The tables of an export, every row in its shape; a state before the first enqueue has none of them."""
    head = {name: document.get(name) for name in ("format", "format_version")}
    holds(head, {"format": exactly("halt23.dispatch"), "format_version": exactly(1)}, note, f"{path} ")
    found = {name: document[name] for name in TABLES if type(document.get(name)) is list}
    in_order(document, ["format", "format_version", *found], note, path)
    if len(document) != len(found) + len(head) or len(found) not in (0, len(TABLES)):
        note(path, f"has the members {show(list(document))}, expected those of an export")
    for name, rows in found.items():
        if not all([holds(row, TABLES[name], note, f"{path} {name}[{at}]") for at, row in enumerate(rows)]):
            return {}
    return found


def _read(name: str, data: bytes) -> Lines:
    found = Lines(name.rpartition("/")[2])
    *lines, tail = data.split(b"\n")
    found.torn = len(tail)
    for line in lines:
        rest = line[CHECKSUM_END + 2 :]
        try:
            good = line.startswith(OPENING) and line[len(OPENING) : CHECKSUM_END] == digest(rest).encode("ascii")
            record = parse(line) if good else {}
        except Malformed:
            record = {}
        if type(record.get("type")) is str and type(record.get("id")) is str and type(record.get("data")) is dict:
            found.records.append(record)
        else:
            found.damaged += 1
    return found


def _hash(contents: dict[str, bytes]) -> str:
    whole = sha256()
    for name, content in sorted(contents.items()):
        whole.update(f"{name} {len(content)}\n".encode("ascii"))
        whole.update(content)
    return str(whole.hexdigest())


def _of_journals(state: State, files: dict[str, Lines]) -> None:
    intentions, attempts, receipts, history, effects, arrivals = files.values()
    intended = state.intended = [each["id"] for each in intentions.of("intention")]
    have = [each["id"] for each in receipts.of("receipt")]
    done = [each["id"] for each in history.of("history")]
    state.receipts, state.history = counted(have), counted(done)
    state.unfinished = [f"{key} has no receipt" for key in intended if key not in have]
    # A receipt without a result, a mere mark, makes no history record possible.
    answered = [each["id"] for each in receipts.of("receipt") if each["data"].get("result") is not None]
    state.unfinished += [f"{key} has no history record" for key in intended if key in answered and key not in done]
    state.attempts = len(attempts.of("attempt"))
    bodies = {each["id"]: str(each["data"].get("fingerprint")) for each in intentions.of("intention")}
    routes = {each["id"]: str(each["data"].get("route")) for each in intentions.of("intention")}
    order = _operations(effects, bodies)
    state.effects = counted(order)
    state.uncaused = campaign_causes.requests(arrivals.of("arrival"), routes, bodies)
    state.uncaused += campaign_causes.effects(effects.of("effect"), order, bodies)
    state.uncaused += campaign_causes.receipts(receipts.of("receipt"), effects.of("effect"), order)
    state.uncaused += campaign_causes.history(history.of("history"), receipts.of("receipt"), intentions.of("intention"))
    state.repeated = [f"{key} has {count} history records" for key, count in state.history.items() if count > 1]
    state.damaged = [each.name for each in files.values() if each.damaged]
    sender = (
        ("intention", len(intended)), ("attempt", len(attempts.of("attempt"))), ("receipt", len(have)),
        ("history record", len(done)),
    )  # fmt: skip
    state.told = _told(sender, files, list(files.values()))


def of_tables(state: State, tables: dict[str, Any], files: dict[str, Lines], unfinished: list[str]) -> None:
    """Fill a state in from a database's tables and the receiver's journals."""
    rows, moves = tables.get(OUTBOX, []), tables.get(MOVES, [])
    receiver = [files[name] for name in RECEIVER]
    state.intended = [row["id"] for row in rows]
    asking = {row["id"] for row in rows if row["ack_required"]}
    asking |= {move["entity_id"] for move in moves if move["status"] == PENDING and move["reason_code"] == TRANSPORT_OK}
    # A success is no receipt yet where an acknowledgement is waited for.
    receipts = [move for move in moves if move["reason_code"] in RECEIPTS]
    counts = counted(
        [each["entity_id"] for each in receipts if each["reason_code"] != TRANSPORT_OK or each["entity_id"] not in asking]
    )
    state.receipts = {key: min(count, 1) if key in asking else count for key, count in counts.items()}
    state.history = counted([move["entity_id"] for move in moves])
    state.unfinished = [f"{row['id']} is {row['status']}" for row in rows if row["status"] in unfinished]
    bodies = {row["id"]: digest(row["payload"].encode()) for row in rows}
    order = _operations(receiver[0], bodies)
    state.effects = counted(order)
    state.attempts = sum(move["reason_code"] == ATTEMPT for move in moves)
    state.ended = {row["id"]: row["status"] for row in rows if row["status"] in ("dead_letter", "expired")}
    routes = {row["id"]: _path(row["deliver_to"]) for row in rows}
    # A row that was deleted and made anew says nothing of the body before.
    enqueued = counted([move["entity_id"] for move in moves if move["previous_status"] is None])
    bodies = {key: body for key, body in bodies.items() if enqueued.get(key, 0) < 2}
    state.uncaused = campaign_causes.requests(receiver[1].of("arrival"), routes, bodies)
    state.uncaused += campaign_causes.effects(receiver[0].of("effect"), order, bodies)
    state.uncaused += campaign_causes.moves(rows, moves) + campaign_causes.lanes(rows, order)
    state.damaged = [each.name for each in receiver if each.damaged]
    status = ", ".join([f"{row['status']} (attempt {row['attempt']})" for row in rows])
    told = _told((("row", len(rows)), ("transition", len(moves))), files, receiver)
    state.told = told + (f"; {status}" if status else "")


def _path(route: str) -> str:
    """What stands behind the host of a URL; any other route is as it is."""
    before, found, rest = route.partition("://")
    return "/" + rest.partition("/")[2].partition("#")[0] if found else before


def _operations(effects: Lines, bodies: dict[str, str]) -> list[str]:
    """The operation of each effect: whose body it was, and else whose key."""
    owners = {body: key for key, body in bodies.items()}
    found = []
    for each in effects.of("effect"):
        body, key = each["data"].get("fingerprint"), each["data"].get("key")
        found.append(owners.get(str(body)) or str(key or body or each["id"]))
    return found


def counted(keys: list[str]) -> dict[str, int]:
    """How often each key occurs, in the order in which they came first."""
    found: dict[str, int] = {}
    for key in keys:
        found[key] = found.get(key, 0) + 1
    return found


def _told(sender: tuple[tuple[str, int], ...], files: dict[str, Lines], told_of: list[Lines]) -> str:
    effects, arrivals = (files[name] for name in RECEIVER)
    receiver = (
        ("arrival", len(arrivals.of("arrival"))), ("effect", len(effects.of("effect"))), ("answer", len(arrivals.of("answer"))),
    )  # fmt: skip
    torn = [f"{each.name} ends in {each.torn} torn bytes" for each in told_of if each.torn]
    torn += [f"{each.name} has {each.damaged} damaged lines" for each in told_of if each.damaged]
    return "; ".join([f"sender: {_words(sender)}", f"receiver: {_words(receiver)}", *torn])


def _words(counts: tuple[tuple[str, int], ...]) -> str:
    return ", ".join([f"{number} {noun if number == 1 else _many(noun)}" for noun, number in counts])


def _many(noun: str) -> str:
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"

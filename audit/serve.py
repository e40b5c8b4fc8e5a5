"""Receivers, played one incarnation after the other over their journals: arrivals, effects, keys, answers and queries.

Each arrival is served as its kind of receiver serves it (`service`), with what was durable, remembered or in flight at that
place in the order of the journal; what it must have written is taken, and what it answered is held against that. Which
incarnation an arrival came to is known from the step of the request. An answer may be missing only for what was in flight
when a receiver died; what the receiver had done by then follows from its fault point.
"""

from __future__ import annotations

from audit.case import RECEIVER, died, label, option
from audit.findings import show
from audit.kinds import kind_of, numeric
from audit.plan import flipped, folder_at
from audit.player import Disk, Lost, Player
from audit.service import Service
from audit.turns import Turns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.case import Case, Ran, Store
    from audit.journals import Record
    from audit.kinds import Known
    from audit.requests import Inquiry, Traffic

DAMAGED = 14


def check(case: Case, traffic: Traffic) -> None:
    """Play every receiver of the scenario."""
    spans = {arrival.place: request.span for request in traffic.requests for arrival in request.arrivals}
    asked = {inquiry.query.place: inquiry for inquiry in traffic.inquiries if inquiry.query is not None}
    for store in case.having(RECEIVER):
        _stamp(store, spans, asked)
        disk = Disk(store)
        receivers = store.ran(RECEIVER)
        try:
            for at, process in enumerate(receivers):
                until = receivers[at + 1]["step"] if at + 1 < len(receivers) else None
                if not _refuses(case, store, process):
                    _Incarnation(case, Player(disk, process, case.first), asked, until).play()
        except Lost:
            continue
        disk.leftovers(case.first.at(None))


def _stamp(store: Store, spans: dict[str, tuple[int, int] | None], asked: dict[str, Inquiry]) -> None:
    """Every record of the log of arrivals gets the steps between which it was written."""
    by_id: dict[str, tuple[int, int] | None] = {}
    for record in store["arrivals"].records:
        if record.type == "arrival":
            by_id[record.id] = record.span = spans.get(record.place)
        elif record.type == "answer":
            record.span = by_id.get(record.id)
        elif record.place in asked:
            process = asked[record.place].process
            record.span = (process["step"], process.ends)


def _refuses(case: Case, store: Store, process: Ran) -> bool:
    """Whether the receiver finds a damaged journal; then, and only then, it ends with 14."""
    steps = case.plan["steps"]
    folder = folder_at(steps, option(process, "--dir") or "", process["step"])
    damaged = [path for path in flipped(steps, process["step"]) if path.startswith(folder + "/")]
    code = process["exit_code"]
    if bool(damaged) != (code == DAMAGED):
        words = f"{show(damaged)} was damaged then" if damaged else "no journal was damaged then"
        case.note(f"processes.json {label(process)}.exit_code", f"is {show(code)}, but {words}")
    if damaged and process["ready"] is not None:
        case.note(
            f"processes.json {label(process)}.ready", f"is {show(process['ready'])}, but {show(damaged)} was damaged then"
        )
    return bool(damaged) or code == DAMAGED


class _Incarnation:
    """One incarnation of a receiver."""

    def __init__(self, case: Case, player: Player, asked: dict[str, Inquiry], until: int | None) -> None:
        self.case, self.player, self.disk, self.process = case, player, player.disk, player.process
        self.note, self.asked, self.until = player.note, asked, until
        self.in_flight: dict[str, tuple[Record, Known | None]] = {}
        self.senders: list[str] = []
        self.until_step: dict[int, dict[str, Record]] = {}
        self.turns = Turns()

    def play(self) -> None:
        kind = kind_of(self.process)
        if kind is None:
            self.note(f"processes.json {label(self.process)}.command", "starts a kind of receiver that the audit does not know")
            raise Lost
        self.service = Service(self.case, self.player, kind)
        alive = self.player.play(self._program)
        if alive and not died(self.process):
            for arrival, _ in self.in_flight.values():
                self.note(arrival.place, f"{show(arrival.id)} was never answered, but {label(self.process)} did not die")
        late = None if alive else self._mine()
        if late is not None and late.span is not None and self.until is not None and late.span[1] < self.until:
            words = f"halted at {self.player.armed()}, but its records do not bring it there"
            self.note(
                f"processes.json {label(self.process)}", f"{words}: {late.place} is of the same time and comes after that"
            )

    def _program(self) -> None:
        for name in self.process.writes():
            self.player.open(name)
        while record := self._mine():
            self.player.step = max(self.player.step, record.span[0] if record.span else 0)
            if record.type == "arrival":
                self._arrival(record)
            elif record.type == "query":
                self._query(record)
            else:
                self._answer(record)
        if self.player.armed():
            self._die()

    def _mine(self) -> Record | None:
        """The next record of the log, if it is of this incarnation."""
        record = self.disk.next("arrivals")
        late = record is not None and record.span is not None and self.until is not None and record.span[0] >= self.until
        return None if late else record

    def _arrival(self, record: Record) -> None:
        self._turn(record, None)
        self.player.write("arrivals", "arrival", record.id, record.span or (0, 0))
        self.senders.append(record.data["sender"] or "")
        self._outlived(record)
        gate = int(numeric(self.process, "--gate", 0))
        if len(self.senders) <= gate and self.senders[-2:] != sorted(self.senders[-2:]):
            self.note(f"{record.place} data.sender", f"is {show(record.data['sender'])}, but the gate lets in by name")
        seen = self.service.came(record)
        self.in_flight[record.id] = (record, seen)
        if record.span:
            self.until_step.setdefault(record.span[1], {})[record.id] = record
        self.turns.came(record.id, record.data["key"], self.service.waits_for(record, seen))
        if self.service.arrived >= self.service.crowd:
            self.turns.worked()

    def _turn(self, record: Record, name: str | None) -> None:
        """What is logged was sent while this receiver ran, and nobody is passed over by it."""
        if record.span and not (self.process["step"] < record.span[1] and record.span[0] < self.process.ends):
            self.note(record.place, f"is of step {record.span[0]}, when {label(self.process)} did not run")
        first = self.turns.before(name)
        if first is not None:
            self.note(record.place, f"stands before the answer to {show(first)}, whose turn it was")

    def _answer(self, record: Record) -> None:
        if record.id not in self.in_flight:
            self.note(record.place, f"an answer to {show(record.id)}, which is not in flight here")
            raise Lost
        self._turn(record, record.id)
        arrival, seen = self.in_flight[record.id]
        decision = self.service.serve(arrival, seen)
        del self.in_flight[record.id]
        self.service.left(arrival)
        if arrival.span:
            self.until_step.get(arrival.span[1], {}).pop(record.id, None)
        self.turns.answered(record.id, arrival.data["key"])
        self.service.held(record, decision)
        self.player.write("arrivals", "answer", record.id, record.span or (0, 0))

    def _outlived(self, record: Record) -> None:
        """Whose sender was over before this request was sent has been answered; each that was not is told once."""
        for step in [step for step in self.until_step if record.span and step < record.span[0]]:
            for other in self.until_step.pop(step).values():
                self.note(other.place, f"{show(other.id)} was never answered, but its receiver lived to see {show(record.id)}")

    def _query(self, record: Record) -> None:
        """A status query tells what was applied by then."""
        self._turn(record, None)
        known = [effect for effect in self.disk.taken["effects"] if effect.data["key"] == record.data["key"]]
        wanted = "applied" if known else "not_applied"
        if not self.service.kind.tells:
            self.note(record.place, f"a receiver of the kind {self.service.kind.name} answers no status query")
        if record.data["answer"] != wanted:
            self.note(f"{record.place} data.answer", f"is {record.data['answer']}, but by then it was {wanted}")
        if known and record.place in self.asked:
            self.asked[record.place].effect = known[-1]
        self.player.write("arrivals", "query", record.id, record.span or (0, 0))

    def _die(self) -> None:
        """The log ends here for a receiver that halted: it died serving what was in flight, or before it logged the next."""
        for name in dict.fromkeys([*self.turns.order(), *self.in_flight]):
            arrival, seen = self.in_flight[name]
            self.service.serve(arrival, seen)
            self.player.write("arrivals", "answer", arrival.id, arrival.span or (0, 0))
        asked = self.player.armed().startswith("query.")
        self.player.write("arrivals", "query" if asked else "arrival", None, (0, 0), fits=lambda record: False)

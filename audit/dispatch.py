"""Producers and dispatchers, played one after the other over the journals of their outbox.

Each pass goes through the intentions as a dispatcher of its policy does, and takes the records that it must have written:
attempts, outcomes, inquiries, receipts, history. So every record has its process, every open attempt its death, every
summary and exit code its tally; no attempt is made before it is due, while another holds the lock, or, under policy
`reconcile`, while any earlier one is in doubt. Records against each other are held in `outbox`, against the receiver in `wire`.

Without `--now` the clock is the machine's, which the archive does not tell: such a pass counts as later than any `not_before`.
"""

from __future__ import annotations

from audit.case import DISPATCHER, PRODUCER, died, label, option
from audit.findings import show
from audit.hashing import digest
from audit.player import Died, Disk, Lost, Player
from audit.policies import DEFAULT, POLICIES
from audit.requests import Inquiry
from audit.shapes import number_in, payload_bytes
from audit.summaries import FATES, PRODUCED, hold_silence, hold_summary, printed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.case import Case, Ran
    from audit.findings import Note
    from audit.journals import Record
    from audit.requests import Request, Traffic

NEVER_SENT = ("connection_refused", "connect_timeout", "unreachable")
LOCKED_OUT = 13


def check(case: Case, traffic: Traffic) -> None:
    """Play every producer and every dispatcher of the scenario."""
    by_place = {request.record.place: request for request in traffic.requests}
    for store in case.stores.values():
        if not (store.ran(PRODUCER) or store.ran(DISPATCHER)):
            continue
        disk = Disk(store)
        try:
            for process in store.processes:
                if process.module == PRODUCER:
                    _producer(Player(disk, process, case.first))
                elif _turned_away(process, store.processes, case.first.at(process["step"])):
                    hold_silence(process, case.note, "a process that was turned away")
                else:
                    _Pass(Player(disk, process, case.first), by_place, traffic).play()
        except Lost:
            continue
        disk.leftovers(case.first.at(None))


def _turned_away(process: Ran, others: list[Ran], note: Note) -> bool:
    """Whether another dispatcher holds the lock; then, and only then, the exit code is 13."""
    holders = [other for other in others if other.module == DISPATCHER and other.alive(process["step"])]
    code, place = process["exit_code"], f"processes.json {label(process)}.exit_code"
    if holders and code != LOCKED_OUT:
        note(place, f"is {show(code)}, but {label(holders[0])} held the lock: expected {LOCKED_OUT}")
    if code == LOCKED_OUT and not holders:
        note(place, "is 13, lock held, but no other dispatcher was there to hold it")
    return bool(holders) or code == LOCKED_OUT


def _producer(player: Player) -> None:
    process, key = player.process, option(player.process, "--key") or ""
    created = False

    def program() -> None:
        nonlocal created
        player.open("intentions")
        if player.disk.has("intentions", "intention", key) is None:
            player.write("intentions", "intention", key, (process["step"], process.ends))
            created = True

    alive = player.play(program)
    if not alive or died(process):
        hold_silence(process, player.note)
    elif process["exit_code"] == 0:
        said, wanted = printed(process, PRODUCED, player.note), {"intention": key, "created": created}
        if said is not None and said != wanted:
            player.note(f"{player.place}.stdout", f"is {show(said)}, expected {show(wanted)}")
    else:
        hold_silence(process, player.note, "a producer that was refused")


class _Pass:
    """One pass of one dispatcher."""

    def __init__(self, player: Player, requests: dict[str, Request], traffic: Traffic) -> None:
        process = player.process
        self.player, self.disk, self.process, self.note = player, player.disk, process, player.note
        self.requests, self.traffic = requests, traffic
        self.policy = POLICIES.get(option(process, "--policy") or DEFAULT, POLICIES[DEFAULT])
        now = number_in(option(process, "--now"))
        self.now = float("inf") if now is None else now
        self.span = (process["step"], process.ends)
        self.tally = dict.fromkeys((*FATES, "intentions", "already_delivered", "waiting", "not_attempted", "history_added"), 0)
        self.gone = False

    def play(self) -> None:
        alive = self.player.play(self._program)
        if not alive or died(self.process):
            hold_silence(self.process, self.note)
        else:
            hold_summary(self.process, self.tally, self.note)

    def _program(self) -> None:
        for name in self.process.writes():
            self.player.open(name)
        for intention in list(self.disk.taken["intentions"]):
            self.tally["intentions"] += 1
            receipt = self.disk.has("receipts", "receipt", intention.id)
            if receipt is not None:
                self.tally["already_delivered"] += 1
            elif self.gone:
                self.tally["not_attempted"] += 1
                continue
            else:
                receipt = self._deliver(intention)
            if receipt is None or receipt.data["result"] is None:
                continue
            if self.disk.has("history", "history", intention.id) is None:
                self.player.write("history", "history", intention.id, self.span)
                self.tally["history_added"] += 1

    def _deliver(self, intention: Record) -> Record | None:
        attempts: list[Record] = []
        while attempt := self.disk.has("attempts", "attempt", f"{intention.id}#{len(attempts) + 1}"):
            attempts.append(attempt)
        closed = self.disk.has("attempts", "outcome", attempts[-1].id) if attempts else None
        if closed is not None and closed.data["not_before"] is not None and self.now < closed.data["not_before"]:
            self.tally["waiting"] += 1
            return None
        for attempt in attempts if self.policy.reconciles else []:
            if not self._in_doubt(attempt):
                continue
            answer, receipt = self._ask(intention, attempt)
            if answer != "not_applied":
                self.tally["unknown" if receipt is None else "delivered"] += 1
                return receipt
        return self._attempt(intention, len(attempts) + 1)

    def _in_doubt(self, attempt: Record) -> bool:
        """Whether an attempt left, for all that its sender knows, and no inquiry has said since that it was not applied."""
        closed = self.disk.has("attempts", "outcome", attempt.id)
        if closed is not None and closed.data["outcome"] == "did_not_happen":
            return False
        asked = self._asked(attempt)
        return not asked or asked[-1].data["answer"] != "not_applied"

    def _asked(self, attempt: Record) -> list[Record]:
        """The inquiries about an attempt so far."""
        found: list[Record] = []
        while inquiry := self.disk.has("attempts", "inquiry", f"{attempt.id}?{len(found) + 1}"):
            found.append(inquiry)
        return found

    def _ask(self, intention: Record, attempt: Record) -> tuple[str, Record | None]:
        """Ask about the attempt in doubt."""
        self.player.reach("inquiry.before")
        inquiry = Inquiry(self.requests[attempt.place], self.process)
        self.traffic.inquiries.append(inquiry)
        self.traffic.sent.append(inquiry)

        def hold(record: Record) -> None:
            inquiry.record = record

        name = f"{attempt.id}?{len(self._asked(attempt)) + 1}"
        record = self.player.write("attempts", "inquiry", name, self.span, hold=hold)
        if record.data["answer"] != "applied":
            return record.data["answer"], None
        return "applied", self._receipt(intention, attempt, "status_query")

    def _receipt(self, intention: Record, attempt: Record, via: str) -> Record:
        """Write the receipt of this attempt."""

        def fits(record: Record) -> bool:
            return bool(record.data["attempt"] == attempt.data["number"] and record.data["via"] == via)

        return self.player.write("receipts", "receipt", intention.id, self.span, fits=fits)

    def _attempt(self, intention: Record, number: int) -> Record | None:
        player = self.player

        def hold(record: Record) -> None:
            self.requests[record.place].process = self.process
            self._identity(intention, record, self.requests[record.place])

        attempt = player.write("attempts", "attempt", f"{intention.id}#{number}", self.span, hold=hold)
        request = self.requests[attempt.place]
        marked = self._receipt(intention, attempt, "mark") if self.policy.marks else None
        request.died_at = "send.before"
        player.reach("send.before")
        request.died_at = ""
        request.left = True
        self.traffic.sent.append(request)
        if marked is not None:
            if player.dies_at("send.response"):
                request.in_hand = True
                raise Died
            self.tally["delivered"] += 1
            return marked
        if request.closed is not None and self.disk.next("attempts") is request.closed:
            self._failed(request.closed)
            return None
        if request.receipt is None or self.disk.next("receipts") is not request.receipt:
            self._left_open(intention, attempt, request)
        player.reach("send.response")
        receipt = self._receipt(intention, attempt, "response")
        self.tally["delivered"] += 1
        return receipt

    def _failed(self, closed: Record) -> None:
        data = closed.data
        if data["status"] is not None:
            self.player.reach("send.response")
        self.player.write("attempts", "outcome", closed.id, self.span)
        reason = "unknown" if data["outcome"] == "may_have_happened" else data["reason"]
        self.tally[reason if reason in FATES else "unavailable"] += 1
        self.gone = reason in NEVER_SENT

    def _left_open(self, intention: Record, attempt: Record, request: Request) -> None:
        """Neither outcome nor receipt: the process died here, or the records are wrong."""
        player = self.player
        request.died_at = player.armed() or "a kill"
        for kind, journal, name in (("receipt", "receipts", intention.id), ("outcome", "attempts", attempt.id)):
            if player.dies_at(f"{kind}.append.before") or player.dies_at(f"{kind}.append.torn"):
                request.in_hand = kind == "receipt"
                player.write(journal, kind, name, self.span)
        if player.dies_at("send.response"):
            request.in_hand = True
        elif self.process["signal"] is None:
            words = f"halted at {player.armed()}" if player.armed() else "did not die"
            self.note(attempt.place, f"the {request.words} has neither outcome nor receipt, but {label(self.process)} {words}")
            raise Lost
        raise Died

    def _identity(self, intention: Record, attempt: Record, request: Request) -> None:
        """Key and bytes of an attempt are those that the policy makes of the intention."""
        data, number = attempt.data, attempt.data["number"]
        key = self.policy.key(intention.data["key"], number)
        if data["key"] != key:
            self.note(f"{attempt.place} data.key", f"is {show(data['key'])}, but policy {self.policy.name} sends {show(key)}")
        body = self.policy.body(payload_bytes(intention.data["body"]) or b"", number)
        if digest(body) != data["fingerprint"]:
            place = f"{attempt.place} data.fingerprint"
            self.note(place, f"is {data['fingerprint']}, which is not of the bytes that policy {self.policy.name} sends")
            return
        request.body = body

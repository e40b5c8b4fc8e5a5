"""What a receiver does between an arrival and its answer, and what the answer must be.

A `Service` is that part of one incarnation that knows keys: what was durable and remembered when a request came, who is in
flight under the same key, and so which outcome is due (`kinds`), with which effect and which record of the key, taken on the
way. Nothing of it is read off the answer that is judged. In which order requests go on is held in `serve` and `turns`.

No scenario breaks the storage of a receiver, so no answer is `failed`.
"""

from __future__ import annotations

from audit.case import option
from audit.findings import show
from audit.kinds import Decision, Known, Memory, numeric
from audit.plan import written
from audit.shapes import number_in, payload_digest
from audit.turns import KEY, WORK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.case import Case
    from audit.journals import Record
    from audit.kinds import Kind
    from audit.player import Player


OPERATIONS, EFFECTS = "/operations", "/effects"


class Service:
    """How one incarnation of a receiver serves what arrives."""

    def __init__(self, case: Case, player: Player, kind: Kind) -> None:
        self.steps = case.plan["steps"]
        self.player, self.disk, self.process, self.kind = player, player.disk, player.process, kind
        self.memory = Memory(self.process, kind, self.disk.taken["effects"], self.disk.taken["keys"])
        self.arrived = 0
        self.under: dict[str | None, dict[str, None]] = {}
        self.crowd = numeric(self.process, "--work-until", 0)

    def came(self, arrival: Record) -> Known | None:
        """A request has come; what is known of its key then."""
        key = arrival.data["key"]
        self.arrived += 1
        self.under.setdefault(key, {})[arrival.id] = None
        return self.memory.find(key) if key is not None else None

    def left(self, arrival: Record) -> None:
        """A request was answered."""
        self.under[arrival.data["key"]].pop(arrival.id, None)

    def waits_for(self, arrival: Record, seen: Known | None) -> str:
        """What a request waits for; empty where it is answered at once."""
        key = arrival.data["key"]
        if arrival.data["fingerprint"] is None or (self.kind.looks_up and key is None):
            return ""
        if self.kind.waits and self._busy(arrival):
            return "" if option(self.process, "--in-flight") == "reject" else KEY
        if not self.kind.works or self.arrived >= self.crowd:
            return ""
        return WORK if self.memory.decide(arrival, seen, None).outcome == "applied" else ""

    def serve(self, arrival: Record, seen: Known | None) -> Decision:
        """What happens between an arrival and its answer; the effect and the key are taken on the way."""
        data, path = arrival.data, arrival.data["route"].partition("?")[0]
        if path != OPERATIONS:
            return Decision("refused", *((405, "method_not_allowed") if path == EFFECTS else (404, "not_found")))
        if data["fingerprint"] is None:
            return Decision("refused", 400, "body_incomplete")
        if self.kind.looks_up and data["key"] is None:
            return Decision("refused", 400, "key_missing")
        if self.kind.waits and self._busy(arrival):
            if option(self.process, "--in-flight") == "reject":
                return Decision("refused", 409, "key_in_flight")
            said = f"{show(arrival.id)} was served while another request under its key was in flight"
            self.player.note(arrival.place, said)
        known = seen if self.kind.early else self.memory.find(data["key"]) if data["key"] is not None else None
        clock = self._clock()
        decision = self.memory.decide(arrival, known, clock)
        if decision.outcome == "applied":
            if self.kind.works and self.arrived < self.crowd:
                said = f"{show(arrival.id)} was applied before all requests that it was to wait for had come"
                self.player.note(arrival.place, said)
            decision.known = self._apply(arrival, clock)
        return decision

    def _busy(self, arrival: Record) -> bool:
        """Whether an earlier request under the same key is being worked on."""
        return next(iter(self.under[arrival.data["key"]])) != arrival.id

    def _clock(self) -> float | None:
        """The number in the receiver's clock file at this time."""
        path = option(self.process, "--clock")
        if not self.kind.forgets or path is None:
            return None
        latest = self.disk.taken["arrivals"][-1].span
        return number_in(written(self.steps, latest[0] if latest else 0).get(path))

    def _apply(self, arrival: Record, clock: float | None) -> Known:
        key = arrival.data["key"]
        at = len(self.disk.taken["effects"]) + 1
        identity = key if self.kind.by_key else f"effect-{at}"
        span = arrival.span or (0, 0)
        if self.kind.key_first:
            self._key(key, identity, arrival)

        def fits(record: Record) -> bool:
            return bool(record.data["arrival"] == arrival.id)

        def hold(effect: Record) -> None:
            wanted: dict[str, Any] = {
                "key": key if self.kind.keeps else None,
                "fingerprint": arrival.data["fingerprint"],
                "status": 200,
            }
            if self.kind.forgets:
                wanted["at_seconds"] = clock
            self._differs(effect, wanted, "a fresh effect of this arrival has")

        effect = self.player.write("effects", "effect", identity, span, fits=fits, hold=hold)
        if self.kind.key_first is False:
            self._key(key, identity, arrival)
        return Known(effect.id, effect.data)

    def _key(self, key: str, effect: str, arrival: Record) -> None:
        """Take the record of a key, which repeats the effect that it stands for, done or still to be done."""
        number_of = int(effect.rpartition("-")[2])
        result = f'{{"answer":"The counter is now {number_of}.","counter":{number_of}}}'
        wanted = {"effect": effect, "fingerprint": arrival.data["fingerprint"], "status": 200}
        wanted["result"] = {"content": result, "encoding": "utf-8"}
        span = arrival.span or (0, 0)
        self.player.write("keys", "key", key, span, hold=lambda record: self._differs(record, wanted, "its effect has"))

    def _differs(self, record: Record, wanted: dict[str, Any], because: str) -> None:
        for member, value in wanted.items():
            if record.data.get(member) != value:
                said = f"is {show(record.data.get(member))}, but {because} {show(value)}"
                self.player.note(f"{record.place} data.{member}", said)

    def held(self, answer: Record, decision: Decision) -> None:
        """An answer says what its kind of receiver has to say."""
        known = decision.known
        wanted = {"outcome": decision.outcome, "reason": decision.reason, "status": decision.status}
        wanted["effect"] = known.effect if known else None
        if known is not None:
            wanted["result_sha256"] = payload_digest(known.result)
        self._differs(answer, wanted, f"by then a receiver of the kind {self.kind.name} answers")

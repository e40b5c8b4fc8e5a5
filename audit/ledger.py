"""The receiver's side: arrivals, answers and effects, each against the one it rests on.

Arrivals and effects are numbered without a gap; every answer belongs to an earlier arrival, every effect to the
arrival that caused it, and an answer that applied or replayed repeats its effect's status and result. What
each kind of receiver does with a key that it has seen is held in `serve`, which request an arrival was in `wire`.
"""

from __future__ import annotations

from audit.case import RECEIVER, died
from audit.findings import show
from audit.kinds import kind_of, numeric
from audit.shapes import payload_bytes, payload_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.case import Case, Store
    from audit.findings import Note
    from audit.journals import Record
    from audit.kinds import Kind

REASONS: dict[str, tuple[str, tuple[int, ...]]] = {
    "body_differs": ("conflict", (409, 422)),
    "key_missing": ("refused", (400,)),
    "key_empty": ("refused", (400,)),
    "key_overlong": ("refused", (400,)),
    "key_repeated": ("refused", (400,)),
    "key_not_ascii": ("refused", (400,)),
    "body_too_large": ("refused", (413,)),
    "body_incomplete": ("refused", (400,)),
    "method_not_allowed": ("refused", (405,)),
    "not_found": ("refused", (404,)),
    "key_in_flight": ("refused", (409,)),
    "registry_full": ("refused", (429,)),
    "storage_full": ("failed", (507,)),
    "storage_failed": ("failed", (503,)),
}


def check(case: Case) -> None:
    """Hold every receiver's journals."""
    for store in case.stores.values():
        if store.ran(RECEIVER):
            _arrivals(store, case.note)
            _effects(store, case.note)
            _answers(store, case.note)
            for process in store.ran(RECEIVER):
                if process["stdout"]:
                    case.note(f"{process['process']}.stdout", f"is {show(process['stdout'])}, expected nothing")


def kind(store: Store) -> Kind | None:
    """The one kind of receiver of this store; None where it is not known."""
    kinds = {process.kind(): kind_of(process) for process in store.ran(RECEIVER)}
    return next(iter(kinds.values())) if len(kinds) == 1 else None


def _arrivals(store: Store, note: Note) -> None:
    """Arrivals are numbered, and each is answered unless a receiver died."""
    journal = store["arrivals"]
    answered = journal.by_id("answer")
    deaths = sum(died(process) for process in store.ran(RECEIVER))
    known: set[str] = set()
    queries = 0
    for record in journal.records:
        if record.type == "query":
            queries += 1
            if record.id != f"query-{queries}":
                note(f"{record.place} id", f"is {show(record.id)}, expected 'query-{queries}'")
        elif record.type == "arrival":
            known.add(record.id)
            if record.id != f"arrival-{len(known)}":
                note(f"{record.place} id", f"is {show(record.id)}, expected 'arrival-{len(known)}'")
            if record.id not in answered and not deaths:
                note(record.place, f"{show(record.id)} was never answered, and no receiver died")
        elif record.id not in known:
            note(f"{record.place} id", f"the answer to {show(record.id)} has no arrival before it")


def _effects(store: Store, note: Note) -> None:
    """Effects are numbered, have the result of their number, and name the arrival that caused them."""
    arrivals = store["arrivals"].by_id("arrival")
    answers = store["arrivals"].by_id("answer")
    known = kind(store)
    causes: set[str] = set()
    for number, record in enumerate(store["effects"].records, 1):
        data = record.data
        if data["number"] != number:
            note(f"{record.place} data.number", f"is {data['number']}, expected {number}")
        wanted = f'{{"answer":"The counter is now {number}.","counter":{number}}}'
        if payload_bytes(data["result"]) != wanted.encode():
            note(f"{record.place} data.result", f"is {show(data['result'])}, expected the content {wanted}")
        if known is not None:
            name = data["key"] if known.by_key else f"effect-{number}"
            if record.id != name or (data["key"] is not None and not known.keeps):
                note(f"{record.place} id", f"{show(record.id)} with key {show(data['key'])} does not fit this receiver")
        cause = arrivals.get(data["arrival"])
        if cause is None:
            note(f"{record.place} data.arrival", f"there is no arrival {show(data['arrival'])} for this effect")
            continue
        if data["arrival"] in causes:
            note(f"{record.place} data.arrival", f"{show(data['arrival'])} caused an effect already")
        causes.add(data["arrival"])
        if data["fingerprint"] != cause.data["fingerprint"]:
            note(f"{record.place} data.fingerprint", f"is not the one of {cause.place}, its arrival")
        if known is not None and known.keeps and data["key"] != cause.data["key"]:
            note(f"{record.place} data.key", f"is {show(data['key'])}, but {cause.place}, its arrival, has another")
        answer = answers.get(data["arrival"])
        if answer is not None:
            _caused(record, answer, note)


def _caused(effect: Record, answer: Record, note: Note) -> None:
    if answer.data["outcome"] != "applied" or answer.data["effect"] != effect.id:
        said = f"{answer.data['outcome']}, effect {show(answer.data['effect'])}"
        note(effect.place, f"the answer at {answer.place} to its arrival says {said}, expected applied, {show(effect.id)}")


def _answers(store: Store, note: Note) -> None:
    """An answer gives what its effect holds, or says why there is none."""
    arrivals = store["arrivals"].by_id("arrival")
    effects = store["effects"].by_id("effect")
    known, registry = kind(store), store["keys"].records
    status = next((int(numeric(process, "--conflict-status", 409)) for process in store.ran(RECEIVER)), 409)
    for record in store["arrivals"].of("answer"):
        data = record.data
        outcome, arrival, effect = data["outcome"], arrivals.get(record.id), effects.get(data["effect"])
        promised = known is not None and known.key_first and any(key.data["effect"] == data["effect"] for key in registry)
        if data["effect"] is not None and effect is None and not promised:
            note(f"{record.place} data.effect", f"there is no effect {show(data['effect'])}")
        hold_answer(record, status, note)
        if outcome in ("applied", "replayed"):
            if effect is not None and arrival is not None:
                _given(record, arrival, effect, note)
        elif outcome == "conflict" and known is not None and known.by_key and arrival is not None:
            _contradicted(record, arrival, effects.get(arrival.data["key"]), note)


def hold_answer(record: Record, conflict: int | None, note: Note) -> None:
    """Outcome, reason, status and effect of an answer go together; `conflict` is the status that a conflict has here."""
    data, outcome = record.data, record.data["outcome"]
    success = outcome in ("applied", "replayed")
    if (data["effect"] is not None) != success:
        note(f"{record.place} data.effect", f"is {show(data['effect'])}, but the answer says {outcome}")
    if success:
        if data["reason"] is not None:
            note(f"{record.place} data.reason", f"is {show(data['reason'])}, expected null")
        return
    wanted, statuses = REASONS.get(data["reason"], ("", ()))
    if data["reason"] == "body_differs" and conflict is not None:
        statuses = (conflict,)
    if wanted != outcome:
        note(f"{record.place} data.reason", f"{show(data['reason'])} is no reason for {outcome}")
    elif data["status"] not in statuses:
        note(f"{record.place} data.status", f"is {data['status']}, expected {show(statuses)} for {data['reason']}")


def _given(record: Record, arrival: Record, effect: Record, note: Note) -> None:
    data = record.data
    if data["status"] != effect.data["status"]:
        note(f"{record.place} data.status", f"is {data['status']}, but the effect has {effect.data['status']}")
    result = payload_digest(effect.data["result"])
    if data["result_sha256"] != result:
        note(f"{record.place} data.result_sha256", f"is {show(data['result_sha256'])}, but the effect's result has {result}")
    if (data["outcome"] == "applied") != (effect.data["arrival"] == record.id):
        cause = show(effect.data["arrival"])
        note(f"{record.place} data.outcome", f"is {data['outcome']} for {show(record.id)}, but {cause} caused the effect")
    if arrival.data["fingerprint"] != effect.data["fingerprint"]:
        note(record.place, f"the arrival at {arrival.place} has another body than the effect that it was given")
    if effect.data["key"] is not None and effect.data["key"] != arrival.data["key"]:
        note(record.place, f"the arrival at {arrival.place} has another key than the effect that it was given")


def _contradicted(record: Record, arrival: Record, effect: Record | None, note: Note) -> None:
    if effect is None:
        note(record.place, f"a conflict, but there is no effect with the key {show(arrival.data['key'])}")
    elif effect.data["fingerprint"] == arrival.data["fingerprint"]:
        note(record.place, "a conflict, but the arrival has the same body as the effect")

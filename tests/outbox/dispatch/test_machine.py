"""The books against a model: any order of claims that overlap, outcomes that come late or never, acknowledgements, forced
retries and purges; and the law of the edges.

A longer campaign by hand: `HALT23_MACHINE_EXAMPLES=5000 python -m pytest tests/outbox/dispatch/test_machine.py`.
"""

import asyncio
import itertools
import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy import Connection, text

from outbox.dispatch import (
    BadValue,
    DeliveryOptions,
    IllegalEdge,
    NoSuchDispatch,
    StateDB,
    ack_dispatch,
    enqueue_dispatch,
    purge_dispatch,
    purge_dispatches,
    retry_dispatch,
)
from outbox.dispatch.claim import Claim, claim
from outbox.dispatch.delivery import deliver
from outbox.dispatch.edges import EDGES, REASONS, STATUSES, Edge, edge
from outbox.dispatch.settle import SENT, SendResult, failed, settle
from outbox.dispatch.transitions import apply
from tests.outbox.dispatch.programs import identity

T = TypeVar("T")

# The tables of the record (shared/seeds), by hand: from, to, reason code, source.
ENQUEUED = (None, "pending", "dispatch.pending.enqueued", "system")
CLAIMED = ("pending", "delivering", "dispatch.delivering.attempt", "system")
TAKEN_OVER = ("delivering", "delivering", "dispatch.delivering.attempt", "system")
DELIVERED = ("delivering", "delivered", "dispatch.delivered.transport_ok", "system")
UNACKNOWLEDGED = ("delivering", "pending", "dispatch.delivered.transport_ok", "system")
BACKED_OFF = ("delivering", "pending", "dispatch.pending.retry_backoff", "system")
USED_UP = ("delivering", "dead_letter", "dispatch.dead_letter.max_attempts", "system")
NEVER_ACKNOWLEDGED = ("delivering", "dead_letter", "dispatch.dead_letter.ack_timeout", "system")
RECORDED = {
    ENQUEUED,
    CLAIMED,
    TAKEN_OVER,
    DELIVERED,
    UNACKNOWLEDGED,
    BACKED_OFF,
    USED_UP,
    NEVER_ACKNOWLEDGED,
    *((each, "expired", "dispatch.expired.deadline", "system") for each in ("pending", "delivering")),
    *((each, "acked", "dispatch.acked.consumer", "system") for each in ("pending", "delivering")),
    *((each, "pending", "dispatch.pending.retry_backoff", "operator") for each in ("dead_letter", "expired")),
}
Move = tuple[str | None, str, str, str]

# The law of the edges.


def test_the_graph_is_the_one_of_the_record() -> None:
    assert {(each.previous, each.status, each.reason, each.source) for each in EDGES} == RECORDED


def test_of_all_moves_exactly_the_edges_of_the_graph_are_accepted() -> None:
    previous = (None, *STATUSES, "sent", "")
    sources = ("system", "operator", "consumer", "")
    accepted, illegal, unknown = set(), 0, 0
    for move in itertools.product(previous, (*STATUSES, "sent", ""), (*REASONS, "dispatch.pending", ""), sources):
        try:
            assert edge(*move) == Edge(*move)
            accepted.add(move)
        except IllegalEdge as error:
            assert str(move[1]) in str(error)
            illegal += 1
        except BadValue as error:
            assert repr(next(word for word in move if word in ("sent", "", "dispatch.pending"))) in str(error)
            unknown += 1
    assert accepted == RECORDED
    assert illegal == 7 * 6 * 8 * 4 - len(RECORDED)
    assert illegal + unknown + len(accepted) == 9 * 8 * 10 * 4


# The machine.

LEASE = 15


@dataclass(slots=True)
class Row:
    """What the model knows of a dispatch."""

    id: str
    created: int
    max_attempts: int
    ack: bool
    expires: int | None
    lane: str | None
    key: str | None
    due: int
    changed: int
    status: str = "pending"
    attempt: int = 0
    claim: int = 0
    error_of: int | None = None
    moves: list[Move] = field(default_factory=lambda: [ENQUEUED])

    @property
    def unfinished(self) -> bool:
        return self.status in ("pending", "delivering")

    def go(self, now: int, status: str, reason: str, source: str = "system") -> None:
        self.moves.append((self.status, status, f"dispatch.{reason}", source))
        self.status, self.changed = status, now

    def shown(self) -> tuple[Any, ...]:
        return (
            self.id,
            self.status,
            self.attempt,
            self.claim,
            float(self.due),
            self.error_of,
            None if self.expires is None else float(self.expires),
            float(self.changed) if len(self.moves) > 1 else None,
        )


SHOWN = "SELECT id, status, attempt, claim_number, next_attempt_at, last_error_attempt, expires_at, updated_at"

Result = st.sampled_from(
    [
        SENT,
        failed("refused", definite=True),
        failed("timeout", definite=False),
        failed("503", definite=True, not_before=5000.0),
    ]
)
REQUEST: dict[str, st.SearchStrategy[Any]] = {
    "lane": st.sampled_from([None, "a", "b"]),
    "key": st.sampled_from([None, None, "k", "l"]),
    "ack": st.booleans(),
    "max_attempts": st.sampled_from([1, 1, 2, 3]),
    "lifetime": st.sampled_from([None, None, None, 15, 60]),
}
# Which of the things there are, whatever their number.
Which = st.integers(0, 9)
# How much time passes before something; a lease, and what leaves it open or just over.
Later = st.sampled_from([0, 0, 0, 1, 14, 15, 15, 16, 60, 61, 240, 4000])


# What can happen: how often beside the others, and with what.
STEPS: dict[str, tuple[int, dict[str, st.SearchStrategy[Any]]]] = {
    "enqueue": (2, REQUEST),
    "claim": (5, {"later": Later, "limit": st.sampled_from([1, 2, 64, 64])}),
    "finish": (
        5,
        {"later": Later, "which": st.lists(Which, min_size=1, max_size=3), "result": Result, "keep": st.booleans()},
    ),
    "claimant_dies": (1, {"which": Which}),
    "scan_without_a_transport": (1, {"later": Later, "concurrency": st.sampled_from([1, 3, 64])}),
    "acknowledge": (1, {"which": Which, "right": st.booleans()}),
    "force_a_retry": (3, {"which": Which, "of_those_that_may": st.booleans(), "and_claim": st.booleans()}),
    "purge": (1, {"which": Which, "history": st.booleans()}),
    "purge_many": (
        1,
        {
            "statuses": st.sets(st.sampled_from(STATUSES), max_size=2),
            "age": st.sampled_from([None, 0, 30, 300]),
            "batch_rows": st.sampled_from([1, 500]),
            "dry_run": st.booleans(),
            "history": st.booleans(),
        },
    ),
}
WHO = [who for who, (often, _arguments) in STEPS.items() for _ in range(often)]
NEEDS_CLAIMS = ("finish", "claimant_dies")
NEEDS_ROWS = ("acknowledge", "force_a_retry", "purge")


class Machine(RuleBasedStateMachine):
    """Many claimants, consumers and operators on one database. Nothing is sent: a claim that is held is a send under way."""

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._directory = tempfile.TemporaryDirectory(dir=_memory())
        self._db = StateDB(Path(self._directory.name) / "dispatch.db")
        self._run(self._db.__aenter__())
        self.now = 1000
        self.rows: dict[str, Row] = {}  # in the order in which they were committed
        self.purged: dict[str, list[Move]] = {}
        self.held: list[Claim] = []
        self._numbers = itertools.count(1)

    def teardown(self) -> None:
        self._run(self._db.__aexit__(None, None, None))
        self._runner.close()
        self._directory.cleanup()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def _row(self, which: int) -> Row:
        return list(self.rows.values())[which % len(self.rows)]

    @initialize(rows=st.lists(st.fixed_dictionaries(REQUEST), min_size=2, max_size=5))
    def begin_with(self, rows: list[dict[str, Any]]) -> None:
        for each in rows:
            self.enqueue(**each)

    # One rule for all: where each has its own, Hypothesis leaves some out of an example, and without claims it shows nothing.
    @rule(data=st.data(), who=st.sampled_from(WHO))
    def step(self, data: st.DataObject, who: str) -> None:
        if (who in NEEDS_CLAIMS and not self.held) or (who in NEEDS_ROWS and not self.rows):
            return
        _often, arguments = STEPS[who]
        getattr(self, who)(**data.draw(st.fixed_dictionaries(arguments), who))

    # Producers.

    def enqueue(self, lane: str | None, key: str | None, ack: bool, max_attempts: int, lifetime: int | None) -> None:
        new = identity(next(self._numbers))
        expires = None if lifetime is None else self.now + lifetime
        answer = self._run(
            enqueue_dispatch(
                self._db,
                kind="test",
                deliver_to="nowhere",
                dedup_key=key,
                ack_required=ack,
                max_attempts=max_attempts,
                expires_at=expires,
                lane=lane,
                dispatch_id=new,
                ack_token=new if ack else None,
                now=self.now,
            )
        )
        known = next((row.id for row in self.rows.values() if key is not None and row.key == key), None)
        assert answer == (known or new)
        if known is None:
            self.rows[new] = Row(new, self.now, max_attempts, ack, expires, lane, key, due=self.now, changed=self.now)
        else:
            event("deduplicated")

    # Claimants.

    def claim(self, later: int, limit: int) -> None:
        self.now += later
        claimed = self._run(
            self._db.write(
                lambda connection: claim(connection, due_until=self.now, at=self.now, limit=limit, lease_seconds=LEASE),
                "claiming",
            )
        )
        expected, selected = self._claim(limit)
        assert claimed.selected == selected
        assert [(each.id, each.attempt, each.seen.claim_number) for each in claimed.claims] == expected
        for each in claimed.claims:
            row = self.rows[each.id]
            assert each.attempt <= row.max_attempts
            assert row.expires is None or self.now < row.expires
            assert not self._waits(row)
        self.held += claimed.claims

    def _claim(self, limit: int) -> tuple[list[tuple[str, int, int]], int]:
        """What the model claims: the claims, and how many rows it looked at."""
        due: list[Row] = []
        for status in ("delivering", "pending"):
            found = [each for each in self.rows.values() if each.status == status and each.due <= self.now]
            if any(self._waits(each) for each in found):
                event("waits in its lane")
            found = [each for each in found if not self._waits(each)]
            found.sort(key=lambda each: (each.due, each.created, each.id))
            due += found[: limit - len(due)]
        claimed = []
        for row in due:
            if row.expires is not None and row.expires <= self.now:
                row.go(self.now, "expired", "expired.deadline")
            elif row.status == "delivering" and row.attempt == row.max_attempts:
                row.error_of = row.attempt
                row.go(self.now, "dead_letter", "dead_letter.max_attempts")
                event("buried by a claim")
            else:
                event("taken over" if row.status == "delivering" else "claimed")
                row.attempt, row.claim, row.due = row.attempt + 1, row.claim + 1, self.now + LEASE
                row.go(self.now, "delivering", "delivering.attempt")
                claimed.append((row.id, row.attempt, row.claim))
        return claimed, len(due)

    def _waits(self, row: Row) -> bool:
        """Whether an earlier row of its lane is unfinished."""
        for other in self.rows.values():
            if other is row:
                return False
            if other.unfinished and row.lane is not None and other.lane == row.lane:
                return True
        raise AssertionError("the row is not there")

    def finish(self, later: int, which: Sequence[int], result: SendResult, *, keep: bool) -> None:
        """Some claims end, however late, in one transaction. A claimant that keeps its claim will try to end it again."""
        self.now += later
        ending = list({id(each): each for each in (self.held[number % len(self.held)] for number in which)}.values())
        changes = [settle(each, result).change for each in ending]
        applied = self._run(self._db.write(lambda connection: apply(connection, changes, self.now), "settling"))
        expected = set()
        for each in ending:
            row = self.rows.get(each.id)
            if row is None or (row.status, row.attempt, row.claim) != ("delivering", each.attempt, each.seen.claim_number):
                event("superseded")
                if row is not None and (row.status, row.attempt) == ("delivering", each.attempt):
                    event("superseded by the same attempt of a forced retry")
                continue
            self._settle(row, each, result)
            expected.add(each.seen)
        assert applied == expected
        if not keep:
            self.held = [each for each in self.held if all(each is not other for other in ending)]

    def _settle(self, row: Row, claim: Claim, result: SendResult) -> None:
        succeeded = result.error is None
        if not succeeded:
            row.error_of = row.attempt
        if succeeded and not row.ack:
            row.go(self.now, "delivered", "delivered.transport_ok")
        elif row.attempt == row.max_attempts:
            row.go(self.now, "dead_letter", "dead_letter.ack_timeout" if succeeded else "dead_letter.max_attempts")
        else:
            row.due = max(round(claim.claimed_at) + {1: 60, 2: 120}[row.attempt], round(result.not_before or 0))
            row.go(self.now, "pending", "delivered.transport_ok" if succeeded else "pending.retry_backoff")

    def claimant_dies(self, which: int) -> None:
        del self.held[which % len(self.held)]

    def scan_without_a_transport(self, later: int, concurrency: int) -> None:
        """The real scan, whose every send fails at once: there is no template."""
        self.now += later
        options = DeliveryOptions(concurrency=concurrency)
        delivery = self._run(deliver(self._db, now=lambda: self.now, options=options, resolve_template=False))
        selected, before = 0, {each.id: len(each.moves) for each in self.rows.values()}
        while True:
            claimed, looked_at = self._claim(concurrency)
            selected += looked_at
            for each, _attempt, _number in claimed:
                row = self.rows[each]
                row.error_of = row.attempt
                if row.attempt == row.max_attempts:
                    row.go(self.now, "dead_letter", "dead_letter.max_attempts")
                else:
                    row.due = self.now + {1: 60, 2: 120}[row.attempt]
                    row.go(self.now, "pending", "pending.retry_backoff")
            if not looked_at:
                break
        new = [move for each in self.rows.values() for move in each.moves[before[each.id] :]]
        assert (delivery.counts, delivery.superseded) == (
            {
                "attempted": selected,
                "delivered": 0,
                "dead_letter": sum(status == "dead_letter" for _previous, status, _reason, _source in new),
                "expired": sum(status == "expired" for _previous, status, _reason, _source in new),
                "retried": new.count(BACKED_OFF),
            },
            0,
        )

    # Consumers and operators.

    def acknowledge(self, which: int, *, right: bool) -> None:
        row = self._row(which)
        work = ack_dispatch(self._db, row.id, row.id if right else "0" * 32, now=self.now)
        if not row.ack or not right:
            with pytest.raises(BadValue):
                self._run(work)
        elif not row.unfinished:
            with pytest.raises(IllegalEdge):
                self._run(work)
        else:
            assert self._run(work)
            row.go(self.now, "acked", "acked.consumer")

    def force_a_retry(self, which: int, *, of_those_that_may: bool, and_claim: bool) -> None:
        may = [each for each in self.rows.values() if each.status in ("dead_letter", "expired")]
        row = may[which % len(may)] if may and of_those_that_may else self._row(which)
        work = retry_dispatch(self._db, row.id, now=self.now)
        if row.status not in ("dead_letter", "expired"):
            with pytest.raises(IllegalEdge):
                self._run(work)
            return
        assert self._run(work)
        row.attempt, row.due, row.error_of = 0, self.now, None
        if row.expires is not None and row.expires <= self.now:
            row.expires = None
        row.go(self.now, "pending", "pending.retry_backoff", "operator")
        event("forced retry")
        if and_claim:
            self.claim(later=0, limit=64)

    def purge(self, which: int, *, history: bool) -> None:
        row = self._row(which)
        assert self._run(purge_dispatch(self._db, row.id, remove_history=history, now=self.now))
        assert not self._run(purge_dispatch(self._db, row.id, now=self.now))
        with pytest.raises(NoSuchDispatch):
            self._run(retry_dispatch(self._db, row.id, now=self.now))
        self._forget(row, history)

    def purge_many(self, statuses: set[str], age: int | None, batch_rows: int, *, dry_run: bool, history: bool) -> None:
        work = purge_dispatches(
            self._db,
            statuses=statuses,
            older_than_seconds=age,
            batch_rows=batch_rows,
            dry_run=dry_run,
            remove_history=history,
            now=self.now,
        )
        if not statuses and age is None:
            with pytest.raises(BadValue):
                self._run(work)
            return
        chosen = [
            each
            for each in self.rows.values()
            if (not statuses or each.status in statuses) and (age is None or each.changed <= self.now - age)
        ]
        expected: defaultdict[str, int] = defaultdict(int)
        for each in chosen:
            expected[each.status] += 1
        assert self._run(work) == expected
        if not dry_run:
            for each in chosen:
                self._forget(each, history)

    def _forget(self, row: Row, history: bool) -> None:
        del self.rows[row.id]
        if not history:
            self.purged[row.id] = row.moves

    # What holds after each step.

    @invariant()
    def the_books_are_those_of_the_model(self) -> None:
        rows, history = self._run(self._read())
        assert [tuple(row.values()) for row in rows] == sorted(row.shown() for row in self.rows.values())
        moves: defaultdict[str, list[Move]] = defaultdict(list)
        numbers: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for entry in history:
            move = (entry["previous_status"], entry["status"], entry["reason_code"], entry["source"])
            assert move in RECORDED
            moves[entry["entity_id"]].append(move)
            if entry["status"] == "delivering":
                told = json.loads(entry["metadata"])
                numbers[entry["entity_id"]].append((told["claim_number"], told["attempt"]))
        assert dict(moves) == {each.id: each.moves for each in self.rows.values()} | self.purged
        for each, claims in numbers.items():
            assert [number for number, _attempt in claims] == list(range(1, len(claims) + 1))
            if each in self.rows:
                assert max(attempt for _number, attempt in claims) <= self.rows[each].max_attempts

    async def _read(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        def work(connection: Connection) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
            rows = connection.execute(text(f"{SHOWN} FROM dispatch_outbox ORDER BY id")).mappings()
            history = connection.execute(text("SELECT * FROM status_transitions ORDER BY id")).mappings()
            return [dict(row) for row in rows], [dict(entry) for entry in history]

        return await self._db.read(work, "comparing")


def _memory() -> str | None:
    """Where files cost no disk, if there is such a place."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


EXAMPLES = int(os.environ.get("HALT23_MACHINE_EXAMPLES", "25"))

TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=40,
    derandomize="HALT23_MACHINE_EXAMPLES" not in os.environ,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

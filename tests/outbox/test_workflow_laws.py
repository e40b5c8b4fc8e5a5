"""The workflow against a small model: whatever dies, in whatever order, nothing is lost and recovery ends in one of each.

Every step runs real processes. The model knows what was promised (the submitted intentions); all else is read from the journals
as they lie there, and must agree with it after every step.
"""

import hashlib
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from tests.outbox.test_fault_points import SET_UPS
from tests.outbox.world import World, payload, summary
from tests.support import Ended, ProcessBox

KEYS = ("a", "b", "c")
PRODUCER_POINTS = sorted(point for point in SET_UPS if point.startswith("intention"))
DISPATCHER_POINTS = sorted(set(SET_UPS) - set(PRODUCER_POINTS))
RECEIVER_POINTS = [f"effect.append.{stage}" for stage in ("before", "torn", "written", "synced")]
OCCURRENCES = st.sampled_from([1, 1, 1, 2, 3])


def body_of(key: str) -> str:
    return f'{{"question":"{key}"}}'


def fingerprint(key: str) -> str:
    return hashlib.sha256(body_of(key).encode()).hexdigest()


class Delivery(RuleBasedStateMachine):
    """Producers, dispatchers and one receiver that may each die at any point."""

    box: ProcessBox  # set by the test: processes are expensive to give each example a box of its own

    def __init__(self) -> None:
        super().__init__()
        self._directory = tempfile.TemporaryDirectory()
        self.world = World(self.box, Path(self._directory.name))
        self.submitted: list[str] = []  # acknowledged: must be there for ever
        self.unsure: set[str] = set()  # its producer died: may be there or not
        self.receiver_may_die = False

    def teardown(self) -> None:
        try:
            self.recover()
        finally:
            self.world.close()
            self._directory.cleanup()

    @initialize(kind=st.sampled_from(["keyed", "keyed", "unkeyed"]))
    def choose(self, kind: str) -> None:
        self.kind = kind
        self.world.start_receiver(kind)

    @property
    def up(self) -> bool:
        return self.world.receiver is not None and self.world.receiver.running

    # Producers.

    @rule(key=st.sampled_from(KEYS))
    def submit(self, key: str) -> None:
        ended = self.world.produce(key, body_of(key))
        assert ended.exit_code == 0, ended
        created = '"created": true' in ended.stdout
        assert created or key in self.submitted or key in self.unsure
        assert not (created and key in self.submitted)
        self.acknowledge(key)

    def acknowledge(self, key: str) -> None:
        self.unsure.discard(key)
        if key not in self.submitted:
            self.submitted.append(key)

    @rule(key=st.sampled_from(KEYS), point=st.sampled_from(PRODUCER_POINTS))
    def submit_and_die(self, key: str, point: str) -> None:
        ended = self.world.produce(key, body_of(key), halt_at=point)
        if halted(ended, point, 1):
            if key not in self.submitted:
                self.unsure.add(key)
        else:
            assert ended.exit_code == 0, ended
            self.acknowledge(key)

    @precondition(lambda self: self.submitted)
    @rule(data=st.data())
    def submit_another_body(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self.submitted))
        ended = self.world.produce(key, "another body")
        assert (ended.exit_code, ended.stdout) == (2, ""), ended

    # Dispatchers.

    @precondition(lambda self: self.world.outbox.is_dir())
    @rule()
    def dispatch(self) -> None:
        self.check_pass(self.world.dispatch())

    @precondition(lambda self: self.world.outbox.is_dir())
    @rule(point=st.sampled_from(DISPATCHER_POINTS), occurrence=OCCURRENCES)
    def dispatch_and_die(self, point: str, occurrence: int) -> None:
        ended = self.world.dispatch(halt_at=f"{point}#{occurrence}")
        if not halted(ended, point, occurrence):
            self.check_pass(ended)

    def check_pass(self, ended: Ended) -> None:
        """A pass that ended by itself says what the journals say."""
        counts = summary(ended)
        delivered = counts.get("delivered", 0) + counts.get("already_delivered", 0)
        assert delivered == len(self.world.records("receipts")) == len(self.world.records("history"))
        assert counts.get("intentions", 0) == len(self.world.records("intentions"))
        undelivered = counts.get("intentions", 0) - delivered
        if counts.get("unknown"):
            assert (ended.exit_code, self.receiver_may_die, self.up) == (12, True, False), ended
        elif undelivered:
            assert (ended.exit_code, self.up) == (10, False), ended
        else:
            assert ended.exit_code == 0, ended

    # The receiver.

    @precondition(lambda self: self.up)
    @rule(graceful=st.booleans())
    def stop_receiver(self, graceful: bool) -> None:
        assert self.world.receiver is not None
        ended = self.world.receiver.stop() if graceful else self.world.receiver.kill()
        assert (ended.exit_code, ended.signal) == ((0, None) if graceful else (None, "SIGKILL"))
        self.receiver_may_die = False

    @precondition(lambda self: not self.up)
    @rule(point=st.none() | st.sampled_from(RECEIVER_POINTS))
    def start_receiver(self, point: str | None) -> None:
        self.world.start_receiver(self.kind, point)
        self.receiver_may_die = point is not None

    # What holds at any time.

    @invariant()
    def every_submitted_intention_is_there_once_with_its_bytes(self) -> None:
        found = {record["id"]: payload(record["data"]["body"]) for record in self.world.records("intentions")}
        assert len(found) == len(self.world.records("intentions"))
        assert set(self.submitted) <= set(found) <= set(self.submitted) | self.unsure
        assert all(content == body_of(key).encode() for key, content in found.items())

    @invariant()
    def attempts_are_numbered_and_cover_every_arrival_and_effect(self) -> None:
        numbers: dict[str, list[int]] = {key: [] for key in KEYS}
        for record in self.world.records("attempts", "attempt"):
            numbers[record["data"]["intention"]].append(record["data"]["number"])
            assert record["data"]["fingerprint"] == fingerprint(record["data"]["key"])
        effects = Counter(record["data"]["fingerprint"] for record in self.world.records("effects"))
        arrivals = Counter(record["data"]["fingerprint"] for record in self.world.records("arrivals", "arrival"))
        for key, known in numbers.items():
            assert known == list(range(1, len(known) + 1))
            assert effects[fingerprint(key)] <= arrivals[fingerprint(key)] <= len(known)
            if getattr(self, "kind", "") == "keyed":
                assert effects[fingerprint(key)] <= 1
        assert effects.total() == len(self.world.records("effects"))

    @invariant()
    def every_receipt_has_its_effect_and_every_turn_its_receipt(self) -> None:
        effects = [(each["data"]["fingerprint"], each["data"]["result"]) for each in self.world.records("effects")]
        receipts = {each["id"]: each["data"] for each in self.world.records("receipts")}
        turns = {each["id"]: each["data"] for each in self.world.records("history")}
        assert len(receipts) == len(self.world.records("receipts"))
        assert len(turns) == len(self.world.records("history"))
        for key, receipt in receipts.items():
            assert (fingerprint(key), receipt["result"]) in effects
        for key, turn in turns.items():
            assert turn["answer"] == receipts[key]["result"]
            assert payload(turn["question"]) == body_of(key).encode()

    def recover(self) -> None:
        """Restart what is down, nothing armed: one pass delivers all, a second one has nothing left to do."""
        if not hasattr(self, "kind"):
            return
        if self.up and self.receiver_may_die:
            self.stop_receiver(graceful=True)
        if not self.up:
            self.start_receiver(None)
        self.receiver_may_die = False
        if not self.world.outbox.is_dir():
            assert not self.submitted
            return
        for key in sorted(self.unsure):
            self.submit(key)
        for _pass in range(2):
            ended = self.world.dispatch()
            assert ended.exit_code == 0, ended
        assert summary(ended) == ({"intentions": n, "already_delivered": n} if (n := len(self.submitted)) else {})
        self.every_submitted_intention_is_there_once_with_its_bytes()
        self.attempts_are_numbered_and_cover_every_arrival_and_effect()
        self.every_receipt_has_its_effect_and_every_turn_its_receipt()
        assert sorted(each["id"] for each in self.world.records("receipts")) == sorted(self.submitted)
        assert sorted(each["id"] for each in self.world.records("history")) == sorted(self.submitted)
        effects = Counter(each["data"]["fingerprint"] for each in self.world.records("effects"))
        for key in self.submitted:
            assert effects[fingerprint(key)] >= 1
            assert self.kind == "unkeyed" or effects[fingerprint(key)] == 1


def halted(ended: Ended, point: str, occurrence: int) -> bool:
    """Whether the armed fault was reached; then it ended with its own code and its witness, and with nothing else."""
    if ended.exit_code != 23:
        assert "halt(" not in ended.stderr
        return False
    assert ended.stderr.splitlines()[-1] == f"halt(23) at {point}#{occurrence}"
    assert ended.stdout == ""
    return True


def test_whatever_dies_nothing_is_lost_and_recovery_ends_in_one_receipt_and_one_turn(box: ProcessBox) -> None:
    machine = type("BoxedDelivery", (Delivery,), {"box": box})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=35,
            stateful_step_count=12,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

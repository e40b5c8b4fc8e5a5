"""Every fault point of the receivers is reachable and fires, and whatever it leaves, the effect is applied once.

Declared = reachable = fired: `SETUPS` must name every declared point, and each is fired in a real receiver.
"""

from __future__ import annotations

import functools
import http.client
import json
import subprocess
import sys
from collections.abc import Callable, Mapping

import pytest

from tests.receivers.conftest import Open
from tests.receivers.http import Receiver, fingerprint, is_complete, records, result
from tests.support import ROOT, Ended, ProcessBox

OWNED = ("arrival.", "answer.", "effect.", "arrivals.", "effects.")
OWNED_BY_OUTBOX = (
    *("intention.", "attempt.", "outcome.", "receipt.", "history.", "send."),
    *("intentions.", "attempts.", "receipts."),
)
# Of the kinds that keep their keys apart or answer status queries, and of the dispatch outbox: fired by the study.
OWNED_BY_THE_STUDY = ("inquiry.", "query.", "key.", "keys.", "dispatch.", "recorded.")
BODY = b"{}"


@functools.cache
def declared() -> tuple[str, ...]:
    """The points of the programs, as another process sees them: this one has imported tests that declare their own."""
    told = subprocess.run([sys.executable, "run.py", "points", "--json"], cwd=ROOT, check=True, capture_output=True).stdout
    return tuple(each["point"] for each in json.loads(told))


def mine() -> list[str]:
    return [name for name in declared() if name.startswith(OWNED)]


class Rig:
    """Starts receivers of one kind on one directory, which has two empty journals at first; armed or not."""

    def __init__(self, box: ProcessBox, receiver: Open, kind: str) -> None:
        self._box, self._receiver, self._kind = box, receiver, kind
        first = self.start()
        self.directory = first.directory
        first.process.stop()

    def start(self, halt_at: str | None = None) -> Receiver:
        return self._receiver(self._kind, halt_at=halt_at)

    def halt_while_serving(self, point: str, key: str = "k") -> Ended:
        """Arm the point, send one request, and wait for the halt that takes the answer away."""
        running = self.start(point)
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            running.post(BODY, key)
        return running.process.wait()

    def halt_while_starting(self, point: str) -> Ended:
        """Arm the point and start: no READY line comes."""
        arguments = (self._kind, "--dir", str(self.directory))
        ended = self._box.run("receivers", arguments, {"HALT_AT": point})
        assert ended.stdout == ""
        return ended


def while_serving(rig: Rig, point: str) -> Ended:
    return rig.halt_while_serving(point)


def while_serving_later(rig: Rig, point: str) -> Ended:
    """The third time: the first two requests are served by the armed receiver as if nothing was armed."""
    running = rig.start(f"{point}#3")
    for key in ("before-1", "before-2"):
        assert running.post(BODY, key).status == 200
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        running.post(BODY, "k")
    return running.process.wait()


def on_a_fresh_directory(rig: Rig, point: str) -> Ended:
    for path in rig.directory.iterdir():
        path.unlink()
    return rig.halt_while_starting(point)


def after_a_torn(name: str) -> Callable[[Rig, str], Ended]:
    def set_up(rig: Rig, point: str) -> Ended:
        assert rig.halt_while_serving(f"{name}.append.torn").exit_code == 23
        return rig.halt_while_starting(point)

    return set_up


# How each group of points is fired; the stages of a write are appended to its name.
SETUPS: Mapping[str, Callable[[Rig, str], Ended]] = {
    "arrival.append": while_serving,
    "answer.append": while_serving,
    "effect.append": while_serving,
    "arrivals.create": on_a_fresh_directory,
    "effects.create": on_a_fresh_directory,
    "arrivals.repair": after_a_torn("arrival"),
    "effects.repair": after_a_torn("effect"),
}


def group(point: str) -> str:
    return point.rpartition(".")[0]


def fire(rig: Rig, point: str, set_up: Callable[[Rig, str], Ended], occurrence: int = 1) -> None:
    ended = set_up(rig, point)
    assert (ended.exit_code, ended.signal) == (23, None)
    assert ended.stderr == f"halt(23) at {point}#{occurrence}\n"


def test_every_declared_point_has_a_set_up() -> None:
    assert [point for point in mine() if group(point) not in SETUPS] == []


def test_every_set_up_is_for_a_declared_point() -> None:
    assert [name for name in SETUPS if name not in {group(point) for point in mine()}] == []


def test_a_point_without_a_set_up_would_be_noticed() -> None:
    assert group("effects.compact.before") not in SETUPS
    assert "effects.compact.before".startswith(OWNED)


def test_every_point_of_the_programs_is_owned_by_the_tests_of_the_receivers_or_of_the_outbox() -> None:
    assert [point for point in declared() if not point.startswith(OWNED + OWNED_BY_OUTBOX + OWNED_BY_THE_STUDY)] == []
    assert len(mine()) == 3 + 3 + 4 + 2 + 2 + 3 + 3


@pytest.mark.parametrize("kind", ["keyed", "unkeyed"])
@pytest.mark.parametrize("point", mine())
def test_a_halt_at_any_point_leaves_what_a_restart_can_go_on_with(
    box: ProcessBox, receiver: Open, kind: str, point: str
) -> None:
    rig = Rig(box, receiver, kind)
    fire(rig, point, SETUPS[group(point)])

    running = rig.start()
    first, second = running.post(BODY, "k"), running.post(BODY, "k")
    effects = records(rig.directory, "effects")
    if kind == "keyed":
        # The same key again: one effect, whichever of the requests caused it, and the answer is its result.
        assert [record["id"] for record in effects] == ["k"]
        assert (first.status, first.body) == (200, result(1))
        assert (second.status, second.body, second.replayed) == (200, result(1), "true")
        assert effects[0]["data"]["fingerprint"] == fingerprint(BODY)
    else:
        # Each request that got as far as its effect has one of its own; only a halt behind the write can have added to the two.
        survived = int(point.startswith("answer.") or point in ("effect.append.written", "effect.append.synced"))
        assert len(effects) == 2 + survived
        assert (first.body, second.body) == (result(1 + survived), result(2 + survived))
    assert running.effects()["count"] == len(effects)
    assert running.process.stop().exit_code == 0
    assert is_complete(rig.directory, "effects")
    assert is_complete(rig.directory, "arrivals")


@pytest.mark.parametrize("point", [point for point in mine() if group(point).endswith(".append")])
def test_a_later_occurrence_halts_then_and_not_before(box: ProcessBox, receiver: Open, point: str) -> None:
    rig = Rig(box, receiver, "keyed")
    fire(rig, point, while_serving_later, occurrence=3)
    running = rig.start()
    assert running.post(BODY, "before-1").replayed == "true"
    assert running.post(BODY, "k").status == 200
    assert [record["id"] for record in records(rig.directory, "effects")] == ["before-1", "before-2", "k"]


def test_an_arrival_that_was_torn_leaves_the_next_its_number(box: ProcessBox, receiver: Open) -> None:
    rig = Rig(box, receiver, "keyed")
    fire(rig, "arrival.append.torn", while_serving)
    running = rig.start()
    assert running.post(BODY, "k").replayed is None
    assert [record["id"] for record in records(rig.directory, "arrivals")] == ["arrival-1", "arrival-1"]


def test_an_effect_that_was_synced_before_the_halt_is_replayed_though_no_answer_was_logged(
    box: ProcessBox, receiver: Open
) -> None:
    rig = Rig(box, receiver, "keyed")
    fire(rig, "effect.append.synced", while_serving)
    running = rig.start()
    assert running.post(BODY, "k").replayed == "true"
    assert records(rig.directory, "effects")[0]["data"]["arrival"] == "arrival-1"
    assert running.answers() == [("replayed", None, 200)]
    assert len(running.arrivals()) == 2

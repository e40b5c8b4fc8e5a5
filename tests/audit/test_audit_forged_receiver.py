"""Careful forgeries of the receiver's side, and of the order in which things happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit.conftest import Audit
from tests.audit.forge import Archive, payload
from tests.audit.forgeries import KC, KD, RR, UD, Forgeries

FORGERIES = Forgeries()

# Receiver.


@FORGERIES.enter("there is no arrival 'arrival-3' for this effect")
def phantom_effect(archive: Archive) -> None:
    effect = archive.data(KD, "effects", 1)
    result = payload(b'{"answer":"The counter is now 2.","counter":2}')
    forged = {**effect, "arrival": "arrival-3", "number": 2, "key": "phantom", "result": result}
    archive.journal(KD, "effects").append({"type": "effect", "id": "phantom", "data": forged})
    archive.finish()


@FORGERIES.enter("there is no effect")
def effect_removed(archive: Archive) -> None:
    archive.journal(KD, "effects").clear()
    archive.finish()


@FORGERIES.enter("expected 'arrival-1'")
def arrival_removed(archive: Archive) -> None:
    del archive.journal(KD, "arrivals")[:2]
    archive.finish()


@FORGERIES.enter("no receiver answered the")
def last_arrival_and_answer_removed(archive: Archive) -> None:
    del archive.journal(KC, "arrivals")[2:]
    archive.finish()


@FORGERIES.enter("with a response in hand, but no receiver answered")
def answer_removed_although_it_was_in_hand(archive: Archive) -> None:
    del archive.journal(RR, "arrivals")[1]
    archive.finish()


@FORGERIES.enter("was never answered, and no receiver died")
def answer_removed(archive: Archive) -> None:
    del archive.journal(KD, "arrivals")[1]
    archive.finish()


@FORGERIES.enter("has no arrival before it")
def answer_before_arrival(archive: Archive) -> None:
    arrivals = archive.journal(KD, "arrivals")
    arrivals[0], arrivals[1] = arrivals[1], arrivals[0]


@FORGERIES.enter("expected 'arrival-1'")
def arrivals_swapped(archive: Archive) -> None:
    arrivals = archive.journal(KD, "arrivals")
    arrivals[:] = arrivals[2:] + arrivals[:2]


@FORGERIES.enter("stands twice")
def record_doubled(archive: Archive) -> None:
    arrivals = archive.journal(KD, "arrivals")
    arrivals.append(arrivals[-1])


@FORGERIES.enter("does not fit this receiver")
def effects_swapped(archive: Archive) -> None:
    archive.journal(UD, "effects").reverse()


@FORGERIES.enter("has no response, though its client ended with 0")
def response_removed(archive: Archive) -> None:
    del archive.journal(KC, "requests")[1]
    archive.finish()


@FORGERIES.enter("there is no request of the client 'client' before it")
def response_before_request(archive: Archive) -> None:
    archive.journal(KC, "requests").reverse()


@FORGERIES.enter("stands after the arrival of the attempt 'keyed_delivery-1#2'")
def answer_after_the_next_arrival(archive: Archive) -> None:
    arrivals = archive.journal(KD, "arrivals")
    arrivals[1], arrivals[2] = arrivals[2], arrivals[1]


@FORGERIES.enter("arrived before the")
def attempts_arrive_in_another_order(archive: Archive) -> None:
    archive.data(UD, "arrivals", 1)["attempt"], archive.data(UD, "arrivals", 3)["attempt"] = "2", "1"


@pytest.mark.parametrize("name", FORGERIES.by_name)
def test_a_careful_forgery_is_refused(name: str, archive: Archive, judge: Audit, tmp_path: Path) -> None:
    FORGERIES.refuse(name, archive, judge, tmp_path / "run")

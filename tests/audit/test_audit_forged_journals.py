"""Careful forgeries of the dispatcher's side, and single fields of every journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit.catalogue import BODY
from tests.audit.conftest import Audit
from tests.audit.forge import Archive, payload, sha
from tests.audit.forgeries import KC, KD, RU, UD, Edit, Forgeries

FORGERIES = Forgeries()

# Outbox.


@FORGERIES.enter("0 receipts")
def receipt_removed(archive: Archive) -> None:
    archive.journal(KD, "receipts").clear()
    archive.finish()


@FORGERIES.enter("there is no receipt for the history record")
def history_without_receipt(archive: Archive) -> None:
    receipt_removed(archive)


@FORGERIES.enter("0 history")
def history_removed(archive: Archive) -> None:
    archive.journal(KD, "history").clear()
    archive.finish()


@FORGERIES.enter("attempts.jsonl:2 data.key: is 'another'")
def key_changed_in_one_attempt(archive: Archive) -> None:
    archive.data(KD, "attempts", 2)["key"] = "another"


@FORGERIES.enter("attempts.jsonl:2 data.fingerprint")
def body_changed_in_one_attempt(archive: Archive) -> None:
    archive.data(KD, "attempts", 2)["fingerprint"] = sha(b"another")


@FORGERIES.enter("the body has the fingerprint")
def body_of_intention_changed(archive: Archive) -> None:
    archive.data(KD, "intentions", 1)["body"] = payload(b"another")


@FORGERIES.enter("is not the body of the producer's command")
def body_changed_everywhere(archive: Archive) -> None:
    new, old = b"Subtract one.", sha(BODY.encode())
    for path, records in archive.journals.items():
        for record in records if f"/{KD}/" in path else []:
            data = record["data"]
            if data.get("fingerprint") == old:
                data["fingerprint"] = sha(new)
            for member in ("body", "question"):
                if member in data:
                    data[member] = payload(new)
            if "body_bytes" in data:
                data["body_bytes"] = len(new)


@FORGERIES.enter("belongs to no attempt and to no client's request")
def attempt_removed(archive: Archive) -> None:
    del archive.journal(KD, "attempts")[0]
    archive.finish()


@FORGERIES.enter("the next attempt of this intention is number 1")
def attempts_swapped(archive: Archive) -> None:
    attempts = archive.journal(KD, "attempts")
    attempts.reverse()


@FORGERIES.enter("was begun by no dispatcher")
def attempt_added(archive: Archive) -> None:
    attempts = archive.journal(KD, "attempts")
    third = {"type": "attempt", "id": f"{KD}-1#3", "data": {**attempts[0]["data"], "number": 3}}
    attempts.append(third)
    archive.finish()


@FORGERIES.enter("neither outcome nor receipt, but dispatcher (incarnation 1) did not die")
def outcome_removed(archive: Archive) -> None:
    del archive.journal(RU, "attempts")[1]
    archive.finish()


@FORGERIES.enter("does not follow its attempt directly")
def outcome_moved(archive: Archive) -> None:
    attempts = archive.journal(RU, "attempts")
    attempts.append(attempts.pop(1))


@FORGERIES.enter("says connection_refused, but")
def conflict_called_refusal(archive: Archive) -> None:
    archive.data(KC, "attempts", 2).update(reason="connection_refused", status=None)


@FORGERIES.enter("but the answer at")
def conflict_given_a_receipt(archive: Archive) -> None:
    attempt = archive.data(KC, "attempts", 1)
    claim = {"intention": f"{KC}-1", "key": f"{KC}-1", "attempt": 1, "fingerprint": attempt["fingerprint"], "status": 200}
    claim["via"] = "response"
    result = archive.data(KC, "effects", 1)["result"]
    archive.journal(KC, "receipts").append(
        {"type": "receipt", "id": f"{KC}-1", "data": {**claim, "replayed": True, "result": result}}
    )


def _edit_record(scenario: str, journal: str, line: int, member: str, value: object) -> Edit:
    return lambda archive: archive.data(scenario, journal, line).__setitem__(member, value)


for _scenario, _journal, _line, _member, _value, _words in (
    (KD, "intentions", 1, "key", "other", "the intention's id is"),
    (KD, "intentions", 1, "route", "/other", "the producer's command has"),
    (KD, "intentions", 1, "route", "operations", "expected a path"),
    (KD, "intentions", 1, "body", {"content": "QQ==", "encoding": "base64"}, "expected a payload"),
    (KD, "intentions", 1, "body", {"content": "\ud800", "encoding": "utf-8"}, "expected a payload"),
    (KD, "attempts", 1, "number", 2, "number 1"),
    (KD, "attempts", 1, "intention", "other", "there is no intention 'other'"),
    (RU, "attempts", 2, "outcome", "may_have_happened", "connection_refused means 'did_not_happen'"),
    (RU, "attempts", 2, "status", 503, "does not go with the reason"),
    (RU, "attempts", 2, "reason", "conflict", "which does not go with the reason conflict"),
    (KC, "attempts", 2, "status", 422, "says conflict with status 422"),
    (KC, "attempts", 2, "reason", "bad luck", "expected one of connection_refused"),
    (KD, "receipts", 1, "attempt", 1, "data.replayed: is True, but"),
    (KD, "receipts", 1, "attempt", 3, "there is no attempt"),
    (KD, "receipts", 1, "key", "other", "the attempt has"),
    (KD, "receipts", 1, "intention", "other", "the receipt's id is"),
    (KD, "receipts", 1, "fingerprint", sha(b"x"), "the attempt has"),
    (KD, "receipts", 1, "status", 201, "has 200"),
    (KD, "receipts", 1, "status", 404, "expected a status of success"),
    (KD, "receipts", 1, "replayed", False, "is False, but"),
    (KD, "receipts", 1, "result", payload(b"{}"), "by its SHA-256"),
    (KD, "history", 1, "question", payload(b"x"), "the intention's body is"),
    (KD, "history", 1, "answer", payload(b"x"), "the receipt's result is"),
    (KD, "effects", 1, "arrival", "arrival-2", "expected applied"),
    (KD, "effects", 1, "arrival", "arrival-7", "there is no arrival"),
    (KD, "effects", 1, "key", "other", "does not fit this receiver"),
    (KD, "effects", 1, "fingerprint", sha(b"x"), "is not the one of"),
    (KD, "effects", 1, "number", 2, "expected 1"),
    (KD, "effects", 1, "status", 201, "but the effect has 201"),
    (KD, "effects", 1, "result", payload(b'{"answer":"The counter is now 1.", "counter":1}'), "expected the content"),
    (UD, "effects", 2, "key", "unkeyed_delivery-1", "does not fit this receiver"),
    (UD, "effects", 2, "arrival", "arrival-1", "caused an effect already"),
    (KD, "arrivals", 1, "method", "PUT", "sent 'POST'"),
    (KD, "arrivals", 1, "route", "/other", "sent '/operations'"),
    (KD, "arrivals", 1, "key", "other", "belongs to no attempt"),
    (KD, "arrivals", 1, "attempt", "2", "a second arrival"),
    (KD, "arrivals", 1, "attempt", None, "belongs to no attempt"),
    (KD, "arrivals", 1, "fingerprint", sha(b"x"), "sent"),
    (KD, "arrivals", 1, "fingerprint", None, "sent"),
    (KD, "arrivals", 1, "body_bytes", 1, "sent"),
    (KD, "arrivals", 2, "outcome", "replayed", "caused the effect"),
    (KD, "arrivals", 2, "effect", None, "is None, but the answer says applied"),
    (KD, "arrivals", 2, "effect", "other", "there is no effect 'other'"),
    (KD, "arrivals", 2, "reason", "body_differs", "expected null"),
    (KD, "arrivals", 2, "status", 201, "but the effect has 200"),
    (KD, "arrivals", 2, "result_sha256", sha(b"x"), "but the effect's result has"),
    (KD, "arrivals", 4, "outcome", "applied", "but 'arrival-1' caused the effect"),
    (KC, "arrivals", 4, "reason", "key_missing", "is no reason for conflict"),
    (KC, "arrivals", 4, "status", 422, "expected (409,) for body_differs"),
    (KC, "arrivals", 4, "outcome", "refused", "is no reason for refused"),
    (KC, "requests", 1, "key", "other", "belongs to no attempt and to no client's request"),
    (KC, "requests", 1, "route", "/x", "is not the request of the client's command"),
    (KC, "requests", 1, "fingerprint", sha(b"x"), "is not the one of the body"),
    (KC, "requests", 2, "status", 201, "has 200"),
    (KC, "requests", 2, "replayed", True, "is True, but"),
    (KC, "requests", 2, "result", payload(b"x"), "by its SHA-256"),
    (KD, "history", 1, "surplus", 1, "a member that the contract does not have"),
):
    FORGERIES.change(
        f"{_journal}_{_line}_{_member}_{_value}", _words, _edit_record(_scenario, _journal, _line, _member, _value)
    )


@pytest.mark.parametrize("name", FORGERIES.by_name)
def test_a_careful_forgery_is_refused(name: str, archive: Archive, judge: Audit, tmp_path: Path) -> None:
    FORGERIES.refuse(name, archive, judge, tmp_path / "run")

"""The audit's table of messages against the programs that write them, and against the contract."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from audit.expectations.messages import OWN, OWN_ANSWERS, PHRASES, SENTENCES
from audit.ledger import REASONS
from audit.messages import _size
from receivers import registry
from receivers.arrivals import refusal
from scenarios.wire import FAULTS
from tests.support import ROOT

README = (ROOT / "evidence" / "README.md").read_text("utf-8")
RECEIVERS = "".join(path.read_text("utf-8") for path in sorted((ROOT / "receivers").glob("*.py")))


def test_there_is_a_sentence_for_every_reason() -> None:
    assert list(SENTENCES) == list(REASONS)


@pytest.mark.parametrize("reason", SENTENCES)
def test_a_sentence_is_the_contract_s(reason: str) -> None:
    row = next(line for line in README.splitlines() if line.startswith(f"| `{reason}` | ") and "body of" not in line)
    assert SENTENCES[reason][0].replace("{capacity}", "N") in row


@pytest.mark.parametrize("reason", registry._KEY_MESSAGES)
def test_a_sentence_about_a_key_is_the_receivers_(reason: str) -> None:
    assert SENTENCES[reason] == (registry._KEY_MESSAGES[reason],)


@pytest.mark.parametrize("reason", ("body_differs", "body_incomplete", "key_in_flight", "storage_full", "storage_failed"))
def test_a_sentence_without_numbers_stands_in_a_receiver_s_source(reason: str) -> None:
    assert f'"{SENTENCES[reason][0]}"' in RECEIVERS


def test_a_refusal_is_a_reason_and_a_sentence() -> None:
    assert refusal(409, "body_differs", "a sentence").body == b'{"error":"body_differs","message":"a sentence"}'


@pytest.mark.parametrize("status", PHRASES)
def test_a_phrase_is_that_of_its_status(status: int) -> None:
    assert HTTPStatus(status).phrase in PHRASES[status]


@pytest.mark.parametrize("name", OWN_ANSWERS)
def test_the_relay_s_own_answers_have_the_sizes_of_the_table(name: str) -> None:
    status, line, length = OWN_ANSWERS[name]
    port = "12345"
    head = (*OWN, *[each.replace("{port}", port) for each in [line] if each])
    sent = (FAULTS[name].answer or b"").replace(b"{upstream}", b"http://127.0.0.1:12345")
    assert len(sent) == _size(head, length, status=status)
    assert {fault for fault, what in FAULTS.items() if what.answer is not None} == set(OWN_ANSWERS)

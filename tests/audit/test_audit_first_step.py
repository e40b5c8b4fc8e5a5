"""The second opinion: the first illegal step of a scenario is told first, once, and with its number."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from audit.findings import FIRST_STEP, Findings
from audit.first_step import FirstStep
from tests.audit.conftest import Audit
from tests.audit.real import Part, Whole
from tests.audit.real_forgeries import NOBODY, again


def _key_of_the_first_attempt(part: Part) -> None:
    part.data("outbox/attempts", 1)["key"] = "another"


def _key_of_the_second_attempt(part: Part) -> None:
    part.data("outbox/attempts", 2)["key"] = "another"


def _both(part: Part) -> None:
    _key_of_the_second_attempt(part)
    _key_of_the_first_attempt(part)


def _answer(part: Part) -> None:
    part.data("receiver/arrivals", 4).update(outcome="applied")


def _body(part: Part) -> None:
    part.data("receiver/arrivals", 1)["fingerprint"] = NOBODY


def _record_of_nobody(part: Part) -> None:
    receipts = part.journal("outbox/receipts")
    receipts.append(again(receipts[0], "nobody-1"))


@pytest.mark.parametrize(
    ("edit", "where", "words"),
    [
        (_key_of_the_first_attempt, "step 3", "attempts.jsonl:1 data.key: is 'another', but policy resend sends"),
        (_key_of_the_second_attempt, "step 4", "attempts.jsonl:2 data.key: is 'another', but policy resend sends"),
        (_both, "step 3", "attempts.jsonl:1 data.key: is 'another', but policy resend sends"),
        (_answer, "step 4", "data.replayed: is True, but"),
        (_body, "step 3", "but the attempt 'keyed_delivery-1#1' sent"),
        (_record_of_nobody, "behind the last step", "the receipt 'nobody-1' was written by no dispatcher"),
    ],
)
def test_the_first_illegal_step_is_told_first(  # noqa: PLR0917 (a case and its fixtures)
    edit: Callable[[Part], None], where: str, words: str, whole: Whole, judge_real: Audit, tmp_path: Path
) -> None:
    part = whole.part("delivery/keyed_delivery", "delivery/unkeyed_delivery")
    edit(part)
    found = [str(finding) for finding in judge_real(part.write(tmp_path)).findings]
    mine = [each for each in found if each.startswith("delivery/keyed_delivery: ")]
    assert mine[0].startswith(f"delivery/keyed_delivery: {FIRST_STEP} ({where}): ")
    assert words in mine[0]
    assert sum(FIRST_STEP in each for each in found) == 1


def test_each_scenario_has_its_own(whole: Whole, judge_real: Audit, tmp_path: Path) -> None:
    part = whole.part("delivery/keyed_delivery", "delivery/unkeyed_delivery")
    _key_of_the_second_attempt(part)
    part.journals["scenarios/delivery/unkeyed_delivery/receiver/arrivals.jsonl"][3]["data"]["outcome"] = "replayed"
    told = [str(each) for each in judge_real(part.write(tmp_path)).findings if each.first_at]
    assert [each.partition(": scenarios")[0] for each in told] == [
        f"delivery/keyed_delivery: {FIRST_STEP} (step 4)", f"delivery/unkeyed_delivery: {FIRST_STEP} (step 4)",
    ]  # fmt: skip


def test_one_that_was_only_counted_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("audit.findings.MOST_FINDINGS", 2)
    findings = Findings()
    findings.add("before", "", "it rained")
    first = FirstStep("a/b", 7, findings)
    findings.add("a/b", "", "something")
    first.note("there", "it is so", 3)
    first.note("here", "it is earlier", 2)
    first.at(None)("nowhere", "it is late")
    first.tell()
    assert [str(each) for each in findings.items] == [
        "before: it rained", f"a/b: {FIRST_STEP} (step 2): here: it is earlier", "a/b: something",
    ]  # fmt: skip
    assert findings.left_out == 2

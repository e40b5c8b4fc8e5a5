"""A real archive: as it is it passes, whole and in parts; what must be alike in it is; and the table is its catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from audit.expectations import SECTIONS, expected_in
from tests.audit import test_audit_real_receivers as receivers
from tests.audit import test_audit_real_senders as senders
from tests.audit import test_audit_real_wire as wire
from tests.audit.conftest import Audit
from tests.audit.forge import COUNTED
from tests.audit.real import Whole
from tests.audit.real_forgeries import NOBODY, judged


def test_the_untouched_archive_passes(whole: Whole, judge_real: Audit) -> None:
    report = judge_real(whole.folder)
    assert [str(finding) for finding in report.findings] == []
    assert report.totals["scenarios"] == report.catalogue == len(whole.names)


@pytest.mark.parametrize("section", SECTIONS)
def test_a_part_that_nobody_edited_passes(section: str, whole: Whole, judge_real: Audit, tmp_path: Path) -> None:
    part = whole.part(*[name for name in whole.names if name.startswith(section + "/")])
    report = judged(part, judge_real, tmp_path)
    assert [str(finding) for finding in report.findings] == []


def test_there_are_enough_forgeries() -> None:
    every = [each for module in (receivers, senders, wire) for each in module.FORGERIES.by_name.values()]
    assert len(every) >= 60
    assert {scenario.split("/")[0] for scenario, _, _ in every} >= set(SECTIONS) - {"delivery"}


@pytest.mark.parametrize(
    ("scenarios", "path", "line", "name", "value"),
    [
        (("ledger/conflict", "ledger/conflict_422"), "receiver/arrivals", 4, "result_sha256", NOBODY),
        (("wire/redirect_not_followed", "wire/request_reset"), "relay/exchanges", 2, "response_bytes", 188),
    ],
)
def test_what_must_be_alike_in_the_whole_archive(  # noqa: PLR0917 (a case and its fixtures)
    scenarios: tuple[str, ...], path: str, line: int, name: str, value: object, whole: Whole, judge_real: Audit, tmp_path: Path
) -> None:
    part = whole.part(*scenarios)
    part.data(path, line)[name] = value
    if name == "response_bytes":
        part.data(path, line)["response_forwarded_bytes"] = value
    found = [str(finding) for finding in judged(part, judge_real, tmp_path).findings]
    assert any("which is not alike" in finding for finding in found), found


def test_the_table_is_the_catalogue(whole: Whole) -> None:
    """The audit's own table and the pinned catalogue agree to the last scenario; see `audit.protocol`."""
    table = {name: expectation for section in SECTIONS for name, expectation in expected_in(section).items()}
    plans: list[dict[str, Any]] = whole.manifest["protocol"]["scenarios"]
    planned = {f"{plan['section']}/{plan['name']}": plan for plan in plans}
    assert list(planned) == list(table)
    for name, plan in planned.items():
        assert table[name].counts == tuple(plan["expected"][member] for member in COUNTED), name
        assert table[name].counterexample == plan["counterexample"], name

"""A real archive: it passes, whole and in parts; no size and no text can be another everywhere; the table is its catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from audit.expectations import ONLY_ON, SECTIONS, expected_in
from tests.audit import test_audit_real_dispatch as dispatch
from tests.audit import test_audit_real_receivers as receivers
from tests.audit import test_audit_real_senders as senders
from tests.audit import test_audit_real_wire as wire
from tests.audit.conftest import Audit
from tests.audit.forge import COUNTED
from tests.audit.real import Part, Whole
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
    every = [each for module in (dispatch, receivers, senders, wire) for each in module.FORGERIES.by_name.values()]
    assert len(every) >= 60
    assert {scenario.split("/")[0] for scenario, _, _ in every} >= set(SECTIONS) - {"delivery"}


@pytest.mark.parametrize(
    ("members", "shift", "name"),
    [
        (("request_bytes", "request_forwarded_bytes"), 1, "request_cut_before"),
        (("response_bytes", "response_forwarded_bytes"), -1, "response_delayed"),
        (("response_forwarded_bytes",), 1, "success_oversized"),
    ],
)
def test_the_same_shift_of_all_sizes_on_the_wire(  # noqa: PLR0917 (a case and its fixtures)
    members: tuple[str, ...], shift: int, name: str, whole: Whole, judge_real: Audit, tmp_path: Path
) -> None:
    part = whole.part(*[name for name in whole.names if name.startswith("wire/")])
    for path, records in part.journals.items():
        for record in records if path.endswith("exchanges.jsonl") else []:
            record["data"].update({each: record["data"][each] + shift for each in members if record["data"][each]})
    found = [str(finding) for finding in judged(part, judge_real, tmp_path).findings]
    assert any(each.startswith(f"wire/{name}: ") and "but the whole message has" in each for each in found)


def _refusals(part: Part) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for path, records in part.journals.items():
        for record in records if path.endswith("arrivals.jsonl") else []:
            if record["data"].get("reason"):
                found.setdefault(record["data"]["reason"], []).append(record["data"])
    return found


@pytest.mark.parametrize("value", [NOBODY, None])
def test_another_text_of_all_refusals_of_one_reason(value: str | None, whole: Whole, judge_real: Audit, tmp_path: Path) -> None:
    reasons = _refusals(whole.part(*whole.names))
    assert set(reasons) == {"body_differs", "body_incomplete", "key_in_flight", "not_found", "registry_full"}
    for reason in reasons:
        part = whole.part(*[name for name in whole.names if _refusals(whole.part(name)).get(reason)])
        for data in _refusals(part)[reason]:
            data["result_sha256"] = value
        found = [str(finding) for finding in judged(part, judge_real, tmp_path / reason).findings]
        said = f"a refusal for '{reason}'" if value else "data.result_sha256: is None, expected 64 lower-case hex digits"
        assert sum(said in finding for finding in found) == len(reasons[reason])


def test_the_table_is_the_catalogue(whole: Whole) -> None:
    """The audit's own table and the pinned catalogue agree to the last scenario; see `audit.protocol`."""
    table = {name: expectation for section in SECTIONS for name, expectation in expected_in(section).items()}
    plans: list[dict[str, Any]] = whole.manifest["protocol"]["scenarios"]
    planned = {f"{plan['section']}/{plan['name']}": plan for plan in plans}
    assert [entry["scenario"] for entry in whole.manifest["protocol"]["catalogue"]] == list(table)
    assert list(planned) == [name for name in table if ONLY_ON.get(name) != "postgres"]
    for name, plan in planned.items():
        exports = {step["name"]: tuple(step["rows"].values()) for step in plan["steps"] if step["do"] == "export"}
        assert list(table[name].exports.items()) == list(exports.items()), name
        assert plan["store"] == ONLY_ON.get(name), name
        assert table[name].counts == tuple(plan["expected"][member] for member in COUNTED), name
        assert table[name].counterexample == plan["counterexample"], name

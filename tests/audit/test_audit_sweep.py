"""Every leaf of a representative of every record type, and of processes, changed and removed: nothing of it may pass.

The same over a whole archive: `python -m tests.audit.sweep`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from audit.records import SHAPES
from tests.audit.conftest import Audit
from tests.audit.real import Part, Whole
from tests.audit.sweep import Edit, edits_of_process, edits_of_record

RECORDS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("unknown/unknown_applied", "outbox/intentions", (1,)),
    ("unknown/unknown_applied", "outbox/attempts", (1, 2)),
    ("unknown/unknown_applied", "outbox/receipts", (1,)),
    ("unknown/unknown_applied", "outbox/history", (1,)),
    ("unknown/unknown_applied", "receiver/arrivals", (1, 2, 3)),
    ("identity/mark_before_send", "outbox/receipts", (1,)),
    ("identity/retention_too_short", "receiver/effects", (1, 2)),
    ("identity/receiver_lost_journal", "lost_receiver/effects", (1,)),
    ("identity/body_changed_on_retry", "outbox/attempts", (1, 2, 3)),
    ("ledger/effect_then_key", "receiver/keys", (1,)),
    ("ledger/key_then_effect", "receiver/keys", (1,)),
    ("ledger/in_flight_rejected", "client_01/requests", (1, 2)),
    ("ledger/in_flight_rejected", "client_02/requests", (1, 2)),
    ("ledger/conflict_422", "receiver/arrivals", (1, 2, 3, 4)),
    ("ledger/torn_prefixes", "prefixes/prefixes", (1, 462, 463, 464)),
    ("wire/retry_after_seconds", "outbox/attempts", (1, 2, 3)),
    ("wire/retry_after_seconds", "relay/exchanges", (1, 2)),
    ("wire/response_cut_in_body", "relay/exchanges", (1, 2)),
    ("wire/request_cut_in_body", "receiver/arrivals", (1, 2)),
)
PROCESSES = (
    ("history/two_dispatchers", (2, 3)),
    ("ledger/append_after_torn_tail", (0, 1)),
    ("wire/retry_after_seconds", (1, 4)),
    ("points/key_append_torn", (0,)),
)


def test_every_type_of_record_has_a_representative(whole: Whole) -> None:
    found = set()
    for scenario, journal, lines in RECORDS:
        records = whole.part(scenario).journal(journal)
        found |= {(journal.rpartition("/")[2], records[line - 1]["type"]) for line in lines}
    assert found == {(journal, kind) for journal, kinds in SHAPES.items() for kind in kinds}


def _passing(whole: Whole, judge: Audit, scenario: str, edits: list[tuple[str, Edit]], folder: Path) -> list[str]:
    """The names of the edits that pass; the scenario as it is must."""
    passed = []
    for number, (name, edit) in enumerate([("nothing", Part.files), *edits]):
        part = whole.part(scenario)
        edit(part)
        report = judge(part.write(folder / str(number)))
        assert not any("foresaw" in str(finding) for finding in report.findings), name
        if report.verdict == "PASS":
            passed.append(name.removeprefix(f"scenarios/{scenario.partition('/')[0]}/"))
    return passed


@pytest.mark.parametrize(("scenario", "journal", "lines"), RECORDS)
def test_no_edit_of_a_record_passes(  # noqa: PLR0917 (a case and its fixtures)
    scenario: str, journal: str, lines: tuple[int, ...], whole: Whole, judge_real: Audit, tmp_path: Path
) -> None:
    path = f"scenarios/{scenario}/{journal}.jsonl"
    edits = [edit for line in lines for edit in edits_of_record(whole.part(scenario), path, line)]
    passed = _passing(whole, judge_real, scenario, edits, tmp_path)
    assert passed == ["nothing"]


@pytest.mark.parametrize(("scenario", "numbers"), PROCESSES)
def test_no_edit_of_a_process_passes(
    scenario: str, numbers: tuple[int, ...], whole: Whole, judge_real: Audit, tmp_path: Path
) -> None:
    edits = [edit for number in numbers for edit in edits_of_process(whole.part(scenario), number)]
    assert _passing(whole, judge_real, scenario, edits, tmp_path) == ["nothing"]

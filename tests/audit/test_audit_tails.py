"""How journals may end: bytes without a newline are found in every journal there is, and told once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit import forge
from tests.audit.conftest import Audit
from tests.audit.real import Whole

ENDINGS = (b"\0", b"x", b'{"sha256":"', b"{}")


def _journals(whole: Whole) -> dict[str, str]:
    """One journal of each kind of the whole study, and a checkpoint's copy; by its scenario."""
    found: dict[str, str] = {}
    for path in sorted(whole.folder.rglob("*.jsonl")):
        copied = "checkpoint " if "/checkpoints/" in path.as_posix() else ""
        found.setdefault(copied + path.stem, path.relative_to(whole.folder).as_posix())
    return found


def test_bytes_behind_the_last_line_of_any_journal(whole: Whole, judge_real: Audit, tmp_path: Path) -> None:
    journals = _journals(whole)
    assert journals.keys() >= {
        "intentions", "attempts", "receipts", "history", "effects", "arrivals", "keys", "requests", "exchanges", "prefixes",
        "checkpoint arrivals",
    }  # fmt: skip
    for name, path in journals.items():
        folder = tmp_path / name
        whole.part("/".join(path.split("/")[1:3])).write(folder)
        data = (folder / path).read_bytes()
        for ending in ENDINGS:
            (folder / path).write_bytes(data + ending)
            forge.reseal(folder)
            report = judge_real(folder)
            found = [str(finding) for finding in report.findings]
            assert report.verdict == "FAIL", (name, ending)
            if name.startswith("checkpoint"):
                assert any(path in each for each in found)
            else:
                told = [each for each in found if f"{path}: ends with a torn tail of {len(ending)} bytes" in each]
                assert len(told) == 1, (name, found)


@pytest.mark.parametrize("scenario", ["history/torn_history", "ledger/crash_torn"])
def test_a_tail_that_a_later_opening_cut_is_not_missed(scenario: str, whole: Whole, judge_real: Audit, tmp_path: Path) -> None:
    report = judge_real(whole.part(scenario).write(tmp_path))
    assert [str(finding) for finding in report.findings] == []

"""What the front of the page claims, and what it must not claim because the page itself knows better."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from scenarios.report import archive as archives
from scenarios.report import page
from scenarios.report.facts import Archive
from tests.audit.real import Whole
from tests.report.conftest import STUDY


def drawn(folder: Path) -> str:
    return page.render(archives.read(folder), folder / "report.html").decode()


def claims(text: str) -> str:
    """The headline, without markup."""
    found = re.search(r"<h1>(.*?)</h1>", text)
    assert found is not None
    return re.sub("<[^>]+>", "", found[1])


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (None, "4 counts are missing or differ"),
        ({"effects": 2}, "1 count is missing or differs and 1 picture could not be told in full"),
    ],
)
def test_the_front_claims_nothing_that_the_page_knows_better(
    whole: Whole, folder: Path, counts: dict[str, int] | None, words: str
) -> None:
    whole.part("delivery/keyed_delivery", "delivery/unkeyed_delivery").write(folder)
    results = json.loads((folder / "results.json").read_text())
    entry = next(each for each in results["scenarios"] if each["scenario"] == "delivery/keyed_delivery")
    entry["counts"] = counts and {**entry["counts"], **counts}
    (folder / "results.json").write_text(json.dumps(results))
    text = drawn(folder)
    assert claims(text) == f"CAUTION 2 scenarios: results.json says PASS, but {words}"
    assert "all as declared" not in text
    assert len(re.findall(r"<tr [^>]*data-caution", text)) == 1
    assert text.count('class="mark doubt"') == 2, "in the row and in the summary"
    assert '<option value="caution">' in text


def test_a_story_in_doubt_is_enough_for_caution(whole: Whole, folder: Path) -> None:
    whole.part("delivery/keyed_delivery").write(folder)
    (folder / "scenarios/delivery/keyed_delivery/outbox/receipts.jsonl").unlink()
    text = drawn(folder)
    assert claims(text) == "CAUTION 1 scenario: results.json says PASS, but 1 picture could not be told in full"
    assert "not all could be told</span>" in text


def test_a_run_of_nothing_is_not_as_declared(study: Archive) -> None:
    text = page.render(replace(study, scenarios=()), STUDY / "report.html").decode()
    assert claims(text) == "CAUTION 0 scenarios: results.json says PASS, but nothing was run"


def test_a_run_that_calls_itself_failed_is_not_called_all_as_declared(study: Archive) -> None:
    text = page.render(replace(study, verdict="FAIL"), STUDY / "report.html").decode()
    assert (
        claims(text) == f"FAIL {len(study.scenarios)} scenarios: results.json says FAIL, though every single one passes there"
    )


def test_the_study_needs_no_caution(study: Archive) -> None:
    content = page.render(study, STUDY / "report.html")
    assert claims(content.decode()) == f"PASS {len(study.scenarios)} scenarios: all as declared"
    assert b"data-caution" not in content
    assert b'value="caution"' not in content

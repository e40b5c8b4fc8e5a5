"""The page as bytes: its size and the time it takes, what it holds, what it must never hold."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from outbox.errors import BadInput
from scenarios.report import archive as archives
from scenarios.report import page
from scenarios.report.facts import Archive, Tally
from tests.audit.real import Whole
from tests.report import hostile
from tests.report.conftest import STUDY
from tests.support import ROOT

MAX_BYTES = 2_000_000
MAX_SECONDS = 1.0
VOID = {"wbr", "meta", "link", "br", "img", "input", "hr"}


class Outline(HTMLParser):
    """Elements, attributes and visible text of a page; fails on a tag that closes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id" and value]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def outline(content: bytes) -> Outline:
    found = Outline()
    found.feed(content.decode("utf-8"))
    found.close()
    return found


@pytest.fixture(scope="module")
def content(study: Archive) -> bytes:
    return page.render(study, STUDY / "report.html")


def test_the_page_of_the_whole_study_is_small_and_quickly_made() -> None:
    page.render(archives.read(STUDY), STUDY / "report.html")  # the template is compiled once a process
    begun = time.process_time()
    content = page.render(archives.read(STUDY), STUDY / "report.html")
    assert time.process_time() - begun < MAX_SECONDS
    assert len(content) < MAX_BYTES


def test_a_long_journal_is_shown_to_its_hundredth_line_and_says_how_many_more_there_are(study: Archive) -> None:
    given = max(study.scenarios, key=lambda each: max((len(file.lines) for file in each.journals.values()), default=0))
    (lines,) = [len(file.lines) for file in given.journals.values() if len(file.lines) > 100]
    text = page.render(replace(study, scenarios=(given,)), STUDY / "report.html").decode()
    assert f"\n… {lines - 100} more lines</pre>" in text


def test_it_is_the_same_page_each_time(study: Archive, content: bytes) -> None:
    assert page.render(study, STUDY / "report.html") == content


def test_the_archived_page_is_the_one_that_this_code_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    folder = Path("evidence/study")  # as it was named when the page was drawn
    now = page.render(archives.read(folder), folder / "report.html")
    assert sha256(now).hexdigest() == sha256((folder / "report.html").read_bytes()).hexdigest(), "archive the study again"


def test_every_scenario_has_a_row_with_its_counts_and_a_panel(study: Archive, content: bytes) -> None:
    text = content.decode()
    for scenario in study.scenarios:
        row = re.search(rf'<tr data-for="{scenario.path}".*?</tr>', text)
        assert row is not None
        assert scenario.counts is not None
        attempts = (scenario.exported[-1].rows["attempts"],) if scenario.exported and scenario.exported[-1].rows else ()
        assert tuple(map(int, re.findall(r"<td>(\d+)</td>", row[0]))) == (*scenario.counts.values(), *attempts)
        assert ("counterexample" in row[0]) == scenario.counterexample
        assert f'<details class="panel" id="{scenario.path}">' in text
        assert f"python run.py --out again --only {scenario.path}" in text


def test_the_sections_tables_say_what_tables_md_says(content: bytes) -> None:
    totals = re.findall(r'<p class="totals">(.*?)</p>', content.decode())
    lines = (STUDY / "tables.md").read_text().splitlines()
    assert totals == [line for line in lines if re.match(r"\d+ scenarios, counter", line)][:-1]


def test_the_markup_is_whole_and_every_id_is_there_once(content: bytes) -> None:
    found = outline(content)
    assert found.open == []
    assert [name for name, count in Counter(found.ids).items() if count > 1] == []
    targets = {value[1:] for tag, name, value in found.attributes if tag == "a" and name == "href" and value[0] == "#"}
    assert targets <= set(found.ids)


def test_the_page_asks_for_nothing_outside(content: bytes) -> None:
    found = outline(content)
    assert not found.tags.keys() & {"img", "iframe", "link", "object", "embed", "base", "video"}
    assert [value for _tag, name, value in found.attributes if name in ("src", "srcset", "action", "style")] == []
    assert not any(name.startswith("on") for _tag, name, _value in found.attributes)
    assert b"http://" not in re.sub(rb"http://(127\.0\.0\.1|receiver\.localhost)\b", b"", content), "routes of this machine"
    assert b"https://" not in content
    assert b"url(" not in content
    assert b"@import" not in content


def test_raw_records_stand_there_once_and_hashes_are_short(content: bytes) -> None:
    text = content.decode()
    assert text.count('receipt keyed_delivery-1 {"attempt":') == 1
    assert re.search(r"<pre[^>]*>[^<]*[0-9a-f]{40}", text) is None


def test_links_to_files_are_only_made_where_they_lead_somewhere(study: Archive, content: bytes, tmp_path: Path) -> None:
    assert b'href="scenarios/delivery/keyed_delivery/"' in content
    assert b'href="scenarios/' not in page.render(study, tmp_path / "elsewhere.html")


# What it is made of may be anything.


def test_hostile_evidence_is_text_and_nothing_else(whole: Whole, folder: Path) -> None:
    hostile.write(whole, folder)
    content = page.render(archives.read(folder), folder / "report.html")
    found = outline(content)
    assert found.tags["script"] == found.tags["style"] == 1
    assert not found.tags.keys() & {"img", "iframe"}
    assert all("javascript:" not in value for _tag, name, value in found.attributes if name == "href")
    text = "".join(found.text)
    assert "<img src=x onerror=hacked()>" in text
    assert "100,000 characters]" in text or re.search(r"… \[100,\d{3} characters\]", text)
    assert len(content) < 200_000, "long values are cut"
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\ufeff]", content.decode())


def test_a_verdict_that_hides_a_failure_is_not_shown(whole: Whole, folder: Path) -> None:
    whole.part("delivery/keyed_delivery").write(folder)
    results = json.loads((folder / "results.json").read_text())
    results["scenarios"][0]["verdict"] = "FAIL"
    (folder / "results.json").write_text(json.dumps(results))
    text = page.render(archives.read(folder), folder / "report.html").decode()
    assert 'fail">FAIL</span> 1 scenario: 1 not as declared' in text


def test_a_failed_run_says_so_with_its_problems_and_its_question_marks(whole: Whole, folder: Path) -> None:
    part = whole.part("delivery/keyed_delivery")
    part.write(folder)
    results = json.loads((folder / "results.json").read_text())
    results["verdict"] = "FAIL"
    results["scenarios"][0].update(verdict="FAIL", counts=None, problems=["delivery/keyed_delivery: it went wrong"])
    (folder / "results.json").write_text(json.dumps(results))
    text = page.render(archives.read(folder), folder / "report.html").decode()
    assert "FAIL</span> 1 scenario: 1 not as declared" in text
    assert text.count("it went wrong") == 2
    assert '<td class="bad">? <small>expected 1</small></td>' in text


def test_a_count_of_four_hundred_digits_is_cut(study: Archive) -> None:
    huge = replace(study.scenarios[0], counts=Tally(10**400, 1, 1, 10**400))
    text = page.render(replace(study, scenarios=(huge,)), STUDY / "report.html").decode()
    assert "about 10^400" in text
    assert re.search(r"\d{50}", re.sub(r"[0-9a-f]{64}", "", text)) is None


def test_each_picture_is_described_by_its_sentences(study: Archive, content: bytes) -> None:
    found = outline(content)
    described = [value for tag, name, value in found.attributes if (tag, name) == ("svg", "aria-describedby")]
    assert len(described) == len(study.scenarios)
    assert {value for tag, name, value in found.attributes if (tag, name) == ("ol", "id")} == set(described)


def test_a_name_may_be_broken_at_its_underscores(content: bytes) -> None:
    assert b"keyed_<wbr>delivery</a>" in content


def test_a_part_of_the_catalogue_is_called_a_part(whole: Whole, folder: Path) -> None:
    whole.part("delivery/keyed_delivery", "delivery/key_conflict").write(folder)
    text = page.render(archives.read(folder), folder / "report.html").decode()
    assert "A part of the catalogue was run." in text
    assert "python run.py --out again --only delivery/keyed_delivery delivery/key_conflict" in text


def test_a_scenario_cannot_point_out_of_the_archive(whole: Whole, folder: Path) -> None:
    part = whole.part("delivery/keyed_delivery")
    part.write(folder / "inner")
    manifest = json.loads((folder / "inner" / "manifest.json").read_text())
    manifest["protocol"]["scenarios"][0].update(section="..", name="..")
    (folder / "inner" / "manifest.json").write_text(json.dumps(manifest))
    (folder / "secret.jsonl").write_text('{"secret":1}\n')
    assert b"secret" not in page.render(archives.read(folder / "inner"), folder / "x.html")


def test_a_link_in_the_archive_is_not_followed(whole: Whole, folder: Path, tmp_path: Path) -> None:
    part = whole.part("delivery/keyed_delivery")
    part.write(folder)
    (tmp_path / "secret").write_text("do not show me")
    (folder / "scenarios/delivery/keyed_delivery/clock").symlink_to(tmp_path / "secret")
    content = page.render(archives.read(folder), folder / "report.html")
    assert b"do not show me" not in content
    assert b"cannot be read" in content


@pytest.mark.parametrize("name", ["results.json", "processes.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["missing", "no JSON", "a list", "a link", "too deep"])
def test_a_document_that_cannot_be_read_is_named(whole: Whole, folder: Path, name: str, damage: str) -> None:
    whole.part("delivery/keyed_delivery").write(folder)
    path = folder / name
    path.unlink()
    if damage == "a link":
        path.symlink_to(STUDY / name)
    elif damage != "missing":
        path.write_text({"no JSON": "{", "a list": "[]", "too deep": "[" * 100_000}[damage])
    with pytest.raises(BadInput, match=re.escape(name)):
        archives.read(folder)


def test_an_interrupted_run_is_called_one(whole: Whole, folder: Path, tmp_path: Path) -> None:
    whole.part("delivery/keyed_delivery").write(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(BadInput, match="is an interrupted run: it has no manifest"):
        archives.read(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="is no archive"):
        archives.read(tmp_path / "empty")
    with pytest.raises(BadInput, match="there is no such directory"):
        archives.read(tmp_path / "absent")

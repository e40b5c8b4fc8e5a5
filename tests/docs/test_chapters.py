"""The generated tables: what `scenarios.report.chapters` takes from an archive, where it puts it, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from outbox.dispatch.edges import STATUSES
from outbox.errors import BadInput
from scenarios.report.chapters import END, main, rewrite, sections, tables, update

HEAD = "| Scenario | Receiver effects | Receipts | Complete history records | Arrivals |\n|---|---|---|---|---|\n"


def scenario(
    path: str, *counts: int, shows: str = "What it shows", counterexample: bool = False, verdict: str = "PASS"
) -> dict[str, Any]:
    named = dict(zip(("effects", "receipts", "history", "arrivals"), counts, strict=True))
    told = {"scenario": path, "shows": shows, "counterexample": counterexample, "verdict": verdict}
    return {**told, "counts": named, "exports": []}


def exported(value: dict[str, Any], **rows: int) -> dict[str, Any]:
    """The same scenario with an export in the middle, and one at its end that holds these rows."""
    nothing = dict.fromkeys((*STATUSES, "attempts", "events", "stale"), 0)
    return {**value, "exports": [{"name": "early", "rows": nothing}, {"name": "end", "rows": {**nothing, **rows}}]}


def archived(folder: Path, *scenarios: dict[str, Any]) -> Path:
    folder.mkdir()
    (folder / "manifest.json").write_text("{}")
    (folder / "results.json").write_text(json.dumps({"scenarios": scenarios}))
    return folder


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return archived(
        tmp_path / "run",
        scenario("delivery/keyed", 1, 1, 1, 2, shows="A crash"),
        scenario("delivery/unkeyed", 2, 1, 1, 2, shows="The same crash", counterexample=True),
        scenario("points/key_append_before", 2, 1, 1, 2, counterexample=True),
        scenario("points/key_append_torn", 2, 1, 1, 2, counterexample=True),
        scenario("points/key_append_written", 1, 1, 1, 2),
        scenario("points/send_before", 1, 1, 1, 1),
    )


def test_a_row_holds_the_counts_that_were_found_and_marks_a_counterexample(small: Path) -> None:
    assert tables(small)["delivery"] == (
        HEAD + "| `keyed`: A crash | 1 | 1 | 1 | 2 |\n| `unkeyed`: The same crash (counterexample) | 2 | 1 | 1 | 2 |\n"
    )


def test_a_section_on_a_database_has_the_rows_of_its_last_export_in_its_table(tmp_path: Path) -> None:
    folder = archived(
        tmp_path / "run",
        scenario("delivery/keyed", 1, 1, 1, 2),
        exported(scenario("dispatch/purged", 1, 1, 6, 2), attempts=2, delivered=1, expired=3, events=1, stale=1),
        exported(scenario("dispatch/empty", 0, 0, 0, 0)),
    )
    head, rule, *rows = tables(folder)["dispatch"].splitlines()
    assert (head.count("|"), rule.count("|"), head.endswith("| Attempts | Rows at the end |")) == (8, 8, True)
    assert rows == [
        "| `purged`: What it shows | 1 | 1 | 6 | 2 | 2 | 1 delivered, 3 expired, 1 event, 1 stale |",
        "| `empty`: What it shows | 0 | 0 | 0 | 0 | 0 | none |",
    ]
    assert tables(folder)["delivery"].startswith(HEAD)


def test_points_of_one_write_share_a_row_where_they_came_out_the_same(small: Path) -> None:
    assert tables(small)["points"] == (
        HEAD
        + "| `key_append_before`, `key_append_torn` (counterexample) | 2 | 1 | 1 | 2 |\n"
        + "| `key_append_written` | 1 | 1 | 1 | 2 |\n"
        + "| `send_before` | 1 | 1 | 1 | 1 |\n"
    )


def test_a_failed_scenario_is_not_documented(tmp_path: Path) -> None:
    failed = archived(tmp_path / "run", scenario("delivery/keyed", 2, 1, 1, 2, verdict="FAIL"))
    with pytest.raises(BadInput, match="delivery/keyed did not come out as declared"):
        tables(failed)


def test_an_unfinished_archive_is_not_documented(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no finished archive"):
        tables(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"scenarios": [{}]}', '{"scenarios": [7]}', "\ufffe"])
def test_results_that_are_none_are_refused(tmp_path: Path, content: str) -> None:
    folder = archived(tmp_path / "run")
    (folder / "results.json").write_text(content, encoding="utf-8")
    with pytest.raises(BadInput, match=r"results\.json"):
        tables(folder)


def test_results_that_are_missing_are_named(tmp_path: Path) -> None:
    folder = archived(tmp_path / "run")
    (folder / "results.json").unlink()
    with pytest.raises(BadInput, match=r"results\.json: there is no such file"):
        tables(folder)


def test_only_what_stands_between_the_markers_is_replaced() -> None:
    text = f"before\n<!-- table: a -->\nold\nold\n{END}\nbetween\n<!-- table: b -->\n{END}\nafter"
    updated = update(text, {"a": "new a\n", "b": "new b\n"})
    assert updated == (f"before\n<!-- table: a -->\nnew a\n{END}\nbetween\n<!-- table: b -->\nnew b\n{END}\nafter")
    assert update(updated, {"a": "new a\n", "b": "new b\n"}) == updated


def test_a_text_without_markers_stays_as_it_is() -> None:
    assert update("nothing\n", {}) == "nothing\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"x\n<!-- table: c -->\n{END}\n", "line 2: the archive has no section 'c'; it has: a"),
        ("x\n<!-- table: a -->\n| row |\n", "line 2: the table that begins here has no end"),
        (f"{END}\n", "line 1: .* ends no table"),
        (f"<!-- table: a -->\n<!-- table: a -->\n{END}\n", "line 2: a table begins here before the one of line 1 ended"),
    ],
)
def test_markers_that_do_not_fit_are_named_by_line(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        update(text, {"a": "new\n"})


def page(folder: Path, name: str, *marked: str) -> Path:
    path = folder / name
    path.write_text("".join(f"<!-- table: {section} -->\n{END}\n" for section in marked) or "no table\n")
    return path


def test_a_folder_and_a_file_are_rewritten_once(small: Path, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    chapter, points, other = page(docs, "delivery.md", "delivery"), page(docs, "points.md", "points"), page(docs, "index.md")
    readme = page(tmp_path, "README.md", "delivery")
    assert rewrite(small, [docs, readme]) == [chapter, points, readme]
    assert rewrite(small, [docs, readme]) == []
    assert other.read_text() == "no table\n"
    assert tables(small)["delivery"] in readme.read_text()


def test_nothing_is_written_unless_everything_fits(small: Path, tmp_path: Path) -> None:
    good, bad = page(tmp_path, "good.md", "delivery", "points"), page(tmp_path, "bad.md", "wire")
    before = good.read_text()
    with pytest.raises(BadInput, match=r"bad\.md, line 1: the archive has no section 'wire'"):
        rewrite(small, [good, bad])
    assert good.read_text() == before


def test_a_section_without_a_place_is_named(small: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has the marker <!-- table: points -->"):
        rewrite(small, [page(tmp_path, "delivery.md", "delivery")])


def test_a_named_file_must_have_a_place_for_a_table(small: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"index\.md: has no marker"):
        rewrite(small, [page(tmp_path, "index.md")])


def test_a_document_that_is_missing_is_named(small: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nowhere\.md: cannot be read"):
        rewrite(small, [tmp_path / "nowhere.md"])


def test_sections_are_those_of_the_markers() -> None:
    assert sections("<!-- table: a -->\n<!-- end of table -->\n<!-- table: b -->") == ["a", "b"]


def test_the_command_says_what_it_did(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = page(tmp_path, "all.md", "delivery", "points")
    assert main([str(small), str(path)]) == 0
    assert capsys.readouterr().out == f"rewritten: {path}\n"
    assert main([str(small), str(path)]) == 0
    assert capsys.readouterr().out == "all tables were up to date\n"
    assert main([str(tmp_path / "nowhere"), str(path)]) == 2
    assert "no finished archive" in capsys.readouterr().err

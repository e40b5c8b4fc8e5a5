"""Results are kept by family, told as they were measured, and replaced whole."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import plots, results
from benchmarks.__main__ import PLOTS, README, RESULTS
from benchmarks.measuring import Line, Measured, Verdict
from benchmarks.results import FamilyResults, UnreadableResults

RACE = Measured(
    "a race",
    "seconds",
    "On grass.",
    (Line("hare", "naps", (1.0, 2.0, 4.0)), Line("tortoise", "", (), "pip install tortoise")),
    (
        Verdict("hare over hare", 1.0, None, 1.2345, 1.0, 1.5),
        Verdict("hare over tortoise", None, 2.0, None, skipped="tortoise: pip install tortoise"),
        Verdict("slow", None, 0.5, 0.75, 0.75, 0.75),
    ),
)
CLIMB = Measured("a climb", "seconds", "", (Line("goat", "", (0.5, 5.0)),), (), "metres", (10, 1000))
FAMILY = FamilyResults("race", "A race.", "2026-01-02", {"cores": "2"}, (RACE, CLIMB))


def test_what_is_written_is_read_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    results.write(file, results.as_json([FAMILY]))
    assert results.read(file) == (FAMILY,)
    assert list(tmp_path.iterdir()) == [file]


def test_without_a_file_there_are_no_results(tmp_path: Path) -> None:
    assert results.read(tmp_path / "results.json") == ()


LINE = '{"name":"a","note":"","values":VALUES,"skipped":null}'
PART = f'{{"name":"p","unit":"s","note":"","lines":[{LINE}],"verdicts":[],"quantity":null,"sizes":[]}}'
ONE_LINE = f'{{"schema":1,"families":[{{"name":"f","title":"t","day":"d","machine":{{}},"parts":[{PART}]}}]}}'


@pytest.mark.parametrize("values", ["[]", '["a"]', "[null]", "{}", "1"])
def test_results_whose_values_are_no_numbers_are_refused(tmp_path: Path, values: str) -> None:
    (tmp_path / "results.json").write_text(ONE_LINE.replace("VALUES", values))
    with pytest.raises(UnreadableResults, match=r"results\.json"):
        results.read(tmp_path / "results.json")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema":2,"families":[]}', '{"schema":1,"families":[{}]}', "\0"])
def test_a_file_that_holds_no_results_is_refused_by_name(tmp_path: Path, content: str) -> None:
    file = tmp_path / "results.json"
    file.write_text(content)
    with pytest.raises(UnreadableResults, match=r"results\.json"):
        results.read(file)


def test_a_run_of_one_family_keeps_the_others_and_drops_what_is_no_family_any_more() -> None:
    other, gone = replace(FAMILY, name="other"), replace(FAMILY, name="gone")
    new = replace(FAMILY, day="2026-02-03")
    assert results.merged([other, FAMILY, gone], [new], ["race", "other"]) == (new, other)


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    file.write_text("before")
    with pytest.raises(UnicodeEncodeError):
        results.write(file, "\ud800")
    assert (file.read_text(), list(tmp_path.iterdir())) == ("before", [file])


def test_the_markdown_tells_values_ratios_goals_and_what_was_not_measured() -> None:
    told = results.as_markdown([FAMILY])
    for line in (
        "## A race.",
        "`python -m benchmarks race`, 2026-01-02",
        "* cores: 2",
        "| hare | 2 | 1 to 4 | naps |",
        "| tortoise | not measured | | pip install tortoise |",
        "* hare over hare: 1.23 (1 to 1.5), at least 1: met",
        "* hare over tortoise: not measured: tortoise: pip install tortoise, at most 2: not measured",
        "* slow: 0.75, at most 0.5: missed",
        "| seconds at so many metres | 10 | 1,000 | |",
        "| goat | 0.5 | 5 |  |",
        "![a climb](../docs/benchmark-race-a-climb.svg)",
    ):
        assert line in [each.rstrip() for each in told.splitlines()], line


@pytest.mark.parametrize(
    ("value", "told"), [(0, "0"), (0.001234, "0.00123"), (9.876, "9.88"), (12.34, "12.3"), (123.4, "123"), (12345.6, "12,346")]
)
def test_numbers_are_told_with_three_digits_that_matter(value: float, told: str) -> None:
    assert results.number(value) == told


def test_the_block_of_readme_is_replaced_and_nothing_else() -> None:
    readme = f"before\n{results.BEGIN}\nold\n{results.END}\nafter\n"
    block = results.readme_block([FAMILY])
    assert results.with_block(readme, block) == f"before\n{block}\nafter\n"
    assert "| slow | at most 0.5 | 0.75 | missed |" in block


@pytest.mark.parametrize("readme", ["", results.BEGIN, results.END, f"{results.END} {results.BEGIN}"])
def test_a_readme_without_the_block_is_told(readme: str) -> None:
    with pytest.raises(ValueError, match="README has no block"):
        results.with_block(readme, "block")


def test_a_picture_is_drawn_of_each_growth_and_twice_the_same(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason=plots.MISSING)
    (drawn,) = plots.draw([FAMILY], tmp_path)
    first = drawn.read_bytes()
    assert drawn.name == "benchmark-race-a-climb.svg"
    assert b"<svg" in first
    assert b"goat" in first
    plots.draw([FAMILY], tmp_path)
    assert drawn.read_bytes() == first


# What is committed.


def test_the_committed_markdown_readme_and_pictures_are_those_of_the_committed_results() -> None:
    kept = results.read(RESULTS)
    assert RESULTS.with_suffix(".md").read_text("utf-8") == results.as_markdown(kept)
    assert results.readme_block(kept) in README.read_text("utf-8")
    grown = {results.file_name(family.name, part.name) for family in kept for part in family.parts if part.quantity}
    assert {each.name for each in PLOTS.glob("benchmark-*.svg")} == grown


def test_every_family_was_measured_and_every_goal_was_judged() -> None:
    from benchmarks.families import NAMES  # noqa: PLC0415 - beside what it is compared with

    kept = json.loads(RESULTS.read_text("utf-8"))["families"]
    assert [each["name"] for each in kept] == list(NAMES)
    assert [
        verdict["text"] for family in kept for part in family["parts"] for verdict in part["verdicts"] if verdict["skipped"]
    ] == []

"""What was measured, as `results.json` and as `results.md` for a person.

`results.md` is made from `results.json` and nothing else, and so is the block of ratios in README. A run of some families
replaces those and keeps the others, each with the machine and the day of its own. Files are replaced whole, or not at all.
"""

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measuring import Line, Measured, Verdict

SCHEMA = 1
BEGIN, END = "<!-- benchmarks -->", "<!-- end of benchmarks -->"


class UnreadableResults(Exception):
    """The file of results is none of ours. Remedy: move it away, or name another with --out."""


@dataclass(frozen=True, slots=True)
class FamilyResults:
    """One family: its title, the day (ISO), the machine (`machine.machine`), and what was measured."""

    name: str
    title: str
    day: str
    machine: Mapping[str, str]
    parts: tuple[Measured, ...]


def merged(before: Iterable[FamilyResults], new: Iterable[FamilyResults], order: Iterable[str]) -> tuple[FamilyResults, ...]:
    """`before` with the families of `new` replaced, in the given order of names; families that are no more are left out."""
    by_name = {each.name: each for each in (*before, *new)}
    return tuple(by_name[name] for name in order if name in by_name)


def read(path: Path) -> tuple[FamilyResults, ...]:
    """The results in a JSON file; none if there is no file. Raises UnreadableResults."""
    try:
        document = json.loads(path.read_bytes())
        if document["schema"] != SCHEMA:
            raise UnreadableResults(f"{path} has schema {document['schema']!r}, expected {SCHEMA}")
        return tuple(_family(each) for each in document["families"])
    except FileNotFoundError:
        return ()
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise UnreadableResults(f"{path} holds no results of benchmarks: {error}") from error


def as_json(families: Iterable[FamilyResults]) -> str:
    """The text of `results.json`."""
    document = {"schema": SCHEMA, "families": [dataclasses.asdict(each) for each in families]}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def write(path: Path, text: str) -> None:
    """Replace a file at once. Raises OSError, and then the file is as it was."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, "utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def as_markdown(families: Iterable[FamilyResults]) -> str:
    """The text of `results.md`."""
    told = [
        "# Results\n\nWritten by `python -m benchmarks`. Absolute numbers are of one machine and one day; ratios were taken\n"
        "within each round of one run, the median is told, with the least and the most in brackets. Of what grows the medians\n"
        "of the rounds are compared.\n"
    ]
    for family in families:
        told.append(f"\n## {family.title}\n\n`python -m benchmarks {family.name}`, {family.day}\n\n")
        told.extend(f"* {name}: {value}\n" for name, value in family.machine.items())
        told.extend(_part(family.name, each) for each in family.parts)
    return "".join(told)


def file_name(family: str, part: str) -> str:
    """What the picture of a part is called, in `docs/`."""
    words = "".join(letter if letter.isalnum() else " " for letter in part.lower()).split()
    return f"benchmark-{family}-{'-'.join(words)}.svg"


def readme_block(families: Iterable[FamilyResults]) -> str:
    """What README says of the ratios, between its two marks."""
    rows = [
        f"| {verdict.text} | {goal_of(verdict)} | {ratio_of(verdict)} | {word_of(verdict)} |"
        for family in families
        for part in family.parts
        for verdict in part.verdicts
    ]
    head = "| ratio | goal | measured | |\n|---|---|---|---|\n"
    return f"{BEGIN}\n{head}" + "\n".join(rows) + f"\n{END}"


def with_block(readme: str, block: str) -> str:
    """The text of README with its block replaced. Raises ValueError where it has none."""
    before, begin, rest = readme.partition(BEGIN)
    _old, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"README has no block between {BEGIN} and {END}")
    return before + block + after


def number(value: float) -> str:
    """A value with three digits that matter, in full."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"


def goal_of(verdict: Verdict) -> str:
    """The goal in words."""
    if verdict.at_least is not None:
        return f"at least {number(verdict.at_least)}"
    return "none" if verdict.at_most is None else f"at most {number(verdict.at_most)}"


def ratio_of(verdict: Verdict) -> str:
    """The ratio in words, or why there is none."""
    if verdict.ratio is None:
        return f"not measured: {verdict.skipped}"
    if verdict.least is None or verdict.most is None or verdict.least == verdict.most:
        return number(verdict.ratio)
    return f"{number(verdict.ratio)} ({number(verdict.least)} to {number(verdict.most)})"


def word_of(verdict: Verdict) -> str:
    """Met or missed, or that it is not known; nothing where there is no goal."""
    if verdict.met is None:
        return "not measured"
    if verdict.at_least is None and verdict.at_most is None:
        return ""
    return "met" if verdict.met else "missed"


def verdict_in_words(verdict: Verdict) -> str:
    """One line: what, the ratio, the goal and whether it is met."""
    word = word_of(verdict)
    return f"{verdict.text}: {ratio_of(verdict)}" + (f", {goal_of(verdict)}: {word}" if word else "")


def _part(family: str, part: Measured) -> str:
    told = f"\n### {part.name}\n\n" + (f"{part.note}\n\n" if part.note else "")
    told += _grown(part) if part.quantity else _compared(part)
    if part.quantity and any(line.skipped is None for line in part.lines):
        told += f"\n![{part.name}](../docs/{file_name(family, part.name)})\n"
    if part.verdicts:
        told += "\n"
        for verdict in part.verdicts:
            told += f"* {verdict_in_words(verdict)}\n"
    return told


def _compared(part: Measured) -> str:
    told = f"| | {part.unit}, median | least to most | |\n|---|---|---|---|\n"
    for line in part.lines:
        if line.skipped is not None:
            told += f"| {line.name} | not measured | | {line.skipped} |\n"
        else:
            spread = f"{number(min(line.values))} to {number(max(line.values))}"
            told += f"| {line.name} | {number(line.median)} | {spread} | {line.note} |\n"
    return told


def _grown(part: Measured) -> str:
    told = f"| {part.unit} at so many {part.quantity} | {' | '.join(f'{size:,}' for size in part.sizes)} | |\n"
    told += f"|---|{'---|' * len(part.sizes)}---|\n"
    for line in part.lines:
        values = ("not measured",) * len(part.sizes) if line.skipped else tuple(map(number, line.values))
        told += f"| {line.name} | {' | '.join(values)} | {line.skipped or line.note} |\n"
    return told


def _family(given: Mapping[str, Any]) -> FamilyResults:
    parts = tuple(
        Measured(
            **{
                **part,
                "lines": tuple(Line(**{**line, "values": tuple(map(float, line["values"]))}) for line in part["lines"]),
                "verdicts": tuple(Verdict(**verdict) for verdict in part["verdicts"]),
                "sizes": tuple(part["sizes"]),
            }
        )
        for part in given["parts"]
    )
    if any(not line.values and line.skipped is None for part in parts for line in part.lines):
        raise ValueError(f"the family {given['name']!r} has a line without values")
    return FamilyResults(given["name"], given["title"], given["day"], dict(given["machine"]), parts)

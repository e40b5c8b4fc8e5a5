"""`tables.md`: a table for each section, ready to paste into teaching material."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby

from outbox.dispatch.edges import STATUSES
from scenarios.engine.runner import ScenarioResult
from scenarios.model import Export

JOURNALS = ("Scenario", "Receiver effects", "Receipts", "Complete history records", "Arrivals")
# Of a section whose scenarios export the tables of a dispatch outbox.
DATABASE = ("Scenario", "Receiver effects", "Receipts", "Transitions", "Arrivals", "Attempts", "Rows at the end")


def render(results: Sequence[ScenarioResult], introductions: dict[str, str]) -> str:
    """Markdown text. The counts are those that were found, not those that were expected."""
    parts = ["# Scenario tables\n"]
    for section, members in groupby(results, key=lambda result: result.scenario.section):
        chosen = list(members)
        columns = DATABASE if any(_exports(result) for result in chosen) else JOURNALS
        rows = [_row(result, columns) for result in chosen]
        table = [head(columns), *rows]
        parts.append("\n".join([f"## {section.capitalize()}", "", introductions[section], "", *table, "", _totals(chosen)]))
    parts.append(f"## Altogether\n\n{_totals(results)}")
    return "\n".join(parts)


def head(columns: Sequence[str]) -> str:
    """The two lines above a table's rows, without the last newline."""
    return f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"


def in_words(rows: Mapping[str, int]) -> str:
    """The rows of a database by status, and what else stands out, as a cell of a table: `1 delivered, 1 event`."""
    told = [f"{rows[status]} {status}" for status in STATUSES if rows[status]]
    if rows["events"]:
        told.append(f"{rows['events']} event{'s' if rows['events'] > 1 else ''}")
    if rows["stale"]:
        told.append(f"{rows['stale']} stale")
    return ", ".join(told) or "none"


def _exports(result: ScenarioResult) -> bool:
    return any(isinstance(step, Export) for step in result.scenario.steps)


def _row(result: ScenarioResult, columns: Sequence[str]) -> str:
    scenario, counts = result.scenario, result.counts
    label = f"`{scenario.name}`: {scenario.shows}"
    if scenario.counterexample:
        label += " (counterexample)"
    if result.problems:
        label += " (**not as declared**)"
    cells: Iterable[object] = ("?",) * (len(columns) - 1)
    if counts is not None:
        cells = (counts.effects, counts.receipts, counts.history, counts.arrivals)
        if columns is DATABASE:
            rows = asdict(result.exports[-1].rows) if result.exports else None
            cells = (*cells, *(("?", "?") if rows is None else (rows["attempts"], in_words(rows))))
    return f"| {label} | {' | '.join(str(cell) for cell in cells)} |"


def _totals(results: Sequence[ScenarioResult]) -> str:
    processes = sum(len(result.processes) for result in results)
    requests = sum(result.counts.arrivals for result in results if result.counts)
    counterexamples = sum(result.scenario.counterexample for result in results)
    return (
        f"{len(results)} scenarios, counterexamples among them: {counterexamples}; {processes} child processes, "
        f"{requests} requests.\n"
    )

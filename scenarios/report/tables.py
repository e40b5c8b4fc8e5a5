"""`tables.md`: a table for each section, ready to paste into teaching material."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from scenarios.engine.runner import ScenarioResult

_HEAD = "| Scenario | Receiver effects | Receipts | Complete history records | Arrivals |\n|---|---|---|---|---|"


def render(results: Sequence[ScenarioResult], introductions: dict[str, str]) -> str:
    """Markdown text. The counts are those that were found, not those that were expected."""
    parts = ["# Scenario tables\n"]
    for section, members in groupby(results, key=lambda result: result.scenario.section):
        chosen = list(members)
        rows = [_row(result) for result in chosen]
        parts.append(
            "\n".join([f"## {section.capitalize()}", "", introductions[section], "", _HEAD, *rows, "", _totals(chosen)])
        )
    parts.append(f"## Altogether\n\n{_totals(results)}")
    return "\n".join(parts)


def _row(result: ScenarioResult) -> str:
    scenario, counts = result.scenario, result.counts
    label = f"`{scenario.name}`: {scenario.shows}"
    if scenario.counterexample:
        label += " (counterexample)"
    if result.problems:
        label += " (**not as declared**)"
    cells: Iterable[object] = ("?",) * 4
    if counts is not None:
        cells = (counts.effects, counts.receipts, counts.history, counts.arrivals)
    return f"| {label} | {' | '.join(str(cell) for cell in cells)} |"


def _totals(results: Sequence[ScenarioResult]) -> str:
    processes = sum(len(result.processes) for result in results)
    requests = sum(result.counts.arrivals for result in results if result.counts)
    counterexamples = sum(result.scenario.counterexample for result in results)
    return (
        f"{len(results)} scenarios, counterexamples among them: {counterexamples}; {processes} child processes, "
        f"{requests} requests.\n"
    )

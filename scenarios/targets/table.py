"""`table.md`: what a check found, as Markdown to paste. Everything in it stands in summary.json and results.jsonl, too."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scenarios.targets import verdicts

WORKER = ("Died in", "Where", "Function", "Verdict", "Cases", "Seconds", "Example")
RECEIVER = ("Expectation", "Source", "If not met", "Verdict", "Expected", "Seen")


def of_worker(summary: Mapping[str, Any]) -> str:
    """The table of a worker: a row for each window in which something was found, and one for all that recovered."""
    found = [each for each in summary["windows"] if each["verdict"] != verdicts.RECOVERED]
    well = [each for each in summary["windows"] if each["verdict"] == verdicts.RECOVERED]
    rows = [_window(each) for each in found]
    if well:
        seconds = max((each["seconds"] for each in well if each["seconds"] is not None), default=None)
        cases = sum(each["cases"] for each in well)
        rows.append(("", f"{len(well)} more", "", verdicts.RECOVERED, str(cases), _seconds(seconds), ""))
    claims = summary["claims"] or "nothing; judged as at-least-once with stable keys"
    lines = [*_head(summary), f"Claimed: {claims}. Holds: {', '.join(summary['holds']) or 'none'}.", ""]
    return "\n".join([*lines, *_table(WORKER, rows)]) + "\n"


def _window(window: Mapping[str, Any]) -> tuple[str, ...]:
    cases, tried = window["cases"], window["tried"]
    return (
        window["role"] + (" (recovery)" if window["depth"] > 1 else ""),
        window["where"],
        window["function"] or "",
        window["verdict"],
        str(cases) if cases == tried else f"{cases} of {tried}",
        _seconds(window["seconds"]),
        window["example"],
    )


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.1f}"


def of_receiver(summary: Mapping[str, Any], cases: Iterable[Mapping[str, Any]]) -> str:
    """The table of a receiver: a row for each expectation, in the order in which they were tried."""
    names = ("expectation", "source", "severity", "verdict", "expected", "seen")
    rows = [tuple(str(case[name]) for name in names) for case in cases]
    return "\n".join([*_head(summary), *_table(RECEIVER, rows)]) + "\n"


def _head(summary: Mapping[str, Any]) -> list[str]:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in summary["by_verdict"].items() if count)
    left_out = f", {summary['not_played']} more not played" if summary["not_played"] else ""
    return [
        f"# {summary['target']}: {summary['verdict']}",
        "",
        f"{summary['cases']} case{'s' if summary['cases'] != 1 else ''}{left_out}: {counts or 'none'}; "
        f"{summary['wall_seconds']:.1f} s.",
        "",
    ]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *(f"| {' | '.join(map(cell, row))} |" for row in rows)]


def cell(text: str) -> str:
    """A text that does not disturb its row."""
    return " ".join(text.replace("|", "\\|").split())

"""What the front of a page may claim: never more than its rows and pictures bear out."""

from collections.abc import Sequence

from scenarios.report.views import Headline, ScenarioView
from scenarios.report.words import counted, plain


def headline(told: str, scenarios: Sequence[ScenarioView]) -> Headline:
    """The verdict and the sentence beside it; `told` is the verdict that results.json has for the whole run."""
    count, verdict = counted(len(scenarios), "scenario"), plain(told, 20) or "UNKNOWN"
    wrong = sum(each.verdict != "PASS" for each in scenarios)
    caution = _caution([each for each in scenarios if each.verdict == "PASS"])
    if wrong:
        return Headline("FAIL", f"{count}: {wrong} not as declared{f'; of the others {caution}' if caution else ''}")
    if caution:
        return Headline("CAUTION" if verdict == "PASS" else verdict, f"{count}: results.json says {verdict}, but {caution}")
    if not scenarios:
        return Headline(
            "CAUTION" if verdict == "PASS" else verdict, f"{count}: results.json says {verdict}, but nothing was run"
        )
    if verdict != "PASS":
        return Headline(verdict, f"{count}: results.json says {verdict}, though every single one passes there")
    return Headline(verdict, f"{count}: all as declared")


def caution_of(wrong_counts: int, doubts: int) -> str:
    """The words of a scenario's mark, or nothing."""
    counts = "a count is missing or differs" if wrong_counts == 1 else f"{wrong_counts} counts are missing or differ"
    return ", ".join([*([counts] if wrong_counts else []), *(["not all could be told"] if doubts else [])])


def _caution(scenarios: Sequence[ScenarioView]) -> str:
    counts = sum(cell.wrong for each in scenarios for cell in each.cells)
    pictures = sum(bool(each.doubts) for each in scenarios)
    found = []
    if counts:
        found.append(f"{counted(counts, 'count')} {'is missing or differs' if counts == 1 else 'are missing or differ'}")
    if pictures:
        found.append(f"{counted(pictures, 'picture')} could not be told in full")
    return " and ".join(found)

"""The battery as docs/check.md has it. `python -m scenarios.targets.documented docs/check.md` writes it there anew."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from scenarios.targets.battery import BATTERY
from scenarios.targets.battery_model import DRAFT
from scenarios.targets.table import cell

BEGIN, END = "<!-- battery -->\n", "<!-- end of battery -->"
COLUMNS = ("Expectation", "What is done", "What is expected", "Source", "If not met")


def table() -> str:
    """The table, as Markdown."""
    rows = [
        (each.name, each.does, each.expected, "draft" if each.source == DRAFT else each.source, each.severity)
        for each in BATTERY
    ]
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}", *(f"| {' | '.join(map(cell, row))} |" for row in rows)]
    return "\n".join(lines) + "\n"


def update(text: str) -> str:
    """The page with the table as it is now."""
    return re.sub(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}{table()}{END}", text, count=1, flags=re.DOTALL)


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry."""
    for name in sys.argv[1:] if argv is None else argv:
        path = Path(name)
        path.write_text(update(path.read_text("utf-8")), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

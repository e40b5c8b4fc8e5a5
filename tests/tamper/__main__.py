"""How much of an archive can be edited without the audit noticing.

    python -m tests.tamper DIR [--share F] [--legal F] [--seed N] [--checkout DIR] [--json FILE]

makes single edits of every file, record and leaf of the archive DIR, which must be one of the checkout's sources, and audits
each: (a) as it is, (b) with every checksum, chain and manifest entry computed anew, (c) with results.json and tables.md adapted
as well. All edits take about an hour; --share 0.05 takes a twentieth of them. Legal edits (`tests.tamper.legal`: another value
that is legal at that place, another spelling of the same value) have a share of their own. Exit code 1: something passes
without a reason.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

from tests.audit.forge import REPOSITORY
from tests.tamper.measure import CARES, Figures, measure


def table(figures: Figures) -> str:
    lines = ["| Edit | " + " | ".join(f"({care}) made | refused | %" for care in CARES) + " |", "|---|" + "---|" * 9]
    for kind in sorted({kind for kind, _ in figures.made}):
        lines.append(_row(kind, [(figures.made[kind, care], figures.refused[kind, care]) for care in CARES]))
    lines.append(_row("**all but volatile**", [figures.held(care) for care in CARES]))
    return "\n".join(lines)


def _row(name: str, numbers: list[tuple[int, int]]) -> str:
    cells = [f"{made} | {refused} | {percent(made, refused)}" if made else " | | " for made, refused in numbers]
    return f"| {name} | " + " | ".join(cells) + " |"


def percent(made: int, refused: int) -> str:
    """Rounded down: 100 only where everything was refused."""
    return "100" if made == refused else f"{refused * 10000 // made / 100:.2f}"


def survivors(figures: Figures) -> str:
    by_edit: dict[tuple[str, str | None], Counter[str]] = {}
    for (care, edit, why), times in figures.survivors.items():
        by_edit.setdefault((edit, why), Counter())[care] += times
    return "\n".join(
        f"- {edit} ({', '.join(f'{care} {times}' for care, times in sorted(cares.items()))}): {why or 'NO REASON'}"
        for (edit, why), cares in sorted(by_edit.items(), key=str)
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tamper", description="Edits an archive and audits each edit.")
    parser.add_argument("archive", type=Path, metavar="DIR")
    parser.add_argument("--share", type=float, default=1.0, metavar="F", help="the share of all edits, 0 to 1")
    parser.add_argument("--legal", type=float, metavar="F", help="the share of the legal edits; else as --share")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="which edits a share holds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    parser.add_argument("--checkout", type=Path, default=REPOSITORY, metavar="DIR", help="the sources that the archive is of")
    given = parser.parse_args()
    began = time.monotonic()
    legal = given.share if given.legal is None else given.legal
    figures = measure(given.archive, given.share, given.seed, legal=legal, checkout=given.checkout)
    if given.json:
        told = {"share": given.share, "legal": legal, "seed": given.seed, **figures.data()}
        given.json.write_text(json.dumps(told, indent=1) + "\n")
    print(table(figures))
    print(f"\nWhat passes:\n\n{survivors(figures)}\n")
    audits = sum(figures.made.values())
    print(f"{audits} audits in {time.monotonic() - began:.0f} s; {figures.cross_checked} refused in the whole archive as well")
    for line in figures.bad():
        print(f"bad: {line}")
    return 1 if figures.bad() else 0


if __name__ == "__main__":
    sys.exit(main())

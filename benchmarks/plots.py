"""Pictures of what grows: one SVG for each growth, cost against size, for `docs/`.

The same results give the same bytes: no date is written, ids are counted from a fixed salt, and text stays text.
"""

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.measuring import Measured
from benchmarks.results import FamilyResults, file_name, write

MISSING = "matplotlib is not installed: pip install -e '.[bench]'"


def draw(families: Iterable[FamilyResults], folder: Path) -> list[Path]:
    """Write a picture for each growth into `folder`, and return their paths. Raises ImportError without matplotlib, OSError."""
    drawn = []
    for family in families:
        for part in family.parts:
            if part.quantity and any(not line.skipped for line in part.lines):
                path = folder / file_name(family.name, part.name)
                write(path, svg(part))
                drawn.append(path)
    return drawn


def svg(part: Measured) -> str:
    """The picture of one growth: both axes by powers of ten, one line for each series."""
    import matplotlib as mpl  # noqa: PLC0415 - an optional package, and slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context({"svg.hashsalt": "halt23", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(7, 4), layout="constrained")
        _fill(figure.subplots(), part)
        picture = io.StringIO()
        figure.savefig(picture, format="svg", metadata={"Date": None, "Creator": None})
    return picture.getvalue()


def _fill(axes: Any, part: Measured) -> None:
    for line in part.lines:
        if not line.skipped:
            axes.plot(part.sizes, line.values, marker="o", label=line.name)
    axes.set_xscale("symlog" if 0 in part.sizes else "log")
    axes.set_xticks(part.sizes, [f"{size:,}" for size in part.sizes])
    axes.minorticks_off()
    axes.set_yscale("log")
    bottom, top = axes.get_ylim()
    if top < 10 * bottom:  # what is flat is to look flat
        middle = (bottom * top) ** 0.5
        axes.set_ylim(middle / 10**0.5, middle * 10**0.5)
    axes.set_xlabel(part.quantity)
    axes.set_ylabel(part.unit)
    axes.set_title(part.name)
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend()

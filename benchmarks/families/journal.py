"""Journals of a million records: opening against a plain read with checksums, in flat memory; a pass over many receipts."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import journals
from benchmarks.measuring import FLAT, LINEAR, Comparison, Contender, Goal, Growth, Part, Series, Slope

SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (100, 200)
PASSES, QUICK_PASSES = (10_000, 100_000), (50, 100)


def parts(quick: bool) -> Iterator[Part]:
    """Opening, reading and passing, each in processes of their own."""
    sizes, passes = (QUICK_SIZES, QUICK_PASSES) if quick else (SIZES, PASSES)
    with tempfile.TemporaryDirectory() as folder:
        directories = {size: Path(folder) / f"{size}" for size in sizes}
        for size, directory in directories.items():
            journals.write(directory, size, ("receipts",))
        largest = directories[sizes[-1]]
        yield Comparison(
            f"a journal of {sizes[-1]:,} records",
            "seconds",
            (
                Contender("open", lambda _round: journals.took("open", largest)["seconds"], "checks every record, indexes it"),
                Contender("read", lambda _round: journals.took("read", largest)["seconds"], "streams the records"),
                Contender(
                    "floor", lambda _round: journals.took("floor", largest)["seconds"], "reads the lines, sha256 of each"
                ),
            ),
            (
                Goal(f"journal: opening {sizes[-1]:,} records over a plain read with checksums", "open", "floor", at_most=3),
                Goal("journal: streaming them over the same", "read", "floor"),
            ),
            rounds=3,
            warm_up=0,
        )
        yield Growth(
            "opening a journal",
            "records",
            "seconds",
            sizes,
            tuple(
                Series(work, lambda size, work=work: journals.took(work, directories[size])["seconds"])  # type: ignore[misc]
                for work in ("open", "read", "floor")
            ),
            (Slope("journal: cost of a record when opening the largest over the smallest", "open", LINEAR, 1.5),),
            rounds=3,
        )
        yield Growth(
            "memory of an open journal",
            "records",
            "MiB at the peak",
            sizes,
            tuple(
                Series(work, lambda size, work=work: journals.took(work, directories[size])["peak_mib"])  # type: ignore[misc]
                for work in ("open", "read", "floor")
            ),
            (Slope("journal: peak memory of opening the largest over the smallest", "open", FLAT, 2),),
        )
        over = {size: Path(folder) / f"pass-{size}" for size in passes}
        for size, directory in over.items():
            journals.write(directory, size, journals.ALL)
        yield Growth(
            "a pass over delivered intentions",
            "receipts",
            "seconds",
            passes,
            (Series("pass", lambda size: journals.took("pass", over[size])["seconds"]),),
            (Slope("journal: cost of a receipt in the next pass, most over fewest receipts", "pass", LINEAR, 1.25),),
            rounds=3,
        )

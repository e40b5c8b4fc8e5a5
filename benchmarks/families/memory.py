"""Peak memory: of the dispatcher."""

from collections.abc import Iterator

from benchmarks import scanning
from benchmarks.measuring import Part


def parts(quick: bool) -> Iterator[Part]:
    """Scans of growing size."""
    yield from scanning.parts(quick)

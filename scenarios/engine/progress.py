"""What a person sees while a study runs: a moving bar on a terminal, one plain line a scenario anywhere else."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

from scenarios.engine.runner import ScenarioResult


class Progress(Protocol):
    """Told of each scenario that has ended."""

    def ended(self, result: ScenarioResult, seconds: float) -> None:
        """One scenario ended after so many seconds."""


def summary_line(result: ScenarioResult, seconds: float) -> str:
    """`PASS delivery/keyed_delivery  5 processes  0.12 s`."""
    verdict = "FAIL" if result.problems else "PASS"
    return f"{verdict} {result.scenario.path}  {len(result.processes)} processes  {seconds:.2f} s"


class _Plain:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def ended(self, result: ScenarioResult, seconds: float) -> None:
        print(summary_line(result, seconds), file=self._stream, flush=True)


@contextmanager
def shown(total: int, stream: TextIO) -> Iterator[Progress]:
    """The progress display for `total` scenarios on `stream`."""
    if not stream.isatty():
        yield _Plain(stream)
        return
    # Only a terminal needs it, and it costs a twentieth of a second to load.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    from rich.progress import Progress as Bar  # noqa: PLC0415

    console = Console(file=stream)
    columns = (
        TextColumn("scenarios"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)

        class Rich:
            def ended(self, result: ScenarioResult, seconds: float) -> None:
                bar.update(task, advance=1, description=result.scenario.path)
                style = "red" if result.problems else "green"
                bar.console.print(summary_line(result, seconds), style=style, highlight=False)

        yield Rich()

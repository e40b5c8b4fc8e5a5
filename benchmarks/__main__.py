"""Measure, print, and write what was measured.

    python -m benchmarks [NAME ...] [--list] [--rounds N] [--quick] [--out FILE] [--plots DIR]

Without a name all families are measured, which takes most of an hour; run them on a machine that does nothing else. The
results go to `benchmarks/results.json`, `results.md`, the pictures in `docs/` and the block of ratios in README; a family that
was not measured keeps what it had. With `--quick` everything is small, nothing is meant to be believed, and nothing is written
unless `--out` says where.

Exit codes: 0 it was measured, whatever came out; 1 a benchmark failed; 2 bad usage; 3 interrupted.
"""

import argparse
import contextlib
import importlib
import importlib.util
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import families, plots, results
from benchmarks.floor import Failed
from benchmarks.machine import machine
from benchmarks.measuring import Measured, measure
from benchmarks.results import FamilyResults, UnreadableResults
from outbox.errors import Halt23Error

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
README = HERE.parent / "README.md"
PLOTS = HERE.parent / "docs"
MAX_ROUNDS = 1000


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line asks for; returns the exit code."""
    given = _parser().parse_args(argv)
    console = Console(soft_wrap=True)
    if given.list:
        for name in families.NAMES:
            console.print(f"{name:10} {title(name)}", highlight=False)
        return 0
    try:
        return _measure(given, console)
    except (BadCommand, UnreadableResults) as error:
        print(f"python -m benchmarks: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; of this family nothing is kept", file=sys.stderr)
        return 3


class BadCommand(Exception):
    """The command line asks for what there is not. Remedy: the message says."""


def _measure(given: argparse.Namespace, console: Console) -> int:
    unknown = sorted(set(given.names) - set(families.NAMES))
    if unknown:
        raise BadCommand(f"no family is called {', '.join(unknown)}; there are: {', '.join(families.NAMES)}")
    out, folder = _places(given)
    if out:
        results.read(out)  # raises what there is against it, before anything is measured
    code = 0
    for name in given.names or families.NAMES:
        try:
            measured = _family(name, given, console)
        except (Failed, Halt23Error, OSError, subprocess.SubprocessError, AssertionError) as error:
            # The families after it can be measured all the same.
            print(f"python -m benchmarks: {name} was not measured: {type(error).__name__}: {error}", file=sys.stderr)
            code = 1
            continue
        if out:
            # Read again: another run may have written meanwhile.
            _write(results.merged(results.read(out), [measured], families.NAMES), out, folder)
    return code


def _places(given: argparse.Namespace) -> tuple[Path | None, Path | None]:
    """Where the results go, and the pictures; each None for nowhere."""
    out = given.out or (None if given.quick else RESULTS)
    folder = given.plots or (PLOTS if out == RESULTS else None)
    if given.plots and out is None:
        raise BadCommand("--plots with --quick needs --out: pictures are made of results")
    if out and not out.parent.is_dir():
        raise BadCommand(f"--out {out}: there is no folder {out.parent}")
    if out and (reason := _cannot_write(out)):
        raise BadCommand(reason)
    if folder and importlib.util.find_spec("matplotlib") is None:
        raise BadCommand(f"{plots.MISSING}; or write no pictures: --out FILE")
    if folder and not folder.is_dir():
        raise BadCommand(f"--plots {folder}: there is no such folder")
    return out, folder


def _cannot_write(out: Path) -> str | None:
    try:
        with tempfile.NamedTemporaryFile(dir=out.parent, prefix=f".{out.name}."):
            pass
        if out == RESULTS:
            results.with_block(README.read_text("utf-8"), "")
    except OSError as error:
        return f"--out {out}: nothing can be written there: {error.strerror}"
    except ValueError as error:
        return str(error)
    return None


def _end(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


def title(name: str) -> str:
    """The first line of a family's docstring."""
    return (importlib.import_module(f"benchmarks.families.{name}").__doc__ or name).splitlines()[0]


def _family(name: str, given: argparse.Namespace, console: Console) -> FamilyResults:
    module = importlib.import_module(f"benchmarks.families.{name}")
    on, began = machine(), time.monotonic()
    console.rule(f"{name}: {title(name)}")
    found = []
    with contextlib.closing(module.parts(given.quick)) as parts, console.status("") as status:
        for part in parts:
            found.append(measure(part, status.update, 1 if given.quick else given.rounds))
            _print(found[-1], console)
    console.print(f"{name} took {time.monotonic() - began:.0f} seconds; load {on['load average at the beginning']} before")
    return FamilyResults(name, title(name), f"{datetime.now(UTC):%Y-%m-%d}", on, tuple(found))


def _print(part: Measured, console: Console) -> None:
    columns = [f"{size:,}" for size in part.sizes] or ["median", "least", "most"]
    table = Table("", *columns, "", title=f"{part.name} ({part.unit})")
    for line in part.lines:
        if line.skipped is not None:
            table.add_row(line.name, *[""] * len(columns), f"not measured: {line.skipped}")
        else:
            values = line.values if part.sizes else (line.median, min(line.values), max(line.values))
            table.add_row(line.name, *map(results.number, values), line.note)
    console.print(table)
    for verdict in part.verdicts:
        console.print(f"  {results.verdict_in_words(verdict)}", highlight=False)


def _write(families_: tuple[FamilyResults, ...], out: Path, folder: Path | None) -> None:
    results.write(out.with_suffix(".md"), results.as_markdown(families_))
    results.write(out, results.as_json(families_))
    if folder is not None:
        plots.draw(families_, folder)
    if out == RESULTS:
        results.write(README, results.with_block(README.read_text("utf-8"), results.readme_block(families_)))


def _rounds(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_ROUNDS):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of rounds; expected 1 to {MAX_ROUNDS}")
    return int(text)


def _json_file(text: str) -> Path:
    path = Path(text)
    if path.suffix != ".json":
        raise argparse.ArgumentTypeError(f"{text!r} does not end in .json; the Markdown is written beside it")
    return path


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="families to measure; without one all of them")
    parser.add_argument("--list", action="store_true", help="name the families and what they measure")
    parser.add_argument("--rounds", type=_rounds, metavar="N", help="counted rounds, in place of each part's own number")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, one round whatever --rounds says, nothing written without --out"
    )
    parser.add_argument("--out", type=_json_file, metavar="FILE", help="where results go, FILE.json and FILE.md beside it")
    parser.add_argument(
        "--plots", type=Path, metavar="DIR", help="where pictures go; with --out there are none unless asked for"
    )
    return parser


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    sys.exit(main())

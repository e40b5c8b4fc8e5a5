"""halt23: run the study. Parses the command line, calls `scenarios`, prints, and says by its exit code how it went.

    python run.py --out DIR            the whole study into a new directory
    python run.py list                 the scenarios with their expected counts
    python run.py points               the fault points that can be armed
    python run.py report DIR           the page of an archive again, and its pictures as files
    python run.py explore --out DIR    crash cases derived by the machine, each judged
    python run.py check worker|receiver TARGET.toml --out DIR   somebody else's program, crashed and judged
    python run.py replay CASE --out DIR, and shrink CASE --out DIR: one case again, or with the fewest faults that fail

Exit codes: 0 everything as expected, 1 something is not, 2 bad usage, 3 interrupted or incomplete.
"""

import os
import signal
import sys

# What a stop came before; a command that writes without a handler of its own says more.
_REACHED = ["anything was started"]

if __name__ == "__main__":
    # The imports below take a moment, and until the study stands there is nothing to end: a stop is told and that is all.
    def _stopped_early(number: int, _frame: object) -> None:
        os.write(2, f"run.py: stopped by {signal.Signals(number).name} before {_REACHED[-1]}\n".encode())
        os._exit(3)

    for _signal in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(_signal) is not signal.SIG_IGN:
            signal.signal(_signal, _stopped_early)

import argparse
import gc
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from outbox import faults
from outbox.errors import BadInput, Halt23Error, say
from scenarios.catalogue import PROTOCOL_VERSION, SCENARIOS
from scenarios.engine.study import StudyOptions, run_study
from scenarios.model import SQLITE, STORES, protocol_sha256
from scenarios.selection import select

SUBCOMMANDS = ("list", "points", "report", "explore", "replay", "shrink", "check")


def study(arguments: argparse.Namespace) -> int:
    """Run the selected scenarios and print the tables' verdict."""
    if arguments.jobs is not None and arguments.jobs < 1:
        raise BadInput(f"--jobs {arguments.jobs}: expected a positive number")
    chosen = select(SCENARIOS, arguments.only, arguments.section, arguments.store)
    given = {name: getattr(arguments, name) for name in ("spawn", "jobs") if getattr(arguments, name) is not None}
    result = run_study(chosen, StudyOptions(arguments.out, store=arguments.store, **given), sys.stderr or io.StringIO())
    for problem in result.problems:
        print(problem, file=sys.stderr)
    verdict = "FAIL" if result.problems else "PASS"
    print(
        f"{verdict} {arguments.out}: {len(result.results)} scenarios, {result.processes} child processes, "
        f"{result.wall_seconds:.2f} s; tables in {arguments.out / 'tables.md'}"
    )
    print(f"Now let the audit count again: python audit/audit.py {arguments.out}")
    if result.no_page is None:
        print(f"And look at it in a browser: {arguments.out / 'report.html'}")
    else:
        print(result.no_page, file=sys.stderr)
    return 1 if result.problems else 0


def list_scenarios(arguments: argparse.Namespace) -> int:
    """Print the catalogue."""
    if arguments.json:
        protocol = {"version": PROTOCOL_VERSION, "sha256": protocol_sha256(SCENARIOS)}
        print(json.dumps({"protocol": protocol, "scenarios": [scenario.data() for scenario in SCENARIOS]}, indent=1))
        return 0
    for scenario in SCENARIOS:
        counts = "  ".join(f"{name} {value}" for name, value in asdict(scenario.expected).items())
        mark = "  (counterexample)" if scenario.counterexample else ""
        mark += f"  [--store {scenario.store}]" if scenario.store else ""
        print(f"{scenario.path:<32} {scenario.shows}{mark}\n{'':<32} {counts}")
    return 0


def list_points(arguments: argparse.Namespace) -> int:
    """Print the declared fault points, the scenarios that fire them, and which modes of exploring work on this machine."""
    from scenarios.explore import modes  # noqa: PLC0415 - only here

    fired: dict[str, list[str]] = {}
    for scenario in SCENARIOS:
        for step in scenario.steps:
            halt_at = getattr(step, "halt_at", None)
            if halt_at:
                fired.setdefault(faults.parse(halt_at).point, []).append(scenario.path)
    points = [
        {"point": name, "meaning": meaning, "scenarios": fired.get(name, [])} for name, meaning in faults.declared().items()
    ]
    if arguments.json:
        print(json.dumps(points, indent=1))
        return 0

    for point in points:
        used = f"  [{', '.join(point['scenarios'])}]" if point["scenarios"] else ""
        print(f"{point['point']:<28} {point['meaning']}{used}")
    for line in modes.told():
        print(line)
    return 0


def report(arguments: argparse.Namespace) -> int:
    """Draw the page of an archive again, or its pictures as files. Nothing is overwritten."""
    from scenarios.report import command as pictures  # noqa: PLC0415 - the other commands do without a template engine

    _REACHED.append("everything was written")
    page = pictures.where(arguments.archive, arguments.out, pictures=bool(arguments.svg or arguments.mermaid))
    for line in pictures.write(arguments.archive, pictures.Wanted(page, arguments.svg, arguments.mermaid)):
        print(f"written: {line}")
    return 0


def explore(arguments: argparse.Namespace) -> int:
    """Derive crash cases from runs without faults, play them all, and say what did not hold."""
    from scenarios.explore import command  # noqa: PLC0415 - as above
    from scenarios.explore.campaign import Plan  # noqa: PLC0415
    from scenarios.explore.levels import POINTS  # noqa: PLC0415

    for name in ("jobs", "budget", "workers"):
        value = getattr(arguments, name)
        if value is not None and value < 1:
            raise BadInput(f"--{name} {value}: expected a positive number")
    if arguments.oracle:
        return _oracle(arguments)
    spread = command.Spreading(arguments.workers, arguments.dask)
    spread.check(arguments.store)
    plan = Plan(
        command.choose(arguments.subject),
        mode=arguments.mode or POINTS,
        depth=arguments.depth,
        budget=arguments.budget,
        keep=arguments.keep,
        jobs=arguments.jobs or os.cpu_count() or 1,
        seed=_seed(arguments),
    )
    asked = command.Exploring(arguments.out, plan, _spawn(arguments), arguments.store, resume=arguments.resume, spread=spread)
    return command.explore(asked, sys.stderr or io.StringIO())


def _seed(arguments: argparse.Namespace) -> int | None:
    """The first seed of a campaign of mode random; None in other modes."""
    from scenarios.explore.model import RANDOM  # noqa: PLC0415 - as above

    seed: int | None = arguments.seed
    if arguments.mode != RANDOM:
        if seed is not None:
            raise BadInput(f"--seed {seed}: it goes with --mode {RANDOM}")
        return None
    if arguments.depth != 1:
        raise BadInput(f"--depth {arguments.depth}: a history of mode {RANDOM} is as deep as it is; leave it out")
    if seed is not None and not 0 <= seed < 10**17:
        raise BadInput(f"--seed {seed}: expected 0 or more, of at most 17 digits")
    return 1 if seed is None else seed


def _oracle(arguments: argparse.Namespace) -> int:
    from scenarios.explore import oracle  # noqa: PLC0415 - as above
    from scenarios.explore.model import RANDOM  # noqa: PLC0415

    for name, usual in (
        ("resume", False),
        ("depth", 1),
        ("store", SQLITE),
        ("seed", None),
        ("workers", None),
        ("dask", None),
    ):
        if getattr(arguments, name) != usual:
            raise BadInput(f"--oracle does not go with --{name}")
    if arguments.mode == RANDOM:
        raise BadInput(f"--oracle does not go with --mode {RANDOM}: each of its campaigns has a canary, which is the oracle's")
    asked = oracle.Asked(
        arguments.out,
        _spawn(arguments),
        modes=(arguments.mode,) if arguments.mode else oracle.MODES,
        patterns=tuple(arguments.subject),
        budget=arguments.budget,
        keep=arguments.keep,
        jobs=arguments.jobs or os.cpu_count() or 1,
    )
    return oracle.run(asked, sys.stderr or io.StringIO())


def replay(arguments: argparse.Namespace) -> int:
    """Play one case again, keep its files, and tell its story."""
    from scenarios.explore import command  # noqa: PLC0415

    return command.replay(arguments.case, arguments.out, _spawn(arguments), arguments.store)


def shrink(arguments: argparse.Namespace) -> int:
    """Find the fewest faults of a failing case that still fail."""
    from scenarios.explore import command  # noqa: PLC0415

    return command.shrink(arguments.case, arguments.out, _spawn(arguments), arguments.store)


def _spawn(arguments: argparse.Namespace) -> str:
    given: str | None = arguments.spawn
    return given or StudyOptions(arguments.out).spawn


def parser() -> argparse.ArgumentParser:
    """The command line. Without a subcommand it is the study's."""
    top = argparse.ArgumentParser(
        prog="run.py",
        description="A crash-injection study of message delivery: local durability is not remote exactly-once.",
        epilog="Other commands: run.py list [--json], run.py points [--json], run.py report DIR. Then: audit/audit.py DIR",
    )
    top.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new directory for the evidence")
    top.add_argument("--only", nargs="+", action="extend", default=[], metavar="GLOB", help="scenarios by name or section/name")
    top.add_argument("--section", nargs="+", action="extend", default=[], metavar="NAME", help="whole sections")
    top.add_argument("--spawn", choices=("fork", "exec"), help="how processes are started (default: fork on Linux)")
    top.add_argument("--jobs", type=int, metavar="N", help="scenarios at once (default: one a core)")
    top.add_argument("--store", choices=STORES, default=SQLITE, help="the dispatch outbox's database (default: sqlite)")
    top.set_defaults(command=study)
    return top


def subcommand_parser() -> argparse.ArgumentParser:
    """The command line of the commands that run nothing."""
    top = argparse.ArgumentParser(prog="run.py")
    commands = top.add_subparsers(required=True)
    for name, function in (("list", list_scenarios), ("points", list_points)):
        command = commands.add_parser(name, description=function.__doc__)
        command.add_argument("--json", action="store_true", help="for machines")
        command.set_defaults(command=function)
    command = commands.add_parser("report", description=report.__doc__)
    command.add_argument("archive", type=Path, metavar="DIR", help="an archive that run.py made")
    command.add_argument("--out", type=Path, metavar="FILE", help="a new file for the page (default: DIR/report.html)")
    command.add_argument("--svg", type=Path, metavar="DIR", help="a new folder for a picture of each scenario as SVG")
    command.add_argument("--mermaid", type=Path, metavar="DIR", help="a new folder for the same as Mermaid text")
    command.set_defaults(command=report)
    command = commands.add_parser("explore", description=explore.__doc__)
    command.add_argument(
        "--subject", nargs="+", action="extend", default=[], metavar="GLOB", help="journal/keyed, dispatch/* …"
    )
    command.add_argument(
        "--mode",
        choices=("points", "wire", "pauses", "lines", "syscalls", "power", "random"),
        help="where the faults strike (default: points)",
    )
    command.add_argument(
        "--oracle", action="store_true", help="systems with a mistake, each of which must be caught, and their correct twins"
    )
    command.add_argument(
        "--depth", type=int, choices=(1, 2, 3), default=1, help="deaths in a row, each in the recovery from the last"
    )
    command.add_argument("--budget", type=int, metavar="N", help="at most N cases (with --oracle: of each system and mode)")
    command.add_argument(
        "--seed", type=int, metavar="N", help="of --mode random: the histories of the seeds from N on (default: 1)"
    )
    command.add_argument("--keep", choices=("failed", "all"), default="failed", help="whose files stay")
    command.add_argument("--jobs", type=int, metavar="N", help="cases at once (default: one a core)")
    command.add_argument("--workers", type=int, metavar="N", help="play the cases in N processes of a pool")
    command.add_argument("--dask", metavar="ADDRESS", help="play them on the Dask cluster of this scheduler, 127.0.0.1:PORT")
    command.add_argument("--resume", action="store_true", help="go on with a campaign that was interrupted")
    command.set_defaults(command=explore)
    for name, function in (("replay", replay), ("shrink", shrink)):
        command = commands.add_parser(name, description=function.__doc__)
        command.add_argument("case", metavar="CASE", help="its name, as a campaign prints it; or a file of seeds/")
        command.set_defaults(command=function)
    for command in (commands.choices[name] for name in ("explore", "replay", "shrink")):
        command.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new directory")
        command.add_argument("--spawn", choices=("fork", "exec"), help="how processes are started (default: fork on Linux)")
        command.add_argument("--store", choices=STORES, default=SQLITE, help="the dispatch outbox's database (default: sqlite)")
    return top


def check_parser() -> argparse.ArgumentParser:
    """The command line of the checks of somebody else's programs."""
    from scenarios.targets import command  # noqa: PLC0415 - as above

    top = argparse.ArgumentParser(prog="run.py")
    commands = top.add_subparsers(required=True)
    command.add_to(commands.add_parser("check", description="Crash somebody else's worker or receiver, and judge it."))
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Entry; returns the exit code."""
    given = sys.argv[1:] if argv is None else list(argv)
    chosen = (check_parser() if given[0] == "check" else subcommand_parser()) if given and given[0] in SUBCOMMANDS else parser()
    arguments = chosen.parse_args(given)
    try:
        code = int(arguments.command(arguments))
    except Halt23Error as error:
        say(f"run.py: {error}", sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        say("run.py: stopped by SIGINT", sys.stderr)
        return 3
    except BrokenPipeError:
        return _unread(0)  # who read our output has seen enough
    except OSError as error:  # all others have become errors of ours where they happened
        say(f"run.py: standard output cannot be written: {error.strerror}", sys.stderr)
        return _unread(3)
    return _flushed(code)


def _flushed(code: int) -> int:
    """`code`, unless what was printed cannot be delivered."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        return _unread(code)
    except OSError as error:
        say(f"run.py: standard output cannot be written: {error.strerror}", sys.stderr)
        return _unread(3)
    return code


def _unread(code: int) -> int:
    # Python would complain once more when it flushes at its end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


if __name__ == "__main__":
    gc.freeze()  # what was imported stays: no collection needs to look through it again
    sys.exit(main())

"""`run.py check KIND …`: the command line of all kinds of check. A kind is a module with `options(parser)` and `run(given)`."""

import argparse
import importlib
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of check: the module that does it, and what it is for."""

    module: str
    told: str


KINDS: Mapping[str, Kind] = {
    "receiver": Kind(
        "scenarios.targets.receiver_command", "what somebody else's receiver loses, applies twice or leaves stuck"
    ),
}


def parser() -> argparse.ArgumentParser:
    """The command line. `command` of what it parses is the function to call with it; it returns the exit code."""
    top = argparse.ArgumentParser(
        prog="run.py check",
        description="Check somebody else's program, described in a target file.",
        epilog="Exit codes: 0 PASS, 1 FAIL, 2 the target file or the target itself cannot be used, 3 UNKNOWN or interrupted.",
    )
    kinds = top.add_subparsers(required=True, metavar="KIND")
    for name, kind in KINDS.items():
        module = importlib.import_module(kind.module)
        command = kinds.add_parser(name, help=kind.told, description=f"Check {kind.told}.")
        module.options(command)
        command.set_defaults(command=module.run)
    return top

"""What tests of the battery share: target files of our own receivers, and a check of one."""

import io
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scenarios.engine.study import ROOT
from scenarios.targets.receiver_command import Asked, check

PROGRAMS = Path(__file__).parent / "programs"
OWN = ("{python}", "-m", "receivers")

TARGET = """
name = "under-test"
environment = {{ PYTHONPATH = "{root}", MODE = "{mode}" }}

[receiver]
command = {command}
ready_seconds = {ready_seconds}

[receiver.operation]
path = "/operations"
headers = {{ "Content-Type" = "application/json" }}
body = '{{"amount": 5, "note": "{{operation}}"}}'
other_body = '{{"amount": 6, "note": "{{operation}}"}}'

[receiver.effects]
{effects}

[receiver.policy]
{policy}
"""
COUNT = 'url = "/effects"\npointer = "/count"'


class Checked(NamedTuple):
    """The exit code of a check, and its results by expectation."""

    code: int
    results: Mapping[str, Mapping[str, Any]]

    def severities(self, name: str) -> set[str]:
        """How grave what was seen of an expectation is, over all of its places; empty where it was met everywhere."""
        return {
            line["severity"]
            for case, line in self.results.items()
            if case.partition(":")[0] == name and line["verdict"] == "violated"
        }


def own(kind: str, *options: str) -> list[str]:
    """The command of one of our receivers."""
    return [*OWN, kind, "--dir", "{dir}/receiver", "--port", "{port}", *options]


def mistaken(variant: str) -> list[str]:
    """The command of a receiver with one mistake."""
    return ["{python}", "-m", "scenarios.oracle.receivers", variant, "--dir", "{dir}/receiver", "--port", "{port}"]


def program(name: str) -> list[str]:
    """The command of a program that is there for the tests."""
    return ["{python}", str(PROGRAMS / name), "{port}", "{dir}"]


def target(
    directory: Path,
    command: Sequence[str],
    *,
    policy: str = "",
    mode: str = "",
    effects: str = COUNT,
    ready_seconds: float = 20.0,
) -> Path:
    """Write a target file."""
    file = directory / "target.toml"
    text = TARGET.format(
        root=ROOT, command=json.dumps(list(command)), policy=policy, mode=mode, effects=effects, ready_seconds=ready_seconds
    )
    file.write_text(text)
    return file


def checked(file: Path, only: str | None = None) -> Checked:
    """Check it into a folder beside its file. Raises as the command does."""
    out = file.parent / f"out-{only or 'all'}".replace(":", "_")
    code = check(Asked(file, out, only, sys.executable), io.StringIO())
    lines = [json.loads(text) for text in (out / "results.jsonl").read_text().splitlines()]
    return Checked(code, {line["expectation"]: line for line in lines})

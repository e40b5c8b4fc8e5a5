"""The receiver targets in examples/targets: each file reads well and says what it is made of; each one that is installed serves.

Whoever has not installed a package sees the line that would; `pip install -e '.[test,targets]'` has them all.
"""

import asyncio
import importlib.util
import shutil
import sqlite3
import sys
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from scenarios.engine.supervisor import Launch, Supervisor
from scenarios.targets import file, model
from scenarios.targets.model import Target

TARGETS = Path(__file__).parents[2] / "examples" / "targets"
FILES = sorted(each for each in TARGETS.glob("*/target.toml") if "\n[receiver]\n" in each.read_text())
NAMES = [each.parent.name for each in FILES]
PACKAGES = {
    "asgi-idempotency-header",
    "django-idempotency-key",
    "drf-idempotency",
    "fastapi-idempotency",
    "fastidempotent",
    "ichido",
    "idemgate",
    "idemkit",
}


def test_the_packages_that_the_documentation_names_are_there() -> None:
    made_of = {target.contents.package.name for target in map(file.read, FILES) if target.contents.package}
    assert made_of >= PACKAGES
    assert {"bare-fastapi", "reference-sqlite", "own-keyed", "own-unkeyed"} <= set(NAMES)


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_a_target_says_what_it_is_made_of_and_what_that_promises(path: Path) -> None:
    contents = file.read(path).contents
    assert contents.name == path.parent.name
    assert contents.about
    package = contents.package
    assert package is not None
    assert all((package.name, package.version, package.install, package.imports, package.guarantee, package.source))
    assert package.name == "halt23" or f"=={package.version}" in package.install

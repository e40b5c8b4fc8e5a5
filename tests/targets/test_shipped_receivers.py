"""The receiver targets in examples/targets: each file reads well and says what it is made of; each installed one serves.

Whoever has not installed a package sees the line that would; `pip install -e '.[test,targets]'` has them all.
"""

import sys
from pathlib import Path

import pytest

from scenarios.engine.study import ROOT
from scenarios.engine.supervisor import Supervisor
from scenarios.targets import file, presence
from scenarios.targets.receiver_check import usual
from scenarios.targets.receiver_stand import Site, Stand
from scenarios.targets.services import Services

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


# The one that needs nothing but Python is quick; an application of a framework takes seconds to start.
@pytest.mark.parametrize(
    "path", [pytest.param(each, marks=() if "reference" in str(each) else pytest.mark.campaign) for each in FILES], ids=NAMES
)
async def test_a_target_starts_and_takes_an_operation_once_or_says_what_to_install(path: Path, tmp_path: Path) -> None:
    target = file.read(path)
    reason = presence.look(target, sys.executable).missing
    if reason is not None:
        pytest.skip(reason)
    async with Services(target.contents.services) as given, Supervisor(ROOT, "fork") as supervisor:
        site = Site(target, supervisor, sys.executable, given, tmp_path)
        async with Stand(site, tmp_path / "receiver") as stand:
            first, _again = await usual(stand)
    assert first.success

"""The targets under examples/targets: each file reads well and says what it is about; each worker delivers where it can run."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from scenarios.targets import file, presence
from scenarios.targets.model import Target
from tests.support import ROOT
from tests.targets.engine import slot_of

FOLDER = ROOT / "examples" / "targets"
FILES = sorted(FOLDER.glob("*/target.toml"))
TARGETS = [file.read(each) for each in FILES]
FAST = [each for each in TARGETS if each.contents.worker is not None and not each.contents.services]


def names(target: Target) -> str:
    return target.name


@pytest.mark.parametrize("target", TARGETS, ids=names)
def test_a_target_is_named_for_its_folder_and_says_what_it_is_and_what_it_promises(target: Target) -> None:
    package = target.contents.package
    assert target.name == target.folder.name
    assert target.contents.about
    assert package is not None
    assert all((package.name, package.version, package.install, package.guarantee, package.source))


@pytest.mark.parametrize("target", TARGETS, ids=names)
def test_every_program_of_a_target_lies_in_its_folder(target: Target) -> None:
    text = target.file.read_text("utf-8")
    for name in re.findall(r"\{target\}/(\w[\w./-]*)", text):
        assert (target.folder / name).is_file(), name


def test_the_extra_targets_pins_the_version_that_a_target_names() -> None:
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]["targets"]
    pins = {re.split(r"[\[=]", each)[0].lower(): each.split("==")[1] for each in extra if "==" in each}
    for target in TARGETS:
        package = target.contents.package
        assert package is not None
        if package.name.lower() in pins:
            assert (target.name, package.version) == (target.name, pins[package.name.lower()])
        for name, version in re.findall(r"([\w-]+)(?:\[[\w,]+\])?==([\w.]+)", package.install):
            assert (target.name, name, version) == (target.name, name, pins.get(name.lower(), version))


@pytest.mark.campaign
@pytest.mark.parametrize("target", FAST, ids=names)
async def test_a_worker_of_the_fast_set_delivers_without_a_fault(target: Target, tmp_path: Path) -> None:
    found = presence.look(target, sys.executable)
    if found.missing is not None:
        pytest.skip(found.missing)
    async with slot_of(target, tmp_path) as (_commands, runs, _slot):
        await runs.first()

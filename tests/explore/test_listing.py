"""`POINTS_TO`: any program lists the points that it reaches, also one that dies there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from outbox import faults
from tests.support import Ended, ProcessBox

WRITE = ["intention.append.before", "intention.append.torn", "intention.append.written", "intention.append.synced"]
CREATE = ["intentions.create.before", "intentions.create.written", "intentions.create.synced"]


@pytest.fixture(scope="module")
def box() -> Iterator[ProcessBox]:
    with ProcessBox(preloaded=("outbox.producer",)) as opened:
        yield opened


def produce(box: ProcessBox, directory: Path, **environment: str) -> Ended:
    return box.run("outbox.producer", ["--dir", str(directory), "--key", "k", "--body", "{}"], environment)


def test_points_are_listed_in_the_order_in_which_they_are_reached(box: ProcessBox, tmp_path: Path) -> None:
    listed = tmp_path / "points"
    assert produce(box, tmp_path / "outbox", POINTS_TO=str(listed)).exit_code == 0
    assert listed.read_text().split() == [*CREATE, *WRITE]


def test_a_list_is_added_to(box: ProcessBox, tmp_path: Path) -> None:
    listed = tmp_path / "points"
    for name in ("one", "two"):
        produce(box, tmp_path / name, POINTS_TO=str(listed))
    assert listed.read_text().split() == 2 * [*CREATE, *WRITE]


@pytest.mark.parametrize("point", [*CREATE, *WRITE])
def test_the_point_of_a_death_is_the_last_of_the_list(box: ProcessBox, tmp_path: Path, point: str) -> None:
    listed = tmp_path / "points"
    ended = produce(box, tmp_path / "outbox", POINTS_TO=str(listed), HALT_AT=point)
    assert ended.exit_code == faults.HALT_EXIT_CODE
    found = listed.read_text().split()
    assert found == [*CREATE, *WRITE][: len(found)]
    assert found[-1] == point


def test_who_lists_writes_the_same_bytes(box: ProcessBox, tmp_path: Path) -> None:
    produce(box, tmp_path / "listed", POINTS_TO=str(tmp_path / "points"))
    produce(box, tmp_path / "plain")
    assert (tmp_path / "listed" / "intentions.jsonl").read_bytes() == (tmp_path / "plain" / "intentions.jsonl").read_bytes()


@pytest.mark.parametrize("where", ["nowhere/points", ""])
def test_a_list_that_cannot_be_written_is_bad_input_and_nothing_is_done(box: ProcessBox, tmp_path: Path, where: str) -> None:
    ended = produce(box, tmp_path / "outbox", POINTS_TO=str(tmp_path / where))
    assert ended.exit_code == 2
    assert "POINTS_TO=" in ended.stderr
    assert not (tmp_path / "outbox").exists()

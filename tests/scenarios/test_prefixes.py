"""The instrument that opens every prefix of a last record, on a ledger that a real receiver wrote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from outbox.files import lock
from tests.receivers.http import connect, head, read_response, records
from tests.support import Ended, ProcessBox

BODY = b"{}"


@pytest.fixture(scope="module")
def box() -> Iterator[ProcessBox]:
    with ProcessBox() as opened:
        yield opened


def ledger(box: ProcessBox, root: Path, effects: int) -> Path:
    """The effects of a receiver that applied so many requests."""
    directory = root / "receiver"
    running = box.start("receivers", ("keyed", "--dir", str(directory)))
    for number in range(1, effects + 1):
        with closing(connect(running.port)) as connection:
            headers = [("Idempotency-Key", f"k-{number}"), ("Content-Length", str(len(BODY)))]
            connection.sendall(head("POST", "/operations", headers) + BODY)
            assert read_response(connection).status == 200
    assert running.stop().exit_code == 0
    return directory / "effects.jsonl"


def examine(box: ProcessBox, root: Path, source: Path) -> Ended:
    """Run the instrument, its temporary files below `root`."""
    scratch = root / "scratch"
    scratch.mkdir(exist_ok=True)
    arguments = ("--dir", str(root / "prefixes"), "--source", str(source))
    ended = box.run("scenarios.prefixes", arguments, {"TMPDIR": str(scratch)})
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    assert list(scratch.iterdir()) == []  # nothing is left behind, whatever happened
    return ended


def found(root: Path) -> list[tuple[str, dict[str, Any]]]:
    return [(record["id"], record["data"]) for record in records(root / "prefixes", "prefixes")]


def expected(earlier: int, length: int) -> list[tuple[str, dict[str, Any]]]:
    """The last record is there exactly when all its bytes are; its newline alone may lack."""
    kept = [earlier + (number >= length - 1) for number in range(length + 1)]
    return [(str(number), {"bytes": number, "kept": k, "after": k + 1}) for number, k in enumerate(kept)]


class Seen(NamedTuple):
    ended: Ended
    root: Path
    source: Path
    before: bytes


@pytest.fixture(scope="module")
def seen(box: ProcessBox, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """Three effects, examined."""
    root = tmp_path_factory.mktemp("prefixes")
    source = ledger(box, root, 3)
    before = source.read_bytes()
    return Seen(examine(box, root, source), root, source, before)


def test_a_source_that_is_missing_is_bad_input_and_nothing_is_made(box: ProcessBox, tmp_path: Path) -> None:
    ended = examine(box, tmp_path, tmp_path / "no.jsonl")
    assert ended.exit_code == 2
    assert ended.stderr == f"prefixes: --source {tmp_path / 'no.jsonl'}: No such file or directory\n"
    assert not (tmp_path / "prefixes").exists()


def test_a_source_that_is_a_folder_is_bad_input(box: ProcessBox, tmp_path: Path) -> None:
    ended = examine(box, tmp_path, tmp_path)
    assert (ended.exit_code, "Is a directory" in ended.stderr) == (2, True)


@pytest.mark.parametrize("arguments", [(), ("--dir", "x"), ("--source", "x"), ("--dir", "x", "--source", "y", "more")])
def test_a_bad_command_line_is_bad_input(box: ProcessBox, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    ended = box.run("scenarios.prefixes", arguments, directory=tmp_path)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert list(tmp_path.iterdir()) == []


def test_a_corrupt_earlier_record_is_refused_with_its_line_and_left_as_it_is(box: ProcessBox, tmp_path: Path) -> None:
    source = ledger(box, tmp_path, 2)
    damaged = source.read_bytes().replace(b'"k-1"', b'"k-7"', 1)
    source.write_bytes(damaged)
    ended = examine(box, tmp_path, source)
    assert ended.exit_code == 14
    assert "effects.jsonl, line 1: its checksum is" in ended.stderr
    assert source.read_bytes() == damaged
    assert found(tmp_path) == []


def test_a_corrupt_last_record_is_refused_as_soon_as_it_shows(box: ProcessBox, tmp_path: Path) -> None:
    source = ledger(box, tmp_path, 2)
    first, last = source.read_bytes().splitlines(keepends=True)
    place = last.index(b'"previous":"') + len(b'"previous":"')
    damaged = first + last[:place] + b"x" + last[place + 1 :]
    source.write_bytes(damaged)
    ended = examine(box, tmp_path, source)
    assert ended.exit_code == 14
    assert "effects.jsonl, line 2: " in ended.stderr
    assert found(tmp_path) == expected(1, len(last))[: place + 1]  # what was found until then stands
    assert source.read_bytes() == damaged


def test_a_second_one_on_the_directory_is_refused(box: ProcessBox, tmp_path: Path) -> None:
    source = ledger(box, tmp_path, 1)
    (tmp_path / "prefixes").mkdir()
    path = tmp_path / "prefixes" / "prefixes.jsonl"
    with path.open("wb") as held:
        lock(held.fileno(), path)
        assert examine(box, tmp_path, source).exit_code == 13


def test_every_prefix_keeps_the_earlier_records_and_the_last_one_only_when_it_is_whole(seen: Seen) -> None:
    assert (seen.ended.exit_code, seen.ended.stderr) == (0, "")
    length = len(seen.before.splitlines(keepends=True)[-1])
    assert found(seen.root) == expected(2, length)


def test_the_source_is_not_touched_and_nothing_else_is_made(seen: Seen) -> None:
    assert seen.source.read_bytes() == seen.before
    assert [path.name for path in (seen.root / "prefixes").iterdir()] == ["prefixes.jsonl"]
    assert {path.name for path in seen.source.parent.iterdir()} == {"effects.jsonl", "arrivals.jsonl"}


def test_a_ledger_without_any_record_is_examined_as_well(box: ProcessBox, tmp_path: Path) -> None:
    assert examine(box, tmp_path, ledger(box, tmp_path, 0)).exit_code == 0
    assert found(tmp_path) == [("0", {"bytes": 0, "kept": 0, "after": 1})]


@pytest.mark.parametrize("earlier", [0, 1])
def test_a_torn_source_is_examined_up_to_where_it_goes(box: ProcessBox, tmp_path: Path, earlier: int) -> None:
    source = ledger(box, tmp_path, earlier + 1)
    *whole, last = source.read_bytes().splitlines(keepends=True)
    torn = b"".join([*whole, last[:40]])
    source.write_bytes(torn)
    assert examine(box, tmp_path, source).exit_code == 0
    assert found(tmp_path) == [(str(n), {"bytes": n, "kept": earlier, "after": earlier + 1}) for n in range(41)]
    assert source.read_bytes() == torn


def test_examining_the_same_again_changes_nothing(box: ProcessBox, tmp_path: Path) -> None:
    source = ledger(box, tmp_path, 2)
    first, last = source.read_bytes().splitlines(keepends=True)
    source.write_bytes(first + last[:5])
    assert examine(box, tmp_path, source).exit_code == 0
    before = (tmp_path / "prefixes" / "prefixes.jsonl").read_bytes()
    assert examine(box, tmp_path, source).exit_code == 0
    assert (tmp_path / "prefixes" / "prefixes.jsonl").read_bytes() == before

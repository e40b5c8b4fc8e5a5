"""The producer's process: what it refuses, that repeating is harmless, and that the bytes stay the bytes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from outbox.workflow import Intention, intentions
from tests.outbox.notes import forge, members
from tests.outbox.world import World, environment_of, lines, state
from tests.support import BOUND_SECONDS, ProcessBox

MAX_BODY_BYTES = 1024 * 1024


def refused(world: World, *arguments: str, word: str) -> None:
    """The producer ends with 2, says why, and has not created anything."""
    ended = world.box.run("outbox.producer", ["--dir", str(world.outbox), *arguments])
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert word in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not world.outbox.exists()


@pytest.mark.parametrize("key", ["", " ", "a b", " a", "a\n", "\t", "ä", "\u20ac", "x" * 256, "\x7f", "a\x1fb", "\udcff"])
def test_a_key_that_no_header_can_carry_is_refused(world: World, key: str) -> None:
    refused(world, f"--key={key}", "--body", "b", word="is not 1 to 255 visible ASCII characters")


@pytest.mark.parametrize(
    "route",
    [
        "",
        "operations",
        "//example.org/x",
        "//",
        "http://example.org/",
        "/a b",
        "/a\r\nX: y",
        "/ä",
        "/a#b",
        "/" + "x" * 2000,
        "*",
        "?x",
    ],
)
def test_a_route_that_is_no_path_is_refused(world: World, route: str) -> None:
    refused(world, "--key", "k", "--body", "b", f"--route={route}", word="route")


def test_a_body_over_the_bound_is_refused(world: World, tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(b"x" * (MAX_BODY_BYTES + 1))
    refused(world, "--key", "k", "--body-file", str(tmp_path / "body"), word=f"at most {MAX_BODY_BYTES}")


def test_a_body_file_that_cannot_be_read_is_refused(world: World, tmp_path: Path) -> None:
    refused(world, "--key", "k", "--body-file", str(tmp_path / "missing"), word="No such file or directory")
    refused(world, "--key", "k", "--body-file", str(tmp_path), word="Is a directory")


@pytest.mark.parametrize(
    "arguments",
    [[], ["--key", "k"], ["--body", "b"], ["--key", "k", "--body", "b", "--body-file", "f"], ["--key", "k", "--nonsense"]],
)
def test_missing_or_contradicting_options_are_refused(world: World, arguments: list[str]) -> None:
    refused(world, *arguments, word="usage:")


def test_another_body_or_route_under_a_known_key_is_refused_and_the_first_stays(world: World) -> None:
    assert world.produce("k", "first").exit_code == 0
    before = state(world.outbox)
    for arguments in (("second",), ("first ",), ("first", "--route", "/other"), ("",)):
        ended = world.produce("k", *arguments)
        assert (ended.exit_code, ended.stdout) == (2, "")
        assert "'k' is recorded with other content" in ended.stderr
    assert state(world.outbox) == before


def test_the_same_again_is_not_created_and_changes_no_byte(world: World) -> None:
    first = world.produce("k", "body")
    before = state(world.outbox)
    again = world.produce("k", "body")
    assert (first.exit_code, json.loads(first.stdout)) == (0, {"intention": "k", "created": True})
    assert (again.exit_code, json.loads(again.stdout)) == (0, {"intention": "k", "created": False})
    assert state(world.outbox) == before


def test_a_damaged_journal_is_told_and_left_as_it_is(world: World) -> None:
    assert world.produce("k").exit_code == 0
    path = world.journal("intentions")
    path.write_bytes(damaged := path.read_bytes().replace(b"/operations", b"/operationz"))
    ended = world.produce("l")
    assert (ended.exit_code, ended.stdout) == (14, "")
    assert f"{path}, line 1" in ended.stderr
    assert path.read_bytes() == damaged


def test_a_directory_that_cannot_be_made_is_the_machine_refusing(world: World) -> None:
    world.outbox.write_bytes(b"a file in the way")
    ended = world.produce()
    assert (ended.exit_code, ended.stdout) == (16, "")
    assert str(world.outbox) in ended.stderr


@pytest.mark.parametrize("key", ["!", "~", "x" * 255, '"\\#%&', "a#1"])
def test_every_visible_ascii_key_is_kept(world: World, key: str) -> None:
    ended = world.box.run("outbox.producer", ["--dir", str(world.outbox), f"--key={key}", "--body", "b"])
    assert (ended.exit_code, json.loads(ended.stdout)["intention"]) == (0, key)
    assert [each.key for each in intentions(world.outbox)] == [key]


def stdin(directory: Path, key: str, body: bytes) -> "subprocess.CompletedProcess[bytes]":
    command = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "outbox.producer",
        "--dir",
        str(directory),
        "--key",
        key,
        "--body-file",
        "-",
    ]
    return subprocess.run(command, input=body, capture_output=True, env=environment_of(), timeout=BOUND_SECONDS, check=False)


@pytest.mark.parametrize("body", [bytes(range(256)), b"", b"line\r\nline\n"])
def test_a_body_from_standard_input_is_kept_byte_for_byte(tmp_path: Path, body: bytes) -> None:
    done = stdin(tmp_path / "outbox", "k", body)
    assert (done.returncode, done.stderr) == (0, b"")
    assert list(intentions(tmp_path / "outbox")) == [Intention("k", "/operations", body)]


def test_a_body_from_standard_input_over_the_bound_is_refused(tmp_path: Path) -> None:
    done = stdin(tmp_path / "outbox", "k", b"x" * (MAX_BODY_BYTES + 1))
    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.parametrize("body", [bytes(range(256)) * 3, b"", b"\xff", "grün \u20ac".encode(), b"\0" * MAX_BODY_BYTES])
def test_a_body_from_a_file_is_kept_byte_for_byte(world: World, tmp_path: Path, body: bytes) -> None:
    (tmp_path / "body").write_bytes(body)
    arguments = ["--dir", str(world.outbox), "--key", "k", "--body-file", str(tmp_path / "body")]
    assert world.box.run("outbox.producer", arguments).exit_code == 0
    assert [each.body for each in intentions(world.outbox)] == [body]
    (record,) = lines(world.journal("intentions"))
    assert record["data"]["body"]["encoding"] == ("base64" if b"\xff" in body else "utf-8")


def test_a_body_argument_that_is_no_text_is_kept_byte_for_byte(world: World) -> None:
    assert world.produce("k", "\udcff\udc80x").exit_code == 0
    assert [each.body for each in intentions(world.outbox)] == [b"\xff\x80x"]


def test_producers_at_once_all_succeed_and_each_key_is_new_once(world: World) -> None:
    keys = ["a", "b", "a", "b", "c", "c"]
    running = [
        world.box.launch("outbox.producer", ["--dir", str(world.outbox), "--key", key, "--body", f"body of {key}"])
        for key in keys
    ]
    ended = [each.wait() for each in running]
    assert [each.exit_code for each in ended] == [0] * len(keys)
    created = [json.loads(each.stdout)["intention"] for each in ended if json.loads(each.stdout)["created"]]
    assert sorted(created) == ["a", "b", "c"]
    assert sorted(each.key for each in intentions(world.outbox)) == ["a", "b", "c"]


def test_an_intention_whose_payload_cannot_be_read_is_no_ordinary_value_error(tmp_path: Path) -> None:
    data = {"key": "a", "route": "/x", "body": {"content": "*", "encoding": "base64"}, "fingerprint": ""}
    (tmp_path / "intentions.jsonl").write_bytes(forge([members("intention", "a", data)], "intentions"))
    with pytest.raises(Exception, match=r"intentions\.jsonl") as caught:
        list(intentions(tmp_path))
    assert type(caught.value).__name__ == "DamagedJournal"


def test_help_is_printed(box: ProcessBox) -> None:
    ended = box.run("outbox.producer", ["--help"])
    assert (ended.exit_code, "--body-file" in ended.stdout) == (0, True)

"""What is printed does nothing to a terminal, whatever a route, a body or an error holds, and stays readable."""

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from outbox.dispatch import StateDB, cli, deliver_due_dispatches, enqueue_dispatch, get_dispatch, list_dispatches, printing
from tests.outbox.dispatch.peek import poke
from tests.outbox.world import environment_of
from tests.support import BOUND_SECONDS

PAST = 1_000_000.0
# What would clear a screen, set its title, turn the writing round, end a line, or hide; and what it is shown as.
HOSTILE = (
    ("escape", "a\x1b[2Jb", r"a\x1b[2Jb"),
    ("title", "a\x1b]0;title\x07b", r"a\x1b]0;title\x07b"),
    ("one-byte escape", "a\x9b2Jb", r"a\x9b2Jb"),
    ("right to left", "a\u202eb\u2066c", r"a\u202eb\u2066c"),
    ("newline", "a\nb\r\nc", r"a\nb\r\nc"),
    ("line separator", "a\u2028b\x85c", r"a\u2028b\x85c"),
    ("backspace", "a\b\x7fb", r"a\x08\x7fb"),
    ("tab", "a\tb", r"a\tb"),
    ("zero width", "a\u200bb\ufeffc", r"a\u200bb\ufeffc"),
    ("tag", "a\U000e0041b", r"a\U000e0041b"),
)
CASES = pytest.mark.parametrize(("text", "shown"), [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE])


def harmless(output: str) -> bool:
    """Whether nothing but lines of printable characters is in it."""
    return all(character == "\n" or character.isprintable() for character in output)


async def hostile(db: StateDB, text: str) -> dict[str, Any]:
    """A row that holds the text wherever a row can."""
    dispatch = await enqueue_dispatch(db, kind=text, deliver_to=text, body={text: [text]}, dedup_key=text, lane=text, now=PAST)
    await poke(db, "UPDATE dispatch_outbox SET last_error = :text, last_error_attempt = 0", text=text)
    await poke(db, "UPDATE status_transitions SET reason_summary = :text, actor = :text", text=text)
    row = await get_dispatch(db, dispatch)
    assert row is not None
    return row


@pytest.fixture
async def lite(tmp_path: Path) -> Any:
    """What is printed does not depend on the database; one is enough."""
    async with StateDB(tmp_path / "db") as opened:
        yield opened


def look(path: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[bytes]":
    """Run the command line to its end and keep the very bytes."""
    return subprocess.run(
        [sys.executable, "-m", "outbox.dispatch", "--db", str(path), *arguments],
        capture_output=True,
        env=environment_of(**environment),
        cwd=path.parent,
        timeout=BOUND_SECONDS,
        check=False,
    )


def main(path: Path, *arguments: str) -> int:
    """The same in this process; on a thread, because it has an event loop of its own."""
    return cli.main(["--db", str(path), *arguments])


@CASES
async def test_hostile_text_is_shown_as_escapes_everywhere(
    lite: StateDB, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, shown: str
) -> None:
    row = await hostile(lite, text)
    for arguments in (["ls"], ["show", row["id"]]):
        assert await asyncio.to_thread(main, tmp_path / "db", *arguments) == 0
        told = capsys.readouterr()
        assert harmless(told.out), told.out
        assert told.out.count(shown) >= 3
        assert told.err == ""


@CASES
async def test_json_is_harmless_too_and_gives_back_the_very_text(
    lite: StateDB, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, shown: str
) -> None:
    row = await hostile(lite, text)
    for arguments in (["ls"], ["show", row["id"]]):
        assert await asyncio.to_thread(main, tmp_path / "db", *arguments, "--json") == 0
        told = capsys.readouterr()
        assert harmless(told.out), told.out
        read = json.loads(told.out)
        first = read[0] if isinstance(read, list) else read["dispatch"]
        assert (first["kind"], first["last_error"], first["payload"]["body"]) == (text, text, {text: [text]})


@CASES
async def test_what_a_command_says_reaches_the_log_of_a_run_as_escapes(tmp_path: Path, text: str, shown: str) -> None:
    log = logging.LogRecord("outbox.dispatch", logging.INFO, "", 0, "dispatch %s: attempt %d: %s", ("id", 1, text), None)
    assert cli.Harmless("dispatch: %(message)s").format(log) == f"dispatch: dispatch id: attempt 1: {shown}"


async def test_a_run_prints_nothing_that_a_terminal_would_obey(tmp_path: Path) -> None:
    (tmp_path / "halt23.toml").write_text(
        '[dispatch]\nnotify_template = ["sh", "-c", \'printf "\\033]0;title\\007\\033[2Jx\\ny" >&2; exit 1\', '
        '"sh", "{deliver_to}"]\n'
    )
    async with StateDB(tmp_path / "db") as db:
        await enqueue_dispatch(db, kind="k", deliver_to="seat-1", now=PAST)
        done = await asyncio.to_thread(look, tmp_path / "db", "run", "--once")
    assert done.returncode == 0
    assert b"retried 1" in done.stdout
    assert harmless(done.stderr.decode()), done.stderr
    assert rb"attempt 1: \x1b]0;title\x07\x1b[2Jx\ny" in done.stderr


async def test_a_text_that_looks_like_markup_is_shown_as_it_is(
    lite: StateDB, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "[red]x[/] :warning: \\x1b {payload} [link=a]y"
    row = await hostile(lite, text)
    for arguments in (["ls"], ["show", row["id"]]):
        assert await asyncio.to_thread(main, tmp_path / "db", *arguments) == 0
        assert text in capsys.readouterr().out


async def test_an_error_of_100000_characters_is_cut_in_the_list_and_whole_in_the_row(
    lite: StateDB, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = await hostile(lite, "k")
    error = "e" * 99_999 + "\x1b"
    await poke(lite, "UPDATE dispatch_outbox SET last_error = :error", error=error)
    told = []
    for arguments in (["ls"], ["show", row["id"]], ["ls", "--json"]):
        assert await asyncio.to_thread(main, tmp_path / "db", *arguments) == 0
        told.append(capsys.readouterr().out)
    listed, shown, as_json = told
    assert f" {'e' * 60}… (100000 characters)" in listed
    assert "e" * 61 not in listed
    assert len(listed.splitlines()) == 2
    assert f"last_error            {error[:-1]}\\x1b\n" in shown
    assert json.loads(as_json)[0]["last_error"] == error


async def test_a_terminal_that_lacks_the_characters_gets_escapes_and_no_traceback(lite: StateDB, tmp_path: Path) -> None:
    row = await hostile(lite, "\u20ac and \U0001f600")
    cases = [("ascii", ["ls"]), ("latin-1", ["show", row["id"]]), ("ascii", ["ls", "--json"])]
    done = await asyncio.gather(
        *(asyncio.to_thread(look, tmp_path / "db", *arguments, PYTHONIOENCODING=name) for name, arguments in cases)
    )
    for each in done:
        assert (each.returncode, each.stderr) == (0, b""), each
        assert rb"\u20ac and " in each.stdout
    assert json.loads(done[2].stdout)[0]["kind"] == "\u20ac and \U0001f600"


async def test_ordinary_text_of_any_language_stays_readable(
    lite: StateDB, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await hostile(lite, "grün \u20ac \u65e5\u672c \u05e9\u05dc\u05d5\u05dd")
    await asyncio.to_thread(main, tmp_path / "db", "ls")
    assert capsys.readouterr().out.count("grün \u20ac \u65e5\u672c \u05e9\u05dc\u05d5\u05dd") == 3


async def test_an_error_of_an_older_attempt_is_said_to_be_one(
    lite: StateDB, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dispatch = await enqueue_dispatch(lite, kind="k", deliver_to="seat-1", now=PAST)
    await deliver_due_dispatches(lite, now=lambda: PAST, notify_template=["false"])
    printing.rows(await list_dispatches(lite), as_json=False)
    assert capsys.readouterr().out.splitlines()[1].rstrip().endswith("13:47:40  exit 1")
    await deliver_due_dispatches(lite, now=lambda: PAST + 60, notify_template=["true"])
    printing.rows(await list_dispatches(lite), as_json=False)
    assert "(of attempt 1, not the latest) exit 1" in capsys.readouterr().out
    assert await asyncio.to_thread(main, tmp_path / "db", "show", dispatch) == 0
    assert "last_error            (of attempt 1, not the latest) exit 1\n" in capsys.readouterr().out


@pytest.mark.parametrize("seconds", [1e18, -1e18, 1e300])
async def test_a_time_that_no_calendar_has_is_shown_in_seconds(
    lite: StateDB, capsys: pytest.CaptureFixture[str], seconds: float
) -> None:
    row = await hostile(lite, "k")
    printing.rows([{**row, "next_attempt_at": seconds}], as_json=False)
    printing.row({**row, "next_attempt_at": seconds}, [], as_json=False)
    assert capsys.readouterr().out.count(f"{seconds:g} s") == 2


@pytest.mark.parametrize("identity", ["\x1b[2J", "\u202e", "a\nb"])
async def test_an_id_that_is_hostile_is_refused_harmlessly(
    lite: StateDB, tmp_path: Path, capsys: pytest.CaptureFixture[str], identity: str
) -> None:
    for arguments in (["show", identity], ["retry", identity], ["ack", identity, "t"], ["purge", identity]):
        assert await asyncio.to_thread(main, tmp_path / "db", *arguments) in (1, 2)
        told = capsys.readouterr()
        assert told.out == ""
        assert harmless(told.err), told.err

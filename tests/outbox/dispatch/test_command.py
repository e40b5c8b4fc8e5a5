"""D3: the command transport. An argv, never a shell; ten seconds; nothing that a command does harms the scan."""

import asyncio
import contextlib
import json
import os
import shutil
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from outbox.dispatch import (
    NOTIFY_TIMEOUT_SECONDS,
    BadValue,
    DeliveryOptions,
    StateDB,
    command,
    deliver_due_dispatches,
    enqueue_dispatch,
    list_transitions,
)
from outbox.dispatch.router import RouterOptions
from tests.outbox.dispatch.peek import one, peek

NOW = 1000.0
BOUND_SECONDS = 20.0
HAPPENED, MAY_HAVE, DID_NOT = "happened", "may_have_happened", "did_not_happen"


@pytest.fixture
async def outbox(tmp_path: Path) -> AsyncIterator[StateDB]:
    """An outbox on SQLite: what a command does is the same on both databases."""
    async with StateDB(tmp_path / "dispatch.db") as opened:
        yield opened


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where commands write what they got."""
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """No test leaves a child of this process, running or unreaped."""
    before = psutil.Process().children()
    yield
    database = ("postgres", "cat")  # the server of other tests, and who reads its log
    assert [child for child in psutil.Process().children() if child not in before and child.name() not in database] == []


async def scan(db: StateDB, template: Sequence[str] | None, *, at: float = NOW, **router: Any) -> dict[str, int]:
    options = DeliveryOptions(router=RouterOptions(**router))
    return await deliver_due_dispatches(db, now=lambda: at, notify_template=template, options=options)


async def send(
    db: StateDB, template: Sequence[str], *, deliver_to: str = "seat-1", body: dict[str, Any] | None = None, **router: Any
) -> tuple[str, str | None, str]:
    """Make one attempt of a new dispatch: its status, its error, and how sure the outcome is."""
    dispatch = await enqueue_dispatch(db, kind="ping", deliver_to=deliver_to, body=body, now=NOW)
    await scan(db, template, **router)
    row = await one(db, dispatch)
    return row["status"], row["last_error"], (await list_transitions(db, dispatch))[-1]["metadata"]["outcome"]


def shell(script: str, *arguments: str) -> list[str]:
    """A template that runs a script; the arguments are its $1, $2 …"""
    return ["sh", "-c", script, "sh", *arguments]


def saving(out: Path, *arguments: str) -> list[str]:
    """A template that keeps what it got: its arguments, its standard input, its environment."""
    script = 'o=$1; shift; printf "%s\\0" "$@" >"$o/argv"; cat >"$o/stdin"; env -0 >"$o/env"'
    return shell(script, str(out), *arguments)


def saved(out: Path) -> tuple[list[str], bytes, dict[str, str]]:
    argv = (out / "argv").read_bytes().decode().split("\0")[:-1]
    environment = dict(each.partition("=")[::2] for each in (out / "env").read_bytes().decode().split("\0")[:-1])
    return argv, (out / "stdin").read_bytes(), environment


def gone(process: int) -> bool:
    """Whether a process has ended; one that nobody has reaped yet has."""
    try:
        return psutil.Process(process).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def until(holds: Callable[[], bool]) -> None:
    """Wait for what no event tells of."""
    async with asyncio.timeout(BOUND_SECONDS):
        while not holds():  # noqa: ASYNC110 - it happens in another process
            await asyncio.sleep(0.001)


def end(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, 9)


# Templates that would not do what they look like.


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ([], "expected a list of texts"),
        ("notify {payload}", "expected a list of texts"),
        (["notify", 7], "expected a list of texts"),
        ([""], "the program's name stands there"),
        (["{payload}"], "the program's name stands there"),
        (["{deliver_to}", "x"], "the program's name stands there"),
        (["notify", "a\0b"], "holds a NUL"),
        (["notify", "--to={deliver_to}"], r"'--to=\{deliver_to\}' holds \{deliver_to\} beside other text"),
        (["notify", "{payload} "], r"holds \{payload\} beside other text"),
        (["notify{payload}"], r"holds \{payload\} beside other text"),
        (["notify", "{payload}{deliver_to}"], r"holds \{payload\} beside other text"),
        (["sh", "-c", "echo {payload}"], r"holds \{payload\} beside other text"),
    ],
)
async def test_a_template_that_cannot_mean_what_it_says_is_refused_before_anything_is_claimed(
    outbox: StateDB, template: Any, told: str
) -> None:
    dispatch = await enqueue_dispatch(outbox, kind="ping", deliver_to="seat-1", now=NOW)
    with pytest.raises(BadValue, match=told) as raised:
        await scan(outbox, template)
    assert isinstance(raised.value, ValueError)
    row = await one(outbox, dispatch)
    assert (row["status"], row["attempt"]) == ("pending", 0)


async def test_without_a_template_a_row_fails_like_a_failed_command(
    outbox: StateDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # no settings here
    dispatch = await enqueue_dispatch(outbox, kind="ping", deliver_to="seat-1", now=NOW)
    assert (await scan(outbox, None))["retried"] == 1
    row = await one(outbox, dispatch)
    assert (row["status"], row["attempt"], row["next_attempt_at"]) == ("pending", 1, NOW + 60)
    assert row["last_error"].startswith("no notify template is configured")
    assert (await list_transitions(outbox, dispatch))[-1]["metadata"]["outcome"] == DID_NOT


# Commands that cannot be started: certainly nothing was sent.


async def test_a_command_that_is_not_there_did_not_happen(outbox: StateDB) -> None:
    status, error, outcome = await send(outbox, ["/nowhere/notify", "{payload}"])
    assert (status, outcome) == ("pending", DID_NOT)
    assert error is not None
    assert error.startswith("/nowhere/notify cannot be started: ")
    assert "No such file" in error


async def test_a_file_that_is_no_program_did_not_happen(outbox: StateDB, out: Path) -> None:
    (out / "notify").write_text("no program")
    for mode, told in ((0o600, "Permission denied"), (0o700, "Exec format error")):
        (out / "notify").chmod(mode)
        _status, error, outcome = await send(outbox, [str(out / "notify")])
        assert outcome == DID_NOT
        assert told in str(error)


async def test_a_payload_longer_than_an_argument_may_be_did_not_happen_and_goes_by_stdin(outbox: StateDB) -> None:
    body = {"text": "x" * 3_000_000}
    status, error, outcome = await send(outbox, ["true", "{payload}"], body=body)
    assert (status, outcome) == ("pending", DID_NOT)
    assert "Argument list too long" in str(error)
    assert await send(outbox, shell("cat >/dev/null"), body=body) == ("delivered", None, HAPPENED)


async def test_a_folder_that_is_missing_did_not_happen(outbox: StateDB, out: Path) -> None:
    _status, error, outcome = await send(outbox, ["true"], directory=out / "nowhere")
    assert outcome == DID_NOT
    assert "nowhere" in str(error)


# Commands that fail: they may have sent something before.


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("exit 1", "exit 1"),
        ("exit 255", "exit 255"),
        ("echo out; exit 3", "exit 3"),
        ("echo ' \n\t ' >&2; exit 4", "exit 4"),
        ("printf '\n  no route \n to host\n\n' >&2; exit 5", "no route \n to host"),
        ("kill -KILL $$", "exit -9"),
        ("kill -TERM $$", "exit -15"),
        ("echo last words >&2; kill -SEGV $$", "last words"),
        ("printf 'a\\377b' >&2; exit 1", "a\ufffdb"),
    ],
)
async def test_a_command_that_fails_leaves_its_last_words_or_its_code(outbox: StateDB, script: str, error: str) -> None:
    assert await send(outbox, shell(script)) == ("pending", error, MAY_HAVE)


async def test_an_error_is_kept_to_2000_characters(outbox: StateDB) -> None:
    _status, error, _outcome = await send(outbox, shell("printf '%03000d' 7 | tr 0 x >&2; exit 1"))
    assert error == "x" * 2000
    _status, error, _outcome = await send(outbox, shell("printf '%03000d' 7 | sed s/0/é/g >&2; exit 1"))
    assert error == "é" * 2000
    _status, error, _outcome = await send(outbox, shell("printf '%01999d' 7 >&2; exit 1"))
    assert error == "0" * 1998 + "7"


async def test_an_error_that_no_database_can_hold_is_kept_as_far_as_it_goes(db: StateDB) -> None:
    assert await send(db, shell("printf 'a\\0b\\355\\240\\200' >&2; exit 1")) == (
        "pending",
        "a\ufffdb" + "\ufffd" * 3,
        MAY_HAVE,
    )


async def test_a_program_whose_name_no_database_can_hold_fails_like_any_other(db: StateDB) -> None:
    status, error, outcome = await send(db, ["/nowhere/\udc80"])
    assert (status, outcome) == ("pending", DID_NOT)
    assert str(error).startswith("/nowhere/")


# Time.


def test_a_command_gets_ten_seconds() -> None:
    assert NOTIFY_TIMEOUT_SECONDS == 10.0
    assert RouterOptions().timeout_seconds == 10.0


async def test_at_the_timeout_the_whole_process_group_is_killed_and_reaped(outbox: StateDB, out: Path) -> None:
    script = 'trap "" TERM HUP; sleep 600 & echo $$ $! >"$1/started"; wait'
    status, error, outcome = await send(outbox, shell(script, str(out)), timeout_seconds=1.0)
    assert (status, outcome) == ("pending", MAY_HAVE)
    assert error == "timeout: sh did not end within 1 seconds and was killed"
    leader, grandchild = map(int, (out / "started").read_text().split())
    assert not psutil.pid_exists(leader)
    await until(lambda: gone(grandchild))


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("kill -STOP $$", id="stopped"),
        pytest.param("exec >&- 2>&- <&-; sleep 600", id="pipes closed"),
        pytest.param("yes", id="endless output"),
        pytest.param("yes >&2", id="endless errors"),
    ],
)
async def test_nothing_that_a_command_does_outlasts_the_timeout(outbox: StateDB, script: str) -> None:
    status, error, outcome = await send(outbox, shell(script), timeout_seconds=0.2)
    assert (status, error, outcome) == ("pending", "timeout: sh did not end within 0.2 seconds and was killed", MAY_HAVE)


async def test_a_grandchild_that_holds_the_output_open_does_not_delay_a_success(outbox: StateDB, out: Path) -> None:
    began = time.monotonic()
    try:
        sent = await send(outbox, shell('sleep 600 & echo $! >"$1/started"', str(out)))
        assert sent == ("delivered", None, HAPPENED)
        assert time.monotonic() - began < NOTIFY_TIMEOUT_SECONDS / 2
    finally:
        end(int((out / "started").read_text()))


async def test_a_grandchild_that_left_the_group_does_not_keep_the_scan_after_the_timeout(outbox: StateDB, out: Path) -> None:
    script = 'setsid sleep 600 & echo $! >"$1/started"; wait'
    try:
        status, error, _outcome = await send(outbox, shell(script, str(out)), timeout_seconds=0.5)
        assert (status, error) == ("pending", "timeout: sh did not end within 0.5 seconds and was killed")
    finally:
        end(int((out / "started").read_text()))


async def test_a_command_that_ended_well_is_a_success_also_if_the_timeout_comes_while_its_output_is_still_open(
    outbox: StateDB, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "REST_OF_OUTPUT_SECONDS", BOUND_SECONDS)
    for code, expected in ((0, ("delivered", None, HAPPENED)), (3, ("pending", "exit 3", MAY_HAVE))):
        try:
            script = f'sleep 600 & echo $! >"$1/started"; exit {code}'
            assert await send(outbox, shell(script, str(out)), timeout_seconds=1.0) == expected
        finally:
            end(int((out / "started").read_text()))


async def test_a_scan_that_is_cancelled_kills_its_commands(outbox: StateDB, out: Path) -> None:
    await enqueue_dispatch(outbox, kind="ping", deliver_to="seat-1", now=NOW)
    scanning = asyncio.create_task(scan(outbox, shell('echo $$ >"$1/now"; mv "$1/now" "$1/started"; sleep 600', str(out))))
    await until((out / "started").exists)
    scanning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await scanning
    assert not psutil.pid_exists(int((out / "started").read_text()))


# What a command prints and does not read.


async def test_huge_output_neither_blocks_nor_fills_the_memory(outbox: StateDB) -> None:
    noise = shell("head -c 30000000 /dev/zero; head -c 30000000 /dev/zero >&2; exit 1")
    await send(outbox, ["true"])  # whatever is loaded at the first use is not counted
    tracemalloc.start()
    try:
        status, error, _outcome = await send(outbox, noise)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (status, error) == ("pending", "\ufffd" * 2000)
    assert peak < 5_000_000


@pytest.mark.parametrize(
    ("script", "status"), [("exit 0", "delivered"), ("exit 1", "pending"), ("exec <&-; exit 0", "delivered")]
)
async def test_a_command_need_not_read_a_large_payload(outbox: StateDB, script: str, status: str) -> None:
    assert (await send(outbox, shell(script), body={"text": "x" * 2_000_000}))[0] == status


# What a command is given.


async def test_tokens_that_are_whole_elements_are_replaced_and_nothing_else_is(outbox: StateDB, out: Path) -> None:
    template = saving(out, "{deliver_to}", "--", "{payload}", "{deliver_to}", "{Payload}", "{ payload }", "{}", "$HOME", "*")
    assert await send(outbox, template, deliver_to="seat 1") == ("delivered", None, HAPPENED)
    (row,) = await peek(outbox, "SELECT id, payload FROM dispatch_outbox")
    argv, stdin, _environment = saved(out)
    assert argv == ["seat 1", "--", row["payload"], "seat 1", "{Payload}", "{ payload }", "{}", "$HOME", "*"]
    assert stdin == b""


async def test_no_character_of_a_route_or_a_body_means_anything(outbox: StateDB, out: Path) -> None:
    evil = "$(touch $o/owned) `touch $o/owned`; touch $o/owned & | > < * ? ~ \\ ' \" \n \t é € 😀 -rf --help %s"
    assert (await send(outbox, saving(out, "{deliver_to}", "{payload}"), deliver_to=evil, body={evil: evil}))[0] == "delivered"
    argv, _stdin, _environment = saved(out)
    assert argv[0] == evil
    assert json.loads(argv[1])["body"] == {evil: evil}
    assert {each.name for each in out.iterdir()} == {"argv", "stdin", "env"}


async def test_a_token_inside_a_value_is_not_replaced_a_second_time(outbox: StateDB, out: Path) -> None:
    await send(outbox, saving(out, "{deliver_to}", "{payload}"), deliver_to="{payload}", body={"to": "{deliver_to}"})
    argv, _stdin, _environment = saved(out)
    assert argv[0] == "{payload}"
    assert json.loads(argv[1])["body"] == {"to": "{deliver_to}"}


async def test_without_the_payload_token_the_exact_bytes_go_to_standard_input(outbox: StateDB, out: Path) -> None:
    await send(outbox, saving(out, "{deliver_to}"), body={"text": "é" * 200_000})
    (row,) = await peek(outbox, "SELECT payload FROM dispatch_outbox")
    argv, stdin, _environment = saved(out)
    assert argv == ["seat-1"]
    assert stdin == row["payload"].encode()


async def test_without_the_route_token_the_route_is_given_nowhere_but_in_the_payload(outbox: StateDB, out: Path) -> None:
    await send(outbox, saving(out, "{payload}"), deliver_to="a-route-of-its-own")
    argv, stdin, environment = saved(out)
    assert json.loads(argv[0])["deliver_to"] == "a-route-of-its-own"
    assert (len(argv), stdin) == (1, b"")
    assert not [name for name, value in environment.items() if "a-route-of-its-own" in value]


async def test_the_environment_tells_the_id_and_the_attempt_and_keeps_the_rest(
    outbox: StateDB, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPT", "yes")
    dispatch = await enqueue_dispatch(outbox, kind="ping", deliver_to="seat-1", now=NOW)
    seen = []
    for attempt in (1, 2):
        await scan(outbox, [*saving(out)[:2], saving(out)[2] + "; exit 1", *saving(out)[3:]], at=NOW * attempt)
        _argv, stdin, environment = saved(out)
        seen.append((environment["HALT23_DISPATCH_ID"], environment["HALT23_ATTEMPT"], environment["KEPT"]))
        assert json.loads(stdin)["attempt"] == 0
    assert seen == [(dispatch, "1", "yes"), (dispatch, "2", "yes")]


async def test_a_command_runs_in_the_folder_it_is_told(outbox: StateDB, out: Path) -> None:
    shutil.copy("/bin/sh", out / "notify")
    assert (await send(outbox, ["./notify", "-c", "pwd >here"], directory=out))[0] == "delivered"
    assert (out / "here").read_text().strip() == str(out)

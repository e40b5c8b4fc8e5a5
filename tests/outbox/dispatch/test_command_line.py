"""The operator's command line, as real processes: every command, its exit codes, and that looking changes nothing."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from outbox.dispatch import StateDB, deliver_due_dispatches, enqueue_dispatch, list_admin_events
from outbox.sqlite_choice import choose
from scenarios.engine.postgres import PostgresServer
from tests.outbox.dispatch.peek import everything, moves, one, peek, poke
from tests.outbox.dispatch.programs import goes_on
from tests.outbox.dispatch.waiting import Held, soon
from tests.outbox.world import environment_of
from tests.support import BOUND_SECONDS, Ended, ProcessBox

TOKEN = "0123456789abcdef" * 2
PAST = 1_000_000.0
MODULE = "outbox.dispatch"
# What does not depend on the database is shown on one.
ONLY_SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)


class Program:
    """The command line on one database."""

    def __init__(self, box: ProcessBox, url: str) -> None:
        self.box, self.url = box, url

    async def __call__(self, *arguments: str, **environment: str) -> Ended:
        """Run it to its end while this event loop goes on."""
        given = [*arguments, "--db", self.url]
        return await asyncio.to_thread(self.box.run, MODULE, given, environment)

    async def done(self, *arguments: str) -> Any:
        """The same for what must succeed; its JSON."""
        ended = await self(*arguments, "--json")
        assert ended.exit_code == 0, ended
        return json.loads(ended.stdout)


@pytest.fixture
def program(box: ProcessBox, url: str) -> Program:
    return Program(box, url)


async def enqueue(db: StateDB, **more: Any) -> str:
    """A dispatch that has been due for a long time."""
    return await enqueue_dispatch(db, **{"kind": "k", "deliver_to": "seat-1", "now": PAST, **more})


async def in_status(db: StateDB, status: str, **more: Any) -> str:
    dispatch = await enqueue(db, **more)
    await poke(db, "UPDATE dispatch_outbox SET status = :status, attempt = 3 WHERE id = :id", status=status, id=dispatch)
    return dispatch


def refused(ended: Ended, code: int, told: str) -> None:
    assert (ended.exit_code, ended.stdout) == (code, ""), ended
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr


# What no command takes.


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "usage:"),
        (["enqueue", "--db", "x"], "invalid choice: 'enqueue'"),
        (["ls"], "--db is missing"),
        (["show", "--db", "x"], "the following arguments are required: ID"),
        (["ack", "--db", "x", "id"], "the following arguments are required: TOKEN"),
        (["ls", "--db", "x", "--limit", "many"], "invalid int value: 'many'"),
        (["purge", "--db", "x", "--older-than-seconds", "old"], "invalid float value: 'old'"),
        (["ls", "--db", ""], "is no database"),
        (["ls", "--db", "mysql://somebody@somewhere/x"], "mysql is not supported"),
        (["ls", "--db", "sqlite://"], "in memory"),
    ],
)
def test_what_cannot_be_meant_is_refused(box: ProcessBox, tmp_path: Path, arguments: list[str], told: str) -> None:
    refused(box.run(MODULE, arguments, directory=tmp_path), 2, told)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [["ls"], ["events"], ["show", "x"], ["ack", "x", "y"], ["retry", "x"], ["purge", "x"], ["purge", "--status", "acked"]],
)
def test_a_database_that_is_not_there_is_not_made_by_looking(box: ProcessBox, tmp_path: Path, command: list[str]) -> None:
    ended = box.run(MODULE, [*command, "--db", str(tmp_path / "dispatch.db")])
    refused(ended, 2, f"there is no database {tmp_path / 'dispatch.db'}; a producer, or `run`, creates it")
    assert list(tmp_path.iterdir()) == []


def test_a_database_of_somebody_else_is_left_as_it_is(box: ProcessBox, tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    other = choose().module.connect(str(path))
    other.execute("CREATE TABLE notes (text TEXT)")
    other.commit()
    other.close()
    before = path.read_bytes()
    refused(box.run(MODULE, ["ls", "--db", str(path)]), 2, "has no dispatch outbox")
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["other.db"]


@pytest.mark.parametrize("content", [b"no database at all " * 100, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_file_that_is_no_database_is_damaged_and_left_as_it_is(box: ProcessBox, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "dispatch.db"
    path.write_bytes(content)
    for command in ("ls", "run"):
        refused(box.run(MODULE, [command, "--db", str(path)]), 14, "the file is damaged, is no database")
    assert path.read_bytes() == content


def test_a_server_that_is_not_there_is_the_machine_refusing(box: ProcessBox) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        url = f"postgresql://postgres:secret@127.0.0.1:{holder.getsockname()[1]}/x"
        ended = box.run(MODULE, ["ls", "--db", url])
    refused(ended, 16, "the database cannot be reached")
    assert "secret" not in ended.stderr


async def test_a_row_that_somebody_holds_locked_is_told_with_13(box: ProcessBox, postgres_server: PostgresServer) -> None:
    url = postgres_server.new_database()
    async with StateDB(url) as db:
        dispatch = await in_status(db, "dead_letter")
        before = await everything(db)
        async with db.begin() as connection:
            await connection.exec_driver_sql("SELECT id FROM dispatch_outbox FOR UPDATE")
            ended = await Program(box, f"{url}?options=-c%20lock_timeout%3D50")("retry", dispatch)
        refused(ended, 13, "another transaction holds the rows; try again")
        assert await everything(db) == before


def test_a_database_that_stays_locked_is_told_with_13(tmp_path: Path) -> None:
    """In a process of its own with a shorter patience than the ten seconds that nobody wants to wait here."""
    program = (
        "import sys, functools, outbox.dispatch.cli as cli\n"
        "cli.StateDB = functools.partial(cli.StateDB, busy_timeout_seconds=0.05)\n"
        "sys.exit(cli.main())"
    )
    path = tmp_path / "dispatch.db"
    other = choose().module.connect(str(path), isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    done = subprocess.run(
        [sys.executable, "-c", program, "run", "--once", "--db", str(path)],
        capture_output=True,
        text=True,
        env=environment_of(),
        timeout=BOUND_SECONDS,
        check=False,
    )
    other.close()
    assert (done.returncode, done.stdout) == (13, "")
    assert "the database is locked by another connection; try again" in done.stderr


# ls and show.


@ONLY_SQLITE
async def test_an_unknown_status_or_length_of_a_listing_is_refused(program: Program, db: StateDB) -> None:
    refused(await program("ls", "--status", "done"), 2, "'done' is no status; a dispatch is one of: pending,")
    refused(await program("ls", "--limit", "0"), 2, "limit is 0")
    for command in ("ls", "events"):
        refused(await program(command, "--limit", "9" * 20), 2, f"limit is {'9' * 20}; expected a whole number from 1 to")


@ONLY_SQLITE
async def test_an_empty_outbox_says_so(program: Program, db: StateDB) -> None:
    assert (await program("ls")).stdout == "no dispatches\n"
    assert await program.done("ls") == []


async def test_a_listing_is_a_table_for_people_and_json_for_programs_wherever_the_word_stands(
    box: ProcessBox, program: Program, db: StateDB
) -> None:
    first = await enqueue(db)
    second = await in_status(db, "dead_letter", now=PAST + 1, max_attempts=3)
    await poke(db, "UPDATE dispatch_outbox SET last_error = 'broken', last_error_attempt = 3 WHERE id = :id", id=second)
    ended = await program("ls")
    assert (ended.exit_code, ended.stderr) == (0, "")
    head, *lines = [line.split() for line in ended.stdout.splitlines()]
    assert head[:5] == ["id", "status", "attempt", "kind", "deliver_to"]
    assert lines == [
        [second, "dead_letter", "3", "of", "3", "k", "seat-1", "broken"],
        [first, "pending", "0", "of", "8", "k", "seat-1", "1970-01-12", "13:46:40"],
    ]
    before = await asyncio.to_thread(box.run, MODULE, ["--json", "--db", program.url, "ls"])
    after = await asyncio.to_thread(box.run, MODULE, ["ls", "--db", program.url, "--json"])
    assert before == after
    rows = json.loads(after.stdout)
    assert [(row["id"], row["status"], row["last_error_is_current"]) for row in rows] == [
        (second, "dead_letter", True),
        (first, "pending", False),
    ]
    assert rows[1]["payload"]["dispatch_id"] == first
    assert [row["id"] for row in await program.done("ls", "--status", "pending")] == [first]
    assert [row["id"] for row in await program.done("ls", "--limit", "1")] == [second]


@pytest.mark.parametrize("identity", ["gone", "", "\udcff", "--"])
async def test_what_does_not_exist_is_not_shown(program: Program, db: StateDB, identity: str) -> None:
    refused(await program("show", *(["--", "x"] if identity == "--" else [identity])), 2, "")


async def test_a_dispatch_is_shown_with_its_history_also_after_its_purge(program: Program, db: StateDB) -> None:
    dispatch = await enqueue(db, body={"order": 7}, ack_required=True, ack_token=TOKEN)
    await deliver_due_dispatches(db, now=lambda: PAST, notify_template=["false"])
    ended = await program("show", dispatch)
    lines = ended.stdout.splitlines()
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert [line.split() for line in lines[:3]] == [["id", dispatch], ["kind", "k"], ["deliver_to", "seat-1"]]
    assert f"ack_token             {TOKEN}" in lines
    assert "last_error            exit 1" in lines
    assert "next_attempt_at       1000060.0 (1970-01-12 13:47:40)" in lines
    assert '"body": {"order": 7}' in ended.stdout
    assert [line.split()[2:6] for line in lines[-3:]] == [
        ["-", "->", "pending", "dispatch.pending.enqueued"],
        ["pending", "->", "delivering", "dispatch.delivering.attempt"],
        ["delivering", "->", "pending", "dispatch.pending.retry_backoff"],
    ]
    told = await program.done("show", dispatch)
    assert (told["dispatch"]["payload"]["body"], told["dispatch"]["attempt"]) == ({"order": 7}, 1)
    assert [(each["previous_status"], each["status"]) for each in told["history"]] == [
        (None, "pending"),
        ("pending", "delivering"),
        ("delivering", "pending"),
    ]
    assert await program.done("purge", dispatch) == {"done": True, "message": f"{dispatch} is purged"}
    ended = await program("show", dispatch)
    assert (ended.exit_code, ended.stdout.splitlines()[0]) == (0, "the row was purged; its history:")
    assert (await program.done("show", dispatch)) == {"dispatch": None, "history": told["history"]}


async def test_looking_changes_nothing(program: Program, db: StateDB) -> None:
    dispatch = await enqueue(db)
    before = await everything(db)
    for arguments in (["ls"], ["events"], ["show", dispatch], ["purge", "--status", "pending", "--dry-run"]):
        await program.done(*arguments)
    assert await everything(db) == before


# ack and retry.


async def test_a_token_is_presented(program: Program, db: StateDB) -> None:
    dispatch, plain = await enqueue(db, ack_required=True, ack_token=TOKEN), await enqueue(db)
    for token in ("f" * 32, "", "\udcff"):
        refused(await program("ack", dispatch, token), 2, f"the token is not that of dispatch {dispatch}")
    refused(await program("ack", plain, TOKEN), 2, "asks for no acknowledgement")
    refused(await program("ack", "gone", TOKEN), 2, "there is no dispatch 'gone'")
    ended = await program("ack", dispatch, TOKEN)
    assert ended == Ended(0, None, f"{dispatch} is acknowledged\n", "")
    assert (await one(db, dispatch))["status"] == "acked"
    refused(await program("ack", dispatch, TOKEN), 2, "cannot go from acked to acked")


async def test_a_dead_letter_is_retried(program: Program, db: StateDB) -> None:
    dispatch, other = await in_status(db, "dead_letter"), await in_status(db, "expired")
    assert await program("retry", dispatch) == Ended(0, None, f"{dispatch} is pending again\n", "")
    assert await program.done("retry", other) == {"done": True, "message": f"{other} is pending again"}
    row = await one(db, dispatch)
    assert (row["status"], row["attempt"], row["next_attempt_at"] > PAST) == ("pending", 0, True)
    assert (await moves(db, dispatch))[-1] == ("dead_letter", "pending", "dispatch.pending.retry_backoff")
    refused(await program("retry", dispatch), 2, "cannot go from pending to pending")
    refused(await program("retry", "gone"), 2, "there is no dispatch 'gone'")


@pytest.mark.parametrize("as_json", [False, True])
async def test_a_row_that_changes_meanwhile_is_told_with_1(
    box: ProcessBox, program: Program, db: StateDB, as_json: bool
) -> None:
    dispatch = await in_status(db, "dead_letter")
    arguments = ["retry", dispatch, "--db", program.url, *(["--json"] if as_json else [])]
    running = await asyncio.to_thread(box.launch, MODULE, arguments, {"PAUSE_AT": "dispatch.retry.before"})
    assert await asyncio.to_thread(box.do, running._child.wait_stopped(BOUND_SECONDS))
    assert (await program("retry", dispatch)).exit_code == 0
    before = await everything(db)
    ended = await asyncio.to_thread(goes_on, running)
    told = "it changed meanwhile; nothing was done, look again"
    assert ended.exit_code == 1
    if as_json:
        assert json.loads(ended.stdout) == {"done": False, "message": told}
    else:
        assert ended.stdout == ""
        assert ended.stderr.splitlines()[-1] == told
    assert await everything(db) == before


# purge.


@ONLY_SQLITE
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "purge takes either one ID, or --status and/or --older-than-seconds"),
        (["--dry-run"], "purge takes either one ID"),
        (["x", "--status", "acked"], "purge takes either one ID"),
        (["x", "--older-than-seconds", "0"], "purge takes either one ID"),
        (["x", "--dry-run"], "for one ID use `show`"),
        (["--status", "gone"], "'gone' is no status"),
        (["--older-than-seconds=-1"], "older_than_seconds is -1.0"),
        (["--older-than-seconds", "nan"], "older_than_seconds is nan"),
    ],
)
async def test_a_purge_that_cannot_be_meant_is_refused(
    program: Program, db: StateDB, arguments: Sequence[str], told: str
) -> None:
    await in_status(db, "acked")
    before = await everything(db)
    refused(await program("purge", *arguments), 2, told)
    assert await everything(db) == before


@ONLY_SQLITE
async def test_a_purge_of_what_is_not_there_is_told_with_1(program: Program, db: StateDB) -> None:
    ended = await program("purge", "gone")
    assert ended == Ended(1, None, "", "there is no dispatch 'gone'; nothing was done\n")
    ended = await program("purge", "gone", "--json")
    assert (ended.exit_code, json.loads(ended.stdout)["done"]) == (1, False)


async def test_many_are_purged_by_status_and_age(program: Program, db: StateDB) -> None:
    for status in ("acked", "acked", "expired", "pending"):
        await in_status(db, status)
    selection = ["--status", "acked", "--status", "expired", "--older-than-seconds", "60"]
    assert (await program("purge", *selection, "--dry-run")).stdout in (
        "would purge: 2 acked, 1 expired\n",
        "would purge: 1 expired, 2 acked\n",
    )
    assert await program.done("purge", *selection, "--dry-run") == {"dry_run": True, "purged": {"acked": 2, "expired": 1}}
    told = await program.done("purge", *selection, "--remove-history")
    assert told == {"dry_run": False, "purged": {"acked": 2, "expired": 1}}
    assert (await program("purge", *selection)).stdout == "purged: nothing\n"
    assert [row["status"] for row in await peek(db, "SELECT status FROM dispatch_outbox")] == ["pending"]
    assert len(await peek(db, "SELECT id FROM status_transitions")) == 1
    (event,) = await list_admin_events(db)
    assert (event["actor"], event["details"]["history"]) == ("operator", "removed")
    assert event["details"]["deleted"] == {"acked": 2, "expired": 1}


# events.


async def test_what_was_purged_is_shown_the_newest_first(program: Program, db: StateDB) -> None:
    assert (await program("events")).stdout == "no events\n"
    assert await program.done("events") == []
    first = await in_status(db, "acked")
    await program.done("purge", first)
    await in_status(db, "expired")
    await program.done("purge", "--status", "expired")
    ended = await program("events")
    newest, oldest = ended.stdout.splitlines()
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert '  operator  dispatch.purge: {"deleted": {"expired": 1}' in newest
    assert f"  operator  dispatch.purge {first}: " in oldest
    assert [each["entity_id"] for each in await program.done("events")] == [None, first]
    assert [each["entity_id"] for each in await program.done("events", "--limit", "1")] == [None]


# run.


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
def test_a_tick_that_is_no_time_is_refused(box: ProcessBox, tmp_path: Path, seconds: str) -> None:
    arguments = ["run", f"--tick-seconds={seconds}", "--db", str(tmp_path / "db"), "--project", str(tmp_path)]
    refused(box.run(MODULE, arguments), 2, f"--tick-seconds {float(seconds)}: expected a positive number")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[dispatch", "cannot be read"),
        ("[dispatch]\ntick = 1\n", "has no setting 'tick'"),
        ('[dispatch]\nnotify_template = ["notify", "{payload}"]\n', "nowhere names {deliver_to}"),
        ('[dispatch]\nnotify_template = ["notify", "to={deliver_to}"]\n', "beside other text"),
    ],
)
async def test_settings_that_cannot_be_used_stop_a_run_before_it_claims(
    box: ProcessBox, tmp_path: Path, content: str, told: str
) -> None:
    (tmp_path / "halt23.toml").write_text(content)
    async with StateDB(tmp_path / "db") as db:
        dispatch = await enqueue(db)
        arguments = ["run", "--once", "--project", str(tmp_path), "--db", str(tmp_path / "db")]
        refused(await asyncio.to_thread(box.run, MODULE, arguments), 2, told)
        assert (await one(db, dispatch))["attempt"] == 0


@pytest.mark.parametrize("directory", ["typo", "file", "x" * 3000])
async def test_a_project_that_is_no_directory_is_refused(box: ProcessBox, tmp_path: Path, directory: str) -> None:
    (tmp_path / "file").touch()
    arguments = ["run", "--once", "--project", str(tmp_path / directory), "--db", str(tmp_path / "db")]
    refused(await asyncio.to_thread(box.run, MODULE, arguments), 2, "there is no such directory")
    assert not (tmp_path / "db").exists()


# Stopped while it opens its database, while it sends, and while the database refuses.


async def started(script: str, *arguments: str) -> asyncio.subprocess.Process:
    """The command line in a process of its own, changed by `script` before it runs."""
    program = f"import sys, functools, os, signal, outbox.dispatch.cli as cli\n{script}\nsys.exit(cli.main())"
    return await asyncio.create_subprocess_exec(
        *[sys.executable, "-c", program, *arguments], stdout=PIPE, stderr=PIPE, env=environment_of()
    )


async def end_of(process: asyncio.subprocess.Process) -> tuple[int | None, str]:
    """Its exit code and what it said on standard error."""
    async with asyncio.timeout(BOUND_SECONDS):
        _output, complaints = await process.communicate()
    return process.returncode, complaints.decode()


STOPPED_WHILE_OPENING = """
opening = cli.StateDB.__aenter__
async def stopped(self):
    os.kill(os.getpid(), signal.{number})
    return await opening(self)
cli.StateDB.__aenter__ = stopped
"""


@ONLY_SQLITE
@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
@pytest.mark.parametrize("once", [[], ["--once"]], ids=["run", "once"])
async def test_a_run_that_is_stopped_while_it_opens_its_database_claims_nothing(
    db: StateDB, url: str, tmp_path: Path, number: str, once: list[str]
) -> None:
    dispatch = await enqueue(db)
    script = STOPPED_WHILE_OPENING.format(number=number)
    process = await started(script, "--db", url, "run", "--project", str(tmp_path), *once)
    code, complaints = await end_of(process)
    assert (code, "Traceback" in complaints) == (0, False), complaints
    assert (await one(db, dispatch))["attempt"] == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("once", [[], ["--once"]], ids=["run", "once"])
async def test_a_run_that_is_stopped_while_it_sends_records_the_outcome_and_claims_nothing_more(
    program: Program, db: StateDB, tmp_path: Path, number: signal.Signals, once: list[str]
) -> None:
    async with Held() as held:
        sent, waiting = [await enqueue(db, deliver_to=held.url, lane="l") for _each in range(2)]
        arguments = ["--db", program.url, "run", "--project", str(tmp_path), *once]
        running = await asyncio.to_thread(program.box.launch, MODULE, arguments)
        await soon(held.arrived)
        running.send(number)
        # Only what is heard before the answer is told apart from what ends by itself.
        await asyncio.sleep(0.2)
        assert running.running
        held.go.set()
        ended = await asyncio.to_thread(running.wait)
    assert (ended.exit_code, ended.signal, "Traceback" in ended.stderr) == (0, None, False), ended
    assert ("stopped; nothing is being sent" in ended.stderr) == (not once)
    assert (await one(db, sent))["status"] == "delivered"
    assert (await one(db, waiting))["attempt"] == 0


@ONLY_SQLITE
async def test_a_stop_while_the_database_refuses_says_that_the_outcome_is_not_recorded(
    db: StateDB, url: str, tmp_path: Path
) -> None:
    async with Held() as held:
        dispatch = await enqueue(db, deliver_to=held.url)
        impatient = "cli.StateDB = functools.partial(cli.StateDB, busy_timeout_seconds=0.05)"
        process = await started(impatient, "--db", url, "run", "--project", str(tmp_path))
        await soon(held.arrived)
        async with db.begin():
            process.send_signal(signal.SIGTERM)
            held.go.set()
            code, complaints = await end_of(process)
    assert code == 13, complaints
    assert "stopped; the last scan failed, so what it sent may not be recorded" in complaints
    assert "the database is locked by another connection" in complaints.splitlines()[-1]
    assert "nothing is being sent" not in complaints
    assert (await one(db, dispatch))["status"] == "delivering"


async def test_one_scan_by_the_projects_settings(program: Program, tmp_path: Path) -> None:
    (tmp_path / "halt23.toml").write_text(
        '[dispatch]\nnotify_template = ["sh", "-c", "cat > \\"$1\\"; echo $HALT23_ATTEMPT $HALT23_DISPATCH_ID >> told", '
        '"sh", "{deliver_to}"]\n[dispatch.destination]\nsuccess_means = "stored"\n'
    )
    run = ["run", "--once", "--project", str(tmp_path)]
    ended = await program(*run)  # a run creates the database
    assert ended.exit_code == 0
    assert ended.stdout == "attempted 0, delivered 0, dead_letter 0, expired 0, retried 0, superseded 0\n"
    assert "success means stored; the destination may apply a dispatch twice" in ended.stderr
    async with StateDB(program.url) as db:
        dispatch = await enqueue(db, body={"order": 7}, deliver_to="seat-7")
        await enqueue(db, deliver_to="http://198.51.100.1/hook")
        told = await program.done(*run)
        assert told == {"attempted": 2, "delivered": 1, "dead_letter": 0, "expired": 0, "retried": 1, "superseded": 0}
        assert (await one(db, dispatch))["status"] == "delivered"
    assert (tmp_path / "told").read_text() == f"1 {dispatch}\n"
    assert json.loads((tmp_path / "seat-7").read_text())["body"] == {"order": 7}


async def test_a_run_says_which_database_it_uses_and_how(program: Program, tmp_path: Path) -> None:
    ended = await program("run", "--once", "--project", str(tmp_path))
    first, *_rest = ended.stderr.splitlines()
    if program.url.startswith("postgresql"):
        assert ": postgresql " in first
        assert first.endswith("(psycopg)")
    else:
        chosen = choose()
        assert first == (
            f"dispatch: {program.url}: sqlite {chosen.version} ({chosen.package}), journal mode {chosen.journal_mode}"
        )
    assert "notify template: none, so only URLs can be sent to" in ended.stderr


def test_the_version_tells_sqlite_and_its_mode(box: ProcessBox) -> None:
    chosen = choose()
    told = f"SQLite {chosen.version} ({chosen.package}), journal mode {chosen.journal_mode}\n"
    assert box.run(MODULE, ["--version"]) == Ended(0, None, told, "")


def test_help_names_every_command_and_no_enqueue(box: ProcessBox) -> None:
    ended = box.run(MODULE, ["--help"])
    assert ended.exit_code == 0
    assert all(f"\n    {command} " in ended.stdout for command in ("ls", "show", "ack", "retry", "purge", "events", "run"))
    assert "enqueue" not in ended.stdout


def test_it_runs_without_a_box_as_anybody_starts_it(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    command = [sys.executable, "-W", "error", "-m", MODULE]
    run = subprocess.run(
        [*command, "--db", path, "run", "--once"], capture_output=True, env=environment_of(), cwd=tmp_path, check=False
    )
    assert (run.returncode, run.stdout.startswith(b"attempted 0")) == (0, True), run
    ls = subprocess.run([*command, "ls", "--db", path], capture_output=True, env=environment_of(), cwd=tmp_path, check=False)
    assert (ls.returncode, ls.stdout, ls.stderr) == (0, b"no dispatches\n", b"")


# Outputs that nobody reads.


async def test_an_output_that_nobody_reads_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "db"
    async with StateDB(path) as db:
        dispatch = await enqueue(db, deliver_to="x" * 100_000)

    def run(case: str) -> "subprocess.CompletedProcess[bytes]":
        output, _space, command = case.partition(" ")
        words = [sys.executable, "-m", MODULE, "--db", str(path), *command.replace("ID", dispatch).split()]
        reading, writing = os.pipe()
        os.close(reading)
        with open("/dev/full", "wb") as full, open(writing, "wb") as pipe:
            return subprocess.run(
                ["sh", "-c", 'exec "$@" >&-', "sh", *words] if output == "closed" else words,
                stdout=full if output == "full" else pipe,
                stderr=subprocess.PIPE,
                env=environment_of(),
                cwd=tmp_path,
                timeout=BOUND_SECONDS,
                check=False,
            )

    cases = ["pipe ls", "closed ls", "full ls", "pipe show ID", "full ls --json"]
    done = await asyncio.gather(*(asyncio.to_thread(run, case) for case in cases))
    assert {case: (each.returncode, each.stderr) for case, each in zip(cases, done, strict=True)} == dict.fromkeys(
        cases, (0, b"")
    )


# At a time that is given.

AT = 1_000_500.25


@ONLY_SQLITE
@pytest.mark.parametrize("command", ["ack", "retry", "purge", "purge-many"])
@pytest.mark.parametrize("now", ["nan", "inf", "-inf", "soon", ""])
async def test_a_time_that_is_none_is_refused_and_nothing_is_done(
    db: StateDB, program: Program, command: str, now: str
) -> None:
    dispatch = await in_status(db, "pending" if command == "ack" else "dead_letter", ack_required=True, ack_token=TOKEN)
    before = await everything(db)
    rest = {"ack": [dispatch, TOKEN], "purge-many": ["--status", "dead_letter"]}.get(command, [dispatch])
    refused(await program(command.removesuffix("-many"), *rest, f"--now={now}"), 2, "now")
    assert await everything(db) == before


async def test_an_acknowledgement_and_a_retry_happen_at_the_given_time(db: StateDB, program: Program) -> None:
    acked, dead = await enqueue(db, ack_required=True, ack_token=TOKEN), await in_status(db, "dead_letter")
    assert (await program("ack", acked, TOKEN, "--now", str(AT))).exit_code == 0
    assert (await program("retry", dead, "--now", str(AT))).exit_code == 0
    assert [(await one(db, each))["updated_at"] for each in (acked, dead)] == [AT, AT]
    assert (await one(db, dead))["next_attempt_at"] == AT
    times = await peek(db, "SELECT DISTINCT created_at FROM status_transitions WHERE status = 'acked' OR source = 'operator'")
    assert times == [{"created_at": AT}]


async def test_a_purge_reports_the_given_time_and_an_age_counts_back_from_it(db: StateDB, program: Program) -> None:
    one_row, other = await in_status(db, "dead_letter"), await in_status(db, "dead_letter")
    aged = ("purge", "--status", "dead_letter", "--older-than-seconds", "10")
    assert (await program("purge", one_row, "--now", str(AT))).exit_code == 0
    assert (await program(*aged, "--now", str(PAST + 9))).exit_code == 0
    assert (await one(db, other))["status"] == "dead_letter"
    assert (await program(*aged, "--now", str(PAST + 10))).exit_code == 0
    assert await peek(db, "SELECT id FROM dispatch_outbox") == []
    assert [each["created_at"] for each in await list_admin_events(db)] == [AT, PAST + 10]


@ONLY_SQLITE
@pytest.mark.parametrize("command", [["ls"], ["show", "x"], ["events"], ["run", "--once"]])
async def test_a_command_that_does_nothing_at_a_time_takes_none(program: Program, command: list[str]) -> None:
    refused(await program(*command, "--now", "1000"), 2, "--now")

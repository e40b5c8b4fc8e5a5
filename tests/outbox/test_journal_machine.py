"""The journal and the machine under it: locks, a full disk, a failing sync, what is synced when, and memory."""

import json
import re
import shutil
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from outbox.errors import LockHeld
from outbox.index import SPILL_AT
from tests.outbox import notes
from tests.outbox.notes import NOTES, entries, forge, members, open_and_read
from tests.outbox.world import environment_of, python
from tests.support import BOUND_SECONDS

HAVE_STRACE = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace: apt-get install strace")


# Locks.

HOLDER = """
import sys
from pathlib import Path
from tests.outbox.notes import NOTES
with NOTES.open(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
print("released", flush=True)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that owns the journal in `tmp_path` until it reads a line or dies."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment_of(),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_process_is_refused_at_once(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    assert holder.poll() is None
    with pytest.raises(LockHeld, match=r"notes\.jsonl: another process holds its lock"):
        NOTES.open(tmp_path)


def test_a_second_process_is_refused_once_its_wait_is_over(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    assert holder.poll() is None
    began = time.monotonic()
    with pytest.raises(LockHeld, match=r"waited 0\.2 s"):
        NOTES.open(tmp_path, wait_seconds=0.2)
    assert time.monotonic() - began >= 0.2


def test_a_killed_holder_blocks_nobody(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait(BOUND_SECONDS)
    NOTES.open(tmp_path).close()


def test_who_waits_gets_the_journal_when_it_is_released(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.outbox.notes import NOTES\n"
        "with NOTES.open(Path(sys.argv[1]), wait_seconds=25) as opened:\n"
        "    opened.append('note', 'waited', {})\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], env=environment_of()) as waiter:
        until_blocked(NOTES.path(tmp_path))
        assert holder.stdin is not None
        holder.stdin.write("\n")
        holder.stdin.flush()
        assert waiter.wait(BOUND_SECONDS) == 0
    assert open_and_read(tmp_path) == [("note", "waited", {})]


def until_blocked(path: Path) -> None:
    """Wait until the kernel shows somebody who waits for the lock of `path`."""
    inode = path.stat().st_ino
    end = time.monotonic() + BOUND_SECONDS
    while not re.search(rf"-> FLOCK .*:{inode} ", Path("/proc/locks").read_text()):
        assert time.monotonic() < end, "nobody waits for the lock"


def test_whoever_waited_in_vain_does_not_keep_the_lock(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(LockHeld):
        NOTES.open(tmp_path, wait_seconds=0.05)
    holder.kill()
    holder.wait(BOUND_SECONDS)
    # The thread that waited gets the lock of a closed file and with it nothing that lasts.
    NOTES.open(tmp_path, wait_seconds=BOUND_SECONDS).close()


@HAVE_STRACE
def test_a_lock_that_the_kernel_cannot_give_is_not_taken_for_given(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    assert holder.poll() is None
    code = (
        "import sys; from pathlib import Path; from tests.outbox.notes import NOTES\n"
        "NOTES.open(Path(sys.argv[1]), wait_seconds=25)\n"
        "print('owned')\n"
    )
    ended = python(code, str(tmp_path), prefix=strace(tmp_path, "-e", "trace=flock", "-e", "inject=flock:error=EAGAIN"))
    assert ended.stdout == "", "two processes own the journal"


# A full disk.

FULL_DISK = """
import json, resource, sys
from pathlib import Path
from outbox.errors import MachineRefused
from tests.outbox.notes import NOTES
directory, spare = Path(sys.argv[1]), int(sys.argv[2])
path = NOTES.path(directory)
with NOTES.open(directory) as opened:
    opened.append("note", "first", {"text": "x" * 100})
    before = path.read_bytes()
    _soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + spare, hard))
    refusals = []
    for _again in range(2):
        try:
            opened.append("note", "second", {"text": "y" * 100})
        except MachineRefused as error:
            refusals.append([str(error), error.disk_full, error.exit_code])
        assert path.read_bytes() == before, "the file is not as it was"
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    opened.append("note", "third", {})
print(json.dumps(refusals))
"""


@pytest.mark.parametrize("spare", [0, 1, 150])
def test_a_full_disk_refuses_the_record_leaves_the_file_and_is_forgotten_when_there_is_room(tmp_path: Path, spare: int) -> None:
    ended = python(FULL_DISK, str(tmp_path), str(spare))
    assert (ended.returncode, ended.stderr) == (0, "")
    refusals = json.loads(ended.stdout)
    assert len(refusals) == 2
    for message, disk_full, exit_code in refusals:
        assert str(NOTES.path(tmp_path)) in message
        assert (disk_full, exit_code) == (True, 16)
    assert [record_id for _type, record_id, _data in open_and_read(tmp_path)] == ["first", "third"]


def test_a_disk_too_full_to_repair_is_told_and_loses_nothing(tmp_path: Path) -> None:
    lines = notes.write(tmp_path, 2)
    lacking = b"".join(lines)[:-1]
    NOTES.path(tmp_path).write_bytes(lacking)
    code = (
        "import resource, sys; from pathlib import Path; from outbox.errors import MachineRefused\n"
        "from tests.outbox.notes import NOTES\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)\n"
        "try: NOTES.open(Path(sys.argv[1]))\n"
        "except MachineRefused as error: print(error.disk_full)\n"
    )
    ended = python(code, str(tmp_path), str(len(lacking)))
    assert (ended.stdout, ended.stderr) == ("True\n", "")
    assert NOTES.path(tmp_path).read_bytes() == lacking
    assert open_and_read(tmp_path) == entries(2)


SPILL_FAILS = """
import json, os, resource, sys, tempfile  # the last is what a spill imports: it needs descriptors
from pathlib import Path
from outbox.errors import MachineRefused
from tests.outbox.notes import NOTES
directory = Path(sys.argv[1])
told = []
with NOTES.open(directory) as opened:
    # No descriptor is left for the temporary file of the index, which must move to disk at some append below.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) - 1, hard))
    for number in range(12):
        try:
            opened.append("note", f"new-{number}", {})
            told.append("appended")
        except MachineRefused as error:
            told.append("refused")
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(json.dumps(told))
"""


def test_an_index_that_cannot_move_to_disk_does_not_make_the_journal_write_what_it_refuses_later(tmp_path: Path) -> None:
    content = forge([members("note", f"{number:0300}", {}) for number in range(SPILL_AT - 5)])
    NOTES.path(tmp_path).write_bytes(content)
    ended = python(SPILL_FAILS, str(tmp_path))
    assert (ended.returncode, ended.stderr) == (0, "")
    told = json.loads(ended.stdout)
    assert "refused" in told
    kept = [record_id for _type, record_id, _data in open_and_read(tmp_path)][SPILL_AT - 5 :]
    acknowledged = [f"new-{number}" for number, what in enumerate(told) if what == "appended"]
    assert set(acknowledged) <= set(kept)


# Syncs, as the kernel sees them.


def strace(directory: Path, *options: str) -> list[str]:
    return ["strace", "-f", "-y", "-qq", "-o", str(directory / "trace"), *options]


def calls(directory: Path) -> list[str]:
    """The traced calls that concern the journal's directory or standard output, in order."""
    kept = []
    for line in (directory / "trace").read_text().splitlines():
        call = line.split(maxsplit=1)[1]
        if str(directory / "outbox") in call or call.startswith("write(1<"):
            kept.append(call)
    return kept


@HAVE_STRACE
def test_creating_and_appending_sync_the_directories_and_the_file_before_they_return(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path\n"
        "from outbox.journal import make_directory; from tests.outbox.notes import NOTES\n"
        "directory = Path(sys.argv[1])\n"
        "make_directory(directory); os.write(1, b'directory')\n"
        "opened = NOTES.open(directory); os.write(1, b'opened')\n"
        "opened.append('note', 'a', {}); os.write(1, b'appended')\n"
    )
    directory = tmp_path / "outbox" / "inner"
    ended = python(code, str(directory), prefix=strace(tmp_path, "-e", "trace=mkdir,openat,fsync,fdatasync,write,pwrite64"))
    assert (ended.returncode, ended.stdout) == (0, "directoryopenedappended")
    seen = calls(tmp_path)
    path = NOTES.path(directory)

    def at(pattern: str) -> int:
        found = [number for number, call in enumerate(seen) if re.search(pattern, call)]
        assert found, f"no {pattern} in {seen}"
        return found[0]

    made, opened, appended = at(r"write\(1<.*directory"), at(r"write\(1<.*opened"), at(r"write\(1<.*appended")
    tmp, inner = re.escape(str(tmp_path)), re.escape(str(directory))
    # Each new directory is a name in its parent.
    assert at(rf'mkdir\("{tmp}/outbox"') < at(rf'mkdir\("{inner}"') < made
    assert (tmp_path / "outbox").is_dir()
    assert at(rf"fsync\(\d+<{tmp}/outbox>\)") < made
    created = at(rf'openat\(.*"{re.escape(str(path))}".*O_CREAT')
    assert made < created < at(rf"fsync\(\d+<{inner}>\)") < opened
    written = at(rf"write\(\d+<{re.escape(str(path))}>")
    synced = [number for number, call in enumerate(seen) if re.search(rf"fsync\(\d+<{re.escape(str(path))}>\)", call)]
    assert opened < written < max(synced) < appended
    assert any(number > written for number in synced)


@HAVE_STRACE
@pytest.mark.parametrize("lost", [1, 30], ids=["newline", "torn"])
def test_a_repair_is_synced_before_the_journal_is_used(tmp_path: Path, lost: int) -> None:
    directory = tmp_path / "outbox"
    directory.mkdir()
    whole = b"".join(notes.write(directory, 2))
    NOTES.path(directory).write_bytes(whole[:-lost])
    code = (
        "import os, sys; from pathlib import Path; from tests.outbox.notes import NOTES\n"
        "NOTES.open(Path(sys.argv[1])); os.write(1, b'opened')\n"
    )
    ended = python(code, str(directory), prefix=strace(tmp_path, "-e", "trace=ftruncate,fsync,write"))
    assert (ended.returncode, ended.stdout) == (0, "opened")
    repair, sync, opened = calls(tmp_path)
    assert repair.startswith("write(" if lost == 1 else "ftruncate(")
    assert sync.startswith("fsync(")
    assert opened.startswith("write(1<")


FAILING_SYNC = """
import json, sys
from pathlib import Path
from outbox.errors import MachineRefused
from tests.outbox.notes import NOTES
directory, told = Path(sys.argv[1]), []

def attempt(opened, name):
    try:
        opened.append("note", name, {})
        told.append(["appended", NOTES.path(directory).read_bytes().count(b"\\n")])
    except MachineRefused as error:
        told.append([str(error), NOTES.path(directory).read_bytes().count(b"\\n")])

with NOTES.open(directory) as opened:
    attempt(opened, "a")
    if len(sys.argv) > 2:
        for name in ("b", "c", "b"):
            attempt(opened, name)
if len(sys.argv) > 2:
    with NOTES.open(directory) as opened:
        attempt(opened, "c")
print(json.dumps(told))
"""


@HAVE_STRACE
def test_after_a_failed_sync_nothing_is_appended_until_the_journal_is_opened_again(tmp_path: Path) -> None:
    directory = tmp_path / "outbox"
    directory.mkdir()
    prefix = strace(tmp_path, "-e", "trace=fsync")
    assert python(FAILING_SYNC, str(directory), prefix=prefix).stdout == '[["appended", 1]]\n'
    syncs = len((tmp_path / "trace").read_text().splitlines())
    NOTES.path(directory).unlink()
    # The same again, and this time the sync of the second record fails.
    ended = python(FAILING_SYNC, str(directory), "on", prefix=[*prefix, "-e", f"inject=fsync:error=EIO:when={syncs + 1}"])
    assert (ended.returncode, ended.stderr) == (0, "")
    first, failed, *refused, reopened = json.loads(ended.stdout)
    assert first == ["appended", 1]
    assert ("Input/output error" in failed[0], failed[1]) == (True, 1)
    for message, count in refused:
        assert ("fsync" in message, "open the journal again" in message, count) == (True, True, 1)
    assert reopened == ["appended", 2]
    assert [record_id for _type, record_id, _data in open_and_read(directory)] == ["a", "c"]


@HAVE_STRACE
def test_a_record_that_the_disk_will_not_give_back_is_the_machine_refusing(tmp_path: Path) -> None:
    directory = tmp_path / "outbox"
    directory.mkdir()
    notes.write(directory, 2)
    code = (
        "import sys; from pathlib import Path; from outbox.errors import MachineRefused; from tests.outbox.notes import NOTES\n"
        "with NOTES.open(Path(sys.argv[1])) as opened:\n"
        "    try: opened.find('note', 'n-1')\n"
        "    except MachineRefused as error: print('refused')\n"
    )
    options = ("-P", str(NOTES.path(directory)), "-e", "trace=pread64", "-e", "inject=pread64:error=EIO")
    ended = python(code, str(directory), prefix=strace(tmp_path, *options))
    assert (ended.stdout, ended.stderr) == ("refused\n", "")


# Memory.

MANY = SPILL_AT + 10_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a journal whose index spills."""
    directory = tmp_path_factory.mktemp("large")
    NOTES.path(directory).write_bytes(forge([members("note", f"n-{number}", {"number": number}) for number in range(MANY)]))
    return directory


@pytest.mark.campaign
def test_reading_streams_in_memory_that_does_not_grow(large: Path) -> None:
    tracemalloc.start()
    try:
        count = sum(1 for _record in NOTES.read(large))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == MANY
    assert peak < 1_000_000


@pytest.mark.campaign
def test_opening_a_large_journal_stays_within_a_bound_and_finds_records_on_both_sides_of_the_spill(large: Path) -> None:
    tracemalloc.start()
    try:
        with NOTES.open(large) as opened:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert len(opened) == MANY
            for number in (0, 1, SPILL_AT - 1, SPILL_AT, SPILL_AT + 1, MANY - 1):
                record = opened.find("note", f"n-{number}")
                assert record is not None
                assert record.data == {"number": number}
            assert opened.find("note", f"n-{MANY}") is None
            assert opened.append("note", "n-7", {"number": 7}).sequence == 8
    finally:
        tracemalloc.stop()
    assert peak < 12_000_000

"""The log of strace: what counts, where, in which order, and what makes a recording worthless."""

from __future__ import annotations

import pytest

from scenarios.power import log
from scenarios.power.events import CREATE, END, NETWORK, OUTPUT, REMOVE, RENAME, SYNC, TELL, WRITE, Event
from scenarios.power.log import Unmodelled

ROOT = "/run"
MAIN = {1: "sender", 2: "receiver"}


def x(text: str) -> str:
    """Text as strace writes it with -xx."""
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def opened(pid: int, number: int, path: str, flags: str) -> str:
    """A successful openat."""
    return f'{pid} openat(AT_FDCWD<{x(ROOT)}>, "{x(path)}", {flags}, 0644) = {number}<{x(f"{ROOT}/{path}")}>'


def on(number: int, path: str) -> str:
    """A descriptor as an argument."""
    return f"{number}<{x(f'{ROOT}/{path}')}>"


def read(*lines: str) -> list[Event]:
    """The events of a log."""
    return list(log.read(lines, ROOT, MAIN))


def test_appends_follow_each_other_whoever_makes_them_and_threads_belong_to_their_process() -> None:
    append = "O_RDWR|O_CREAT|O_APPEND|O_CLOEXEC"
    assert read(
        opened(1, 5, "a", append),
        f'1 write({on(5, "a")}, "{x("one")}", 3) = 3',
        "1 clone3({flags=CLONE_VM|CLONE_THREAD}, 88) = 7",
        opened(7, 6, "a", append),
        f'7 write({on(6, "a")}, "{x("two!")}", 4) = 3',
        f"7 fsync({on(6, 'a')}) = 0",
        "1 +++ exited with 0 +++",
        "2 +++ killed by SIGKILL +++",
    ) == [
        Event(CREATE, "sender", "a"),
        Event(WRITE, "sender", "a", data=b"one"),
        Event(WRITE, "sender", "a", number=3, data=b"two"),
        Event(SYNC, "sender", "a", number=3),
        Event(END, "sender", number=0),
        Event(END, "receiver", number=-1),
    ]


def test_a_sync_that_others_came_between_counts_what_was_written_before_it_began() -> None:
    found = read(
        opened(1, 5, "a", "O_WRONLY|O_CREAT"),
        f"1 fsync({on(5, 'a')} <unfinished ...>",
        opened(2, 5, "b", "O_WRONLY|O_CREAT"),
        f'2 pwrite64({on(5, "b")}, "{x("z")}", 1, 4096) = 1',
        "1 <... fsync resumed>) = 0",
    )
    assert found[-1] == Event(SYNC, "sender", "a", number=1)
    assert found[-2] == Event(WRITE, "receiver", "b", number=4096, data=b"z")


def test_what_is_told_is_told_when_the_call_begins() -> None:
    tcp = f"9<{x('TCP')}:[127.0.0.1:1->127.0.0.1:2]>".replace(x("TCP"), "TCP")
    found = read(
        f'1 sendto({tcp}, "{x("POST")}", 4, 0, NULL, 0 <unfinished ...>',
        opened(2, 5, "b", "O_WRONLY|O_CREAT"),
        "1 <... sendto resumed>) = 4",
        f'2 write(1<pipe:[77]>, "{x("READY")}", 5) = 5',
        f'2 sendto(8<UNIX-STREAM:[1->2]>, "{x("w")}", 1, 0, NULL, 0) = 1',
    )
    assert found == [Event(TELL, "sender", NETWORK), Event(CREATE, "receiver", "b"), Event(TELL, "receiver", OUTPUT)]


def test_names_are_found_below_the_folder_and_failures_and_strangers_do_not_count() -> None:
    assert read(
        opened(1, 5, "a", "O_WRONLY|O_CREAT"),
        f'1 rename("{x("a")}", "{x("b")}") = 0',
        f'1 unlink("{x(f"{ROOT}/b")}") = 0',
        f'1 unlink("{x("b")}") = -1 ENOENT (No such file or directory)',
        f'1 unlink("{x("/elsewhere/b")}") = 0',
        f'3 unlink("{x(f"{ROOT}/a")}") = 0',
        "1 --- SIGCHLD {si_signo=SIGCHLD} ---",
    ) == [Event(CREATE, "sender", "a"), Event(RENAME, "sender", "a", "b"), Event(REMOVE, "sender", "b")]


def test_shared_memory_of_sqlite_is_no_state() -> None:
    shm = "db-shm"
    assert (
        read(
            opened(1, 5, shm, "O_RDWR|O_CREAT"),
            f"1 mmap(NULL, 32768, PROT_READ|PROT_WRITE, MAP_SHARED, {on(5, shm)}, 0) = 0x7f0000000000",
            f'1 unlink("{x(shm)}") = 0',
        )
        == []
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (f"1 mmap(NULL, 9, PROT_READ|PROT_WRITE, MAP_SHARED, {on(5, 'a')}, 0) = 0x7f0000000000", "through memory"),
        (f'1 write({on(5, "a")}, "{x("one")}"..., 300) = 300', "did not record all"),
        (f'1 write({on(9, "a")}, "{x("one")}", 3) = 3', "a place that is not known"),
        (f'1 rename("{x("a")}", "{x("/elsewhere/a")}") = 0', "into or out of its folder"),
        (f"1 fallocate({on(5, 'a')}, 0, 0, 4096) = 0", "is not followed"),
        (f'1 link("{x("a")}", "{x("b")}") = 0', "is not followed"),
        (f'1 sendto(8<socket:[1]>, "{x("w")}", 1, 0, NULL, 0) = 1', "what a socket is connected to"),
        ("nonsense", "a line that is none"),
        ("1 nonsense", "a call that cannot be read"),
    ],
)
def test_what_the_model_has_no_word_for_makes_a_recording_worthless(line: str, why: str) -> None:
    with pytest.raises(Unmodelled, match=why):
        read(opened(1, 5, "a", "O_WRONLY|O_CREAT"), line)

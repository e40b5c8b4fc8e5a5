"""What the audit knows of campaigns by itself: which subjects there are, which points, and what a network can do.

Subjects are pinned by the hash of their object in `plan.json`: what one operation may come to is part of it, and must not be
softened after the fact. A subject that is not here is not refused; what it allows is its own word then, and the campaign's
verdict is UNKNOWN.
"""

from __future__ import annotations

DEATH, PAUSE, CUT, ERROR, POWER_CUT = "death", "pause", "cut", "error", "power cut"
POINTS, WIRE, PAUSES, LINES, SYSCALLS, POWER, RANDOM = "points", "wire", "pauses", "lines", "syscalls", "power", "random"
# Histories of each subject, where the budget says nothing; and those of a subject that are shrunk.
HISTORIES, MOST_SHRUNK = 100, 3
KEEP_FAILED, KEEP_ALL = "failed", "all"
HELD, VIOLATED, UNKNOWN = "held", "violated", "unknown"
LOST, DUPLICATE, PHANTOM, STUCK, UNDECLARED = "lost", "duplicate", "phantom", "stuck", "undeclared"
KINDS = (LOST, DUPLICATE, PHANTOM, STUCK, UNDECLARED)
SPARE_ROUNDS = 3
FIRST_OF_LINE = 8
"""Of the many times that a run comes to a line, the first eight and the last are cases."""
STUDIED = ("outbox", "receivers", "scenarios.oracle")
"""Where the modules are whose lines count."""
START_SECONDS = 1000
DEEPEST = 3
RELAY, COPY = "relay", "duplicate-request"

PLACES = ("start", "7", "start-line", "60", "headers", "body-middle", "end")
CUTS = (
    *[f"{how}-{side}:{place}" for how in ("cut", "reset") for side in ("request", "response") for place in PLACES],
    "duplicate-request", "hold-response", "redirect", "unreadable-success", "oversized-success", "retry-after-seconds",
)  # fmt: skip
"""What a relay is told to do, in the order of the cases."""

SYNCED, UNSYNCED = ("before", "written", "synced"), ("before", "written")
JOURNALS = {
    "intentions": (("intention",), SYNCED),
    "attempts": (("attempt", "outcome", "inquiry"), SYNCED),
    "receipts": (("receipt",), SYNCED),
    "history": (("history",), SYNCED),
    "arrivals": (("arrival", "answer", "query"), UNSYNCED),
    "effects": (("effect",), SYNCED),
    "keys": (("key",), SYNCED),
}
"""The types that each journal holds, and what there is of a write of it."""
TRANSACTIONS = ("claim", "outcome", "enqueue", "ack", "retry", "purge")


def is_line(point: str) -> bool:
    """Whether this is `MODULE:LINE`, and no declared point."""
    module, colon, number = point.rpartition(":")
    studied = any(module == each or module.startswith(each + ".") for each in STUDIED)
    return bool(colon) and studied and number.isascii() and number.isdigit() and number[0] != "0"


def declared() -> list[str]:
    """Every point, sorted."""
    found = ["send.before", "send.response", "inquiry.before", "dispatch.send.before", "dispatch.send.response"]
    found += ["recorded.error.committed", "recorded.status.committed", "dispatch.enqueue.looked"]
    found += [f"dispatch.{act}.{when}" for act in TRANSACTIONS for when in ("before", "written", "committed")]
    for journal, (types, steps) in JOURNALS.items():
        found += [f"{journal}.{act}.{when}" for act in ("create", "repair") for when in steps]
        found += [f"{each}.append.{when}" for each in types for when in (*steps, "torn")]
    return sorted(found)


SUBJECTS: dict[str, str] = {
    "journal/keyed": "33d31fd30de49471423a392fd042c8cfa686527714f893454b9d924764dd0e1b",
    "journal/unkeyed": "a283407a1d388fc967d8aa8c372b8d4bd26262ef79f2cf7973d5893aaf5b50a7",
    "journal/capacity": "50b91030b8cf60154928fcab2906cac573f3ec7e3ef966fce373ca05c6572f45",
    "journal/status-query": "2265085b3d683959a8960f6df3789e6ff6ff499449d72eb0cab8d997879b7085",
    "dispatch/keyed": "762dcaf2207bc5b672b1fc5814f2eb2abb8c81d03b5be97c55b5a83fb8df6741",
    "dispatch/unkeyed": "e69b91d1d25be1aed1c2e4bd088bf5e4b6ec1e0e3c3c2ded1243c0006cab0453",
    "dispatch-ack/keyed": "939ee54c543a381dfd7d49dce259fe4ae8ac91e138ab8a9e8652f58f6d34ef4c",
    "dispatch-operator/keyed": "c673c858f90ebb6068013f23b9775138ff7171871d6d33b92b408532d9e360c4",
}
"""The SHA-256 of each subject's object, in canonical form. `python -m tests.audit.campaigns` prints them."""

WRITES, SYNCS = ("write", "pwrite64"), ("fsync", "fdatasync")
OPENS = ("openat", "open", "creat")
ON_FILES = (
    *WRITES, *SYNCS, "ftruncate", "fallocate", "writev", "pwritev", "pwritev2", "sendfile", "copy_file_range", *OPENS, "mkdir",
    "mkdirat", "rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "link", "linkat", "symlink", "symlinkat",
    "truncate",
)  # fmt: skip
"""The system calls by which something in a file outlives a process."""
ON_SOCKETS = ("connect", "accept4", "sendto", "sendmsg")
TCP, SYS, INJECTED = "tcp", "sys:", "!"
KILLED, SHORT = "", "SHORT"
REFUSED_NOT = (KILLED, "EINTR", SHORT)
"""What does not say that the machine refuses: an interrupted call is made again, what is short is written on."""
ERRORS = {
    **dict.fromkeys(WRITES, ("ENOSPC", "EIO", "EINTR", SHORT)),
    **dict.fromkeys((*SYNCS, "ftruncate", "truncate", "fallocate"), ("EIO", "ENOSPC", "EINTR")),
    **dict.fromkeys(
        (*OPENS, "mkdir", "mkdirat", "rename", "renameat", "renameat2", "link", "linkat", "symlink"), ("ENOSPC", "EIO")
    ),
    **dict.fromkeys(("unlink", "unlinkat", "rmdir"), ("EIO",)),
    "connect": ("ECONNREFUSED",), "sendto": ("ECONNRESET",), "sendmsg": ("ECONNRESET",), "accept4": ("ECONNABORTED",),
}  # fmt: skip
"""What each call is made to fail with, in the order of the cases."""
DECLARED_CODES = (0, 2, 10, 11, 12, 13, 14, 15, 16)
NOTHING_TO_DO = 1
MAY_FIND_NOTHING = ("outbox.dispatch", "scenarios.explore.consumer", "scenarios.oracle.operators")
"""Python ends with 1 by itself; these programs declare it, too."""
_DATABASE = r"\w+ (?:state/dispatch\.db(?:-wal|-shm|-journal)?|state)"
EXPLAINED = (
    (
        _DATABASE, _DATABASE,
        "inside the database: SQLite answers for a death between two of its own calls and recovers when the file is opened "
        "next; points are before, in and behind each transaction",
    ),
    (
        r"mkdir \S+", r"fsync \.",
        "a new folder and its sync: it is empty, and whoever comes next finds it or makes it, as before the first create point",
    ),
    (
        r"fsync (outbox|receiver)/\w+\.jsonl", r"fsync (outbox|receiver)",
        "the two syncs of a new journal: nothing is written between them, and a process that dies loses nothing by a missing "
        "sync",
    ),
    (
        r"connect tcp", r"sendto tcp",
        "a connection that carried nothing: to the receiver it is as if the sender had died at its point before the request",
    ),
    (
        r"sendto tcp", r"accept4 tcp",
        "between two requests: the answer to the one is given, of the other nothing is read, as at the point before its "
        "arrival is recorded",
    ),
)  # fmt: skip
"""Windows that need no point: the calls on both sides, and why."""

"""What a process asked of the system, as strace tells of it: the calls by which something outlives the process.

Counted are calls on files below the case's folder, and calls on TCP sockets. What else an interpreter does (reading its own
modules, printing, waking itself through a pipe or a socket pair) is left out, and so is what the harness has it write: lists of
points are told apart as marks, not as calls. A listing is plain text, a line for each call, without process ids, descriptors,
times or absolute paths: two runs that did the same have the same listing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

WRITES = ("write", "pwrite64")
SYNCS = ("fsync", "fdatasync")
ON_DESCRIPTORS = (*WRITES, *SYNCS, "ftruncate", "fallocate", "writev", "pwritev", "pwritev2", "sendfile", "copy_file_range")
ON_PATHS = (
    "openat", "open", "creat", "mkdir", "mkdirat", "rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "link",
    "linkat", "symlink", "symlinkat", "truncate",
)  # fmt: skip
ON_FILES = (*ON_DESCRIPTORS, *ON_PATHS)
ON_SOCKETS = ("connect", "accept4", "sendto", "sendmsg")
OPENS = ("openat", "open", "creat")
# What the harness and its instruments keep in the case's folder.
NOT_COUNTED = ("points", "calls")
POINT, TCP, OTHER = "point", "tcp", "other"
OK, NO_RESULT, INJECTED = "ok", "-", "!"
# A connection that is being made is as good as one that is made.
GOOD = (OK, "EINPROGRESS")

_CALL = re.compile(r"(?:(?P<pid>\d+) +)?(?P<name>\w+)\((?P<rest>.*)")
_RESUMED = re.compile(r"(?:(?P<pid>\d+) +)?<\.\.\. (?P<name>\w+) resumed>(?P<rest>.*)")
_UNFINISHED = " <unfinished ...>"
_RESULT = re.compile(
    r"\) += (?P<value>-?\d+|0x[0-9a-f]+|\?)(?:<.*>)?(?: (?P<error>E[A-Z0-9]+) .*?)?(?P<injected> \(INJECTED\))?$"
)
_DESCRIPTOR = re.compile(r"\d+<(?P<path>/.*?)>(?:\(deleted\))?[,)]")
_AT = re.compile(r'(?:(?:AT_FDCWD|\d+)<(?P<base>.*?)>, )?"(?P<path>(?:[^"\\]|\\.)*)"')
_SIZE = {"write": re.compile(r", (\d+)(?:\) +=|$)"), "pwrite64": re.compile(r", (\d+), (\d+)(?:\) +=|$)")}
_SENT = re.compile(r'"\.*, (\d+), ')
_MARK = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `target` is a path below the case's folder (`.` is the folder itself), `tcp`, or `other` for a socket that is
    none of the program's connections; `thread` 1 is the one that began. Of a write `size` bytes were to be written at `offset`,
    where the call says it. `result` is how many were, `ok`, an error, or `-` where the process ended in it; `!` behind it says
    that it was injected. `changes` is false of a call that only counts: an open that creates nothing, a call that failed.

    As a mark (`name` is `point`) it says that the fault point `target` was reached.
    """

    thread: int
    name: str
    target: str
    size: int = 0
    offset: int | None = None
    changes: bool = True
    result: str = OK

    @property
    def line(self) -> str:
        """Its line in a listing."""
        offset = "-" if self.offset is None else self.offset
        kind = "changes" if self.changes else "counts"
        return f"{self.thread} {self.name} {self.target.replace(' ', '%20')} {self.size} {offset} {kind} {self.result}"

    @property
    def told(self) -> str:
        """`fsync outbox/attempts.jsonl`."""
        return f"{self.name} {self.target}"


def listing(calls: Sequence[Call]) -> str:
    """The listing of calls, a line for each."""
    return "".join(f"{call.line}\n" for call in calls)


def read_listing(text: str) -> tuple[Call, ...]:
    """The calls of a listing of ours."""
    found = []
    for line in text.splitlines():
        thread, name, target, size, offset, kind, result = line.split(" ")
        at = None if offset == "-" else int(offset)
        found.append(Call(int(thread), name, target.replace("%20", " "), int(size), at, kind == "changes", result))
    return tuple(found)


def parse(log: str, directory: Path, pid: int | None = None) -> tuple[Call, ...]:
    """The counted calls and the marks of strace's log of one process that worked in `directory`. Its first thread is that of
    `pid`, or whichever the log begins with."""
    threads: dict[str, int] = {} if pid is None else {str(pid): 1}
    found = []
    for which, name, rest in _whole(log):
        thread = threads.setdefault(which, len(threads) + 1)
        call = _call(thread, name, rest, directory)
        if call is not None:
            found.append(call)
    return tuple(found)


def _whole(log: str) -> Iterator[tuple[str, str, str]]:
    """Pid, name and what follows the bracket of each call, in the order in which they began."""
    begun: list[list[str]] = []
    open_: dict[str, list[str]] = {}
    for line in log.splitlines():
        if (match := _CALL.fullmatch(line)) is not None:
            parts = [match["pid"] or "", match["name"], match["rest"].removesuffix(_UNFINISHED)]
            begun.append(parts)
            if line.endswith(_UNFINISHED):
                open_[parts[0]] = parts
        elif (match := _RESUMED.fullmatch(line)) is not None and (match["pid"] or "") in open_:
            open_.pop(match["pid"] or "")[2] += match["rest"]
    yield from ((pid, name, rest) for pid, name, rest in begun)


def _call(thread: int, name: str, rest: str, directory: Path) -> Call | None:
    result = _result(name, rest)
    if name in ON_SOCKETS:
        sent = _SENT.search(rest) if name == "sendto" else None
        tcp = "<TCP" in rest.partition(">")[0] or (name == "connect" and "AF_INET" in rest)
        return Call(thread, name, TCP if tcp else OTHER, int(sent[1]) if sent else 0, None, tcp and _good(result), result)
    target = _target(name, rest, directory)
    if target is None:
        return None
    first = target.partition("/")[0]
    if first in NOT_COUNTED:
        mark = _MARK.search(rest)
        return Call(thread, POINT, mark[1].removesuffix("\\n")) if name == "write" and first == "points" and mark else None
    changes = _good(result) and (name not in OPENS or name == "creat" or "O_CREAT" in rest)
    size = _SIZE[name].search(rest) if name in _SIZE else None
    return Call(
        thread,
        name,
        target,
        int(size[1]) if size else 0,
        int(size[2]) if size and name == "pwrite64" else None,
        changes,
        result,
    )


def _result(name: str, rest: str) -> str:
    match = _RESULT.search(rest)
    if match is None or match["value"] == "?":
        return NO_RESULT
    value = match["error"] or (match["value"] if name in WRITES or name == "sendto" else OK)
    return f"{value}{INJECTED if match['injected'] else ''}"


def _good(result: str) -> bool:
    # Where the process was killed in a call that was to change something, it was about to.
    return result in GOOD or result.isdigit() or result == NO_RESULT


def _target(name: str, rest: str, directory: Path) -> str | None:
    """The path that a call is about, relative to the case's folder; None where it is elsewhere."""
    match = (_DESCRIPTOR.match if name in ON_DESCRIPTORS else _AT.match)(rest)
    if match is None:
        return None
    # Programs work in the case's folder, so a relative path is one below it.
    path = Path(directory, match.groupdict().get("base") or "", match["path"])
    return path.relative_to(directory).as_posix() if path.is_relative_to(directory) else None


# For each round the calls of each process.
Listings = Sequence[Mapping[str, tuple[Call, ...]]]


@dataclass(frozen=True, slots=True)
class Strike:
    """Where one call of a process is to be struck: it is number `number` of its name, among `watched` paths, or, of a socket,
    among all calls of the first thread. `before` is the counted file call before it, with its number: there the process is
    stopped so that the next write can be cut short."""

    call: Call
    number: int
    watched: tuple[str, ...]
    before: tuple[Call, int] | None


def strikes(calls: Sequence[Call]) -> Iterator[Strike]:
    """Every call of one process that can be struck, in order."""
    watched = tuple(sorted({call.target for call in calls if call.changes and call.name in ON_FILES}))
    counts: dict[str, int] = {}
    before: tuple[Call, int] | None = None
    for call in calls:
        on_file = call.name in ON_FILES
        if not (call.target in watched if on_file else call.name in ON_SOCKETS and call.thread == 1):
            continue
        counts[call.name] = counts.get(call.name, 0) + 1
        if call.changes:
            yield Strike(call, counts[call.name], watched if on_file else (), before if on_file else None)
        if on_file:
            before = (call, counts[call.name])


def not_told_apart(calls: Sequence[Call]) -> Iterator[str]:
    """Names of calls that strace would count for each thread by itself: then a number is not one place."""
    watched = {call.target for call in calls if call.changes and call.name in ON_FILES}
    for name in ON_FILES:
        if len({call.thread for call in calls if call.name == name and call.target in watched}) > 1:
            yield f"{name} is called by more than one thread"
    for name in ON_SOCKETS:
        if any(call.name == name and call.thread > 1 and call.target == TCP for call in calls):
            yield f"{name} on a connection is called by another thread than the first"

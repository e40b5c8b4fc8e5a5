"""Reads the log of strace: which of its lines changed a file below one folder, or told somebody something.

The log is that of one tracer for all processes (`strace -f -yy -xx`): it stops each of them before and after every call, one
after the other, so what happens because of something stands behind it. A call that others came between has two lines. It is
taken to have its effect at the later one, a sync begins at the earlier one, and what is told may have arrived at the earlier
one: each is the order that promises more and makes less durable.

A file that is mapped shared and written through memory cannot be followed. SQLite does so with `-shm`, which holds no durable
state and is made anew after a loss of power: it is left out everywhere. Any other one, and any call that is not understood, is
`Unmodelled`: nothing may be derived from such a run then.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from scenarios.power.events import (
    CREATE,
    DIRECTORY,
    END,
    NETWORK,
    OUTPUT,
    REMOVE,
    RENAME,
    SYNC,
    TELL,
    TRUNCATE,
    WRITE,
    Event,
)

WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2")
SENDS = ("sendto", "sendmsg", "sendmmsg")
SYNCS = ("fsync", "fdatasync")
NAMES = ("mkdir", "mkdirat", "rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir")
FORKS = ("clone", "clone3", "fork", "vfork")
# Nothing here is followed: on a file of the run each makes it worthless.
REFUSED = (
    "creat", "openat2", "truncate", "fallocate", "link", "linkat", "symlink", "symlinkat", "sendfile", "copy_file_range",
    "splice", "io_uring_setup",
)  # fmt: skip
TRACED = (
    *WRITES, *SENDS, *SYNCS, *NAMES, *FORKS, *REFUSED, "open", "openat", "close", "dup", "dup2", "dup3", "fcntl", "lseek",
    "mmap", "ftruncate",
)  # fmt: skip
VOLATILE = "-shm"
_LINE = re.compile(r"(?P<pid>\d+) +(?P<rest>.*)")
_CALL = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)\) += (?P<returned>-?\d+|0x[0-9a-f]+|\?)(?:<(?P<path>[^>]*)>)?.*")
_BEGUN = re.compile(r"(?P<text>(?P<name>\w+)\(.*) <unfinished \.\.\.>")
_RESUMED = re.compile(r"<\.\.\. (?P<name>\w+) resumed>(?P<text>.*)")
_ENDED = re.compile(r"\+\+\+ (?:exited with (?P<code>\d+)|killed by .*) \+\+\+")
_OPEN = re.compile(r"(?P<number>\d+)<(?P<path>[^>]*)>(?P<deleted>\(deleted\))?")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
_ESCAPED = re.compile(r"\\x([0-9a-f]{2})")


class Unmodelled(Exception):
    """The run did something that the model of disks has no word for; the message says what."""


@dataclass(slots=True)
class _Opened:
    """An open file description: whether it appends, and where it stands, if that is known."""

    append: bool
    at: int | None = 0


@dataclass(slots=True)
class _Reader:
    root: str
    processes: dict[int, str]
    main: Mapping[int, str]
    events: list[Event] = field(default_factory=list)
    opened: dict[tuple[str, int], _Opened] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    begun: dict[int, tuple[str, int]] = field(default_factory=dict)

    def line(self, text: str) -> None:
        match = _LINE.fullmatch(text)
        if match is None:
            raise Unmodelled(f"the log of strace has a line that is none: {text[:80]!r}")
        pid, rest = int(match["pid"]), match["rest"]
        if (ended := _ENDED.fullmatch(rest)) is not None:
            self._end(pid, ended["code"])
        elif (begun := _BEGUN.fullmatch(rest)) is not None:
            self.begun[pid] = (begun["text"], len(self.events))
            if begun["name"] in (*SENDS, *WRITES):
                self._told(pid, begun["name"], begun["text"])
        elif (resumed := _RESUMED.fullmatch(rest)) is not None:
            if pid in self.begun:
                text, before = self.begun.pop(pid)
                self._call(pid, text + resumed["text"], before, resumed=True)
        elif not rest.startswith("--- "):
            self._call(pid, rest, len(self.events), resumed=False)

    def _end(self, pid: int, code: str | None) -> None:
        if pid in self.main:
            self.events.append(Event(END, self.main[pid], number=-1 if code is None else int(code)))

    def _call(self, pid: int, text: str, before: int, *, resumed: bool) -> None:
        match = _CALL.fullmatch(text)
        if match is None:
            raise Unmodelled(f"the log of strace has a call that cannot be read: {text[:80]!r}")
        name, arguments, returned = match["name"], match["arguments"], match["returned"]
        if name in FORKS and returned.isdecimal() and pid in self.processes:
            self.processes.setdefault(int(returned), self.processes[pid])
        if pid not in self.processes or returned == "?" or returned.startswith("-"):
            return
        process = self.processes[pid]
        if name in (*SENDS, *WRITES) and not resumed and self._told(pid, name, text):
            return
        if name in ("open", "openat"):
            self._open(process, int(returned), _unescaped(match["path"] or ""), arguments)
        elif name in ("close", "dup", "dup2", "dup3", "fcntl", "lseek"):
            self._descriptor(process, name, arguments, int(returned, 0))
        elif name in NAMES:
            self._names(process, name, arguments)
        elif (path := self._path(arguments)) is not None or name in REFUSED:
            self._file(process, name, (path, arguments), int(returned, 0), before)

    def _told(self, pid: int, name: str, text: str) -> bool:
        """Whether the call tells somebody something; it is noted then."""
        match = _OPEN.match(text.partition("(")[2])
        process = self.processes.get(pid)
        if match is None or process is None:
            return False
        path = _unescaped(match["path"])
        if path.startswith("TCP"):
            self.events.append(Event(TELL, process, NETWORK))
        elif match["number"] == "1" and path.startswith("pipe:"):
            self.events.append(Event(TELL, process, OUTPUT))
        elif path.startswith("socket:") and name in SENDS:
            raise Unmodelled("strace cannot tell what a socket is connected to, so what was acknowledged is not known")
        else:
            return False
        return True

    def _open(self, process: str, number: int, path: str, arguments: str) -> None:
        own = self._own(path)
        if not own:
            self.opened.pop((process, number), None)
            return
        flags = _outside_texts(arguments)
        if "O_CREAT" in flags and own not in self.sizes:
            self.events.append(Event(CREATE, process, own))
            self.sizes[own] = 0
        elif "O_TRUNC" in flags and self.sizes.get(own):
            self.events.append(Event(TRUNCATE, process, own))
            self.sizes[own] = 0
        self.opened[process, number] = _Opened("O_APPEND" in flags)
        if "O_RDWR" in flags:
            self.opened[process, number].at = None  # reads move it, and are not recorded

    def _descriptor(self, process: str, name: str, arguments: str, returned: int) -> None:
        number = int(re.match(r"-?\d+", arguments)[0]) if re.match(r"-?\d+", arguments) else -1  # type: ignore[index]
        opened = self.opened.get((process, number))
        if name == "close":
            self.opened.pop((process, number), None)
        elif name == "lseek":
            if opened is not None:
                opened.at = returned
        elif name != "fcntl" or "F_DUPFD" in arguments:
            if opened is None:
                self.opened.pop((process, returned), None)
            else:
                self.opened[process, returned] = opened

    def _names(self, process: str, name: str, arguments: str) -> None:
        texts = [_unescaped(text) for text, _more in _TEXT.findall(arguments)]
        bases = [_unescaped(base) for base in re.findall(r"(?:AT_FDCWD|\b\d+)<([^>]*)>", arguments)]
        paths = [self._own(posixpath.join(bases[at] if at < len(bases) else self.root, text)) for at, text in enumerate(texts)]
        if all(path is None for path in paths):
            return
        if None in paths or "RENAME_EXCHANGE" in arguments:
            raise Unmodelled(f"{process} moved a file into or out of its folder, or exchanged two: {name}")
        path = paths[0] or ""
        if name.startswith("rename"):
            to = paths[1] or ""
            self.events.append(Event(RENAME, process, path, to))
            self.sizes[to] = self.sizes.pop(path, 0)
        elif name.startswith("mkdir"):
            self.events.append(Event(DIRECTORY, process, path))
        else:
            self.events.append(Event(REMOVE, process, path))
            self.sizes.pop(path, None)

    def _file(self, process: str, name: str, where: tuple[str | None, str], returned: int, before: int) -> None:
        path, arguments = where
        if name in REFUSED:
            named = [self._own(posixpath.join(self.root, _unescaped(text))) for text, _more in _TEXT.findall(arguments)]
            if path is not None or any(each is not None for each in named) or name == "io_uring_setup":
                raise Unmodelled(f"{process} called {name}, which is not followed")
        elif path is None or path.endswith(VOLATILE):
            return
        elif name == "mmap":
            if "MAP_SHARED" in arguments and "PROT_WRITE" in arguments:
                raise Unmodelled(f"{process} writes {path} through memory that it shares; that is not followed")
        elif name in SYNCS:
            self.events.append(Event(SYNC, process, path, number=before))
        elif name == "ftruncate":
            size = int(arguments.rpartition(",")[2])
            self.events.append(Event(TRUNCATE, process, path, number=size))
            self.sizes[path] = size
        elif name in WRITES:
            self._write(process, name, (path, arguments), returned)

    def _write(self, process: str, name: str, where: tuple[str, str], returned: int) -> None:
        path, arguments = where
        texts = _TEXT.findall(arguments)
        if any(more for _text, more in texts):
            raise Unmodelled(f"strace did not record all that {process} wrote into {path}")
        data = b"".join(bytes.fromhex("".join(_ESCAPED.findall(text))) for text, _more in texts)[:returned]
        number = int(re.match(r"\d+", arguments)[0])  # type: ignore[index]
        opened = self.opened.get((process, number))
        if opened is None or (opened.at is None and not opened.append and not name.startswith("p")):
            raise Unmodelled(f"{process} wrote into {path} at a place that is not known")
        if opened.append:
            at = self.sizes.get(path, 0)
        elif name.startswith("p"):
            at = int(_outside_texts(arguments).split(",")[3])
        else:
            at = opened.at or 0
            opened.at = at + len(data)
        self.events.append(Event(WRITE, process, path, number=at, data=data))
        self.sizes[path] = max(self.sizes.get(path, 0), at + len(data))

    def _path(self, arguments: str) -> str | None:
        """The file of the run that a descriptor among the arguments is open on."""
        match = _OPEN.search(_outside_texts(arguments))
        if match is None:
            return None
        path = self._own(_unescaped(match["path"]))
        if path is not None and (match["deleted"] or path.endswith(" (deleted)")) and VOLATILE not in path:
            raise Unmodelled(f"a file was written or synced after it was removed: {path}")
        return path

    def _own(self, path: str) -> str | None:
        path = posixpath.normpath(path)
        if path == self.root:
            return ""
        return path[len(self.root) + 1 :] if path.startswith(f"{self.root}/") else None


def read(lines: Iterable[str], root: str, processes: Mapping[int, str]) -> tuple[Event, ...]:
    """The events of a log, for the files below the folder `root` and the processes of these pids. Raises Unmodelled."""
    reader = _Reader(root.rstrip("/"), dict(processes), processes)
    for text in lines:
        reader.line(text.rstrip("\n"))
    return tuple(_durable(reader.events))


def _durable(events: Iterable[Event]) -> Iterable[Event]:
    """The same without what is of no file that lasts; syncs go on counting the events that are left."""
    kept: list[int] = []  # how many of the events before each are left
    left = 0
    for event in events:
        kept.append(left)
        if event.path.endswith(VOLATILE):
            continue
        yield replace(event, number=kept[event.number] if event.number < len(kept) else left) if event.kind == SYNC else event
        left += 1


def _unescaped(text: str) -> str:
    return bytes.fromhex("".join(_ESCAPED.findall(text))).decode("utf-8", "surrogateescape") if "\\x" in text else text


def _outside_texts(arguments: str) -> str:
    """The arguments without the texts in quotes, which may hold anything."""
    return _TEXT.sub('""', arguments)

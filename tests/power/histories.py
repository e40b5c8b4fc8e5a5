"""Histories of file operations that tests draw: done in a real directory, and told as events."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import strategies as st

from scenarios.power.events import CREATE, DIRECTORY, REMOVE, RENAME, SYNC, TRUNCATE, WRITE, Event

NAMES = ("a", "b", "d/a", "d/b")
SIZES = st.sampled_from((1, 40, 511, 512, 600, 1300))
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just(CREATE), st.sampled_from(NAMES)),
        st.tuples(st.just(WRITE), st.sampled_from(NAMES), st.integers(0, 900), SIZES),
        st.tuples(st.just(TRUNCATE), st.sampled_from(NAMES), st.integers(0, 1400)),
        st.tuples(st.just(RENAME), st.sampled_from(NAMES), st.sampled_from(NAMES)),
        st.tuples(st.just(REMOVE), st.sampled_from(NAMES)),
        st.tuples(st.just(SYNC), st.sampled_from((*NAMES, "", "d"))),
    ),
    max_size=14,
)


def events_of(operations: list[tuple[object, ...]]) -> tuple[Event, ...]:
    """The operations that can be done, in a folder in which `d` is made first. Each write has bytes of its own."""
    events = [Event(DIRECTORY, "p", "d")]
    there: set[str] = set()
    for number, (kind, path, *rest) in enumerate(operations, 1):
        assert isinstance(kind, str)
        assert isinstance(path, str)
        if kind == CREATE:
            if path in there:
                continue
            there.add(path)
            events.append(Event(CREATE, "p", path))
        elif path not in there and path not in ("", "d"):
            continue
        elif kind == SYNC:
            events.append(Event(SYNC, "p", path, number=len(events)))
        elif kind == REMOVE:
            there.discard(path)
            events.append(Event(REMOVE, "p", path))
        elif kind == RENAME:
            to = str(rest[0])
            if to == path:
                continue
            there.discard(path)
            there.add(to)
            events.append(Event(RENAME, "p", path, to))
        elif kind == TRUNCATE:
            assert isinstance(rest[0], int)
            events.append(Event(TRUNCATE, "p", path, number=rest[0]))
        else:
            at, size = rest
            assert isinstance(at, int)
            assert isinstance(size, int)
            events.append(Event(WRITE, "p", path, number=at, data=bytes([number]) * size))
    return tuple(events)


def done_in(directory: Path, events: tuple[Event, ...]) -> dict[str, bytes | None]:
    """What is in a real directory after the events."""
    for event in events:
        path = directory / event.path
        if event.kind == DIRECTORY:
            path.mkdir()
        elif event.kind == CREATE:
            path.touch()
        elif event.kind == REMOVE:
            path.unlink()
        elif event.kind == RENAME:
            path.rename(directory / event.to)
        elif event.kind == TRUNCATE:
            os.truncate(path, event.number)
        elif event.kind == WRITE:
            with path.open("r+b") as file:
                file.seek(event.number)
                file.write(event.data)
    found = sorted(directory.rglob("*"))
    return {path.relative_to(directory).as_posix(): None if path.is_dir() else path.read_bytes() for path in found}

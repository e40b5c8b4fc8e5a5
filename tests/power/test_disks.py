"""Laws of the disks that a power cut may leave, over histories that nobody chose; and the audit's model, another one."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from audit import campaign_power
from scenarios.power import disk, events, images
from scenarios.power.disk import ALL, NOTHING, SECTOR_BYTES, Disk, Part, Unit
from scenarios.power.events import CREATE, DIRECTORY, RENAME, SYNC, WRITE, Event
from tests.power.histories import OPERATIONS, done_in, events_of

Operations = list[tuple[object, ...]]


def disks_of(history: tuple[Event, ...]) -> list[disk.Image]:
    """Every image of the last moment."""
    last = disk.after(history, len(history))
    return [last.image(choice) for choice in images.choices(last.units)]


@settings(max_examples=60, deadline=None)
@given(OPERATIONS)
def test_with_everything_applied_a_disk_is_what_the_real_directory_holds(operations: Operations) -> None:
    history = events_of(operations)
    with tempfile.TemporaryDirectory() as directory:
        assert disk.after(history, len(history)).whole() == done_in(Path(directory), history)


@settings(max_examples=60, deadline=None)
@given(OPERATIONS)
def test_when_all_is_synced_one_disk_is_legal(operations: Operations) -> None:
    history = list(events_of(operations))
    whole = disk.after(history, len(history)).whole()
    for path in ("", "d", *(path for path, content in whole.items() if content is not None)):
        history.append(Event(SYNC, "p", path, number=len(history)))
    # What a removed file held is nowhere any more, whether it was synced or not.
    assert all(image == whole for image in disks_of(tuple(history)))


@settings(max_examples=40, deadline=None)
@given(OPERATIONS)
def test_disks_are_derived_once_each_and_the_whole_one_and_the_emptiest_are_among_them(operations: Operations) -> None:
    history = events_of(operations)
    last = disk.after(history, len(history))
    choices = list(images.choices(last.units))
    assert len(choices) == len(set(choices))
    assert choices[0] == (NOTHING,) * len(last.units)
    assert (ALL,) * len(last.units) in choices
    for choice in choices:  # nothing is done to a name without what was done to it before
        kept = {at for at, part in enumerate(choice) if part == ALL and last.units[at].names}
        assert disk.closed(last.units, kept) == kept


@settings(max_examples=60, deadline=None)
@given(OPERATIONS)
def test_torn_writes_are_prefixes_that_end_at_a_sector(operations: Operations) -> None:
    history = events_of(operations)
    last = disk.after(history, len(history))
    for choice in images.choices(last.units):
        for unit, part in zip(last.units, choice, strict=True):
            if part in (ALL, NOTHING, Part(0, sized=True)):
                continue
            assert unit.data is not None
            assert 0 < part.kept < len(unit.data)
            assert (unit.offset + part.kept) % SECTOR_BYTES == 0


@settings(max_examples=60, deadline=None)
@given(OPERATIONS)
def test_the_audit_derives_the_same_disks_by_its_own_model(operations: Operations) -> None:
    history = events_of(operations)
    own, other = Disk(), campaign_power.Disk()
    for event in history:
        own.apply(event)
        other.play(told(event))
        assert [own.image(each) for each in images.choices(own.units)] == [
            other.image(each) for each in campaign_power.choices(other.units)
        ]


def told(event: Event) -> dict[str, Any]:
    """An event as it is archived."""
    return {
        **{name: getattr(event, name) for name in ("kind", "process", "path", "to", "number")},
        "data": event.data.decode("latin-1"),
    }


@settings(max_examples=20, deadline=None)
@given(OPERATIONS)
def test_events_are_kept_as_lines_and_read_again(operations: Operations) -> None:
    history = events_of(operations)
    assert tuple(events.read([events.line(each) for each in history])) == history


# What each rule says, one by one.


def after(*history: Event) -> list[disk.Image]:
    """The images behind a durable folder `d`."""
    return disks_of((Event(DIRECTORY, "p", "d"), Event(SYNC, "p", "", number=1), *history))


def test_a_file_that_was_synced_without_its_directory_may_be_gone_with_all_that_it_held() -> None:
    found = after(Event(CREATE, "p", "d/a"), Event(WRITE, "p", "d/a", data=b"x"), Event(SYNC, "p", "d/a", number=4))
    assert {"d": None} in found
    assert all(image.get("d/a", b"x") == b"x" for image in found)


def test_a_file_whose_name_is_durable_may_be_empty_or_zeros_until_it_is_synced() -> None:
    found = after(Event(CREATE, "p", "d/a"), Event(SYNC, "p", "d", number=3), Event(WRITE, "p", "d/a", data=b"xy"))
    assert {image.get("d/a") for image in found} == {b"", b"\0\0", b"xy"}


def replaced(*, content: bool, name: bool) -> set[bytes | None]:
    """What may stand at `d/a` when a new file has taken its place."""
    history = [
        Event(CREATE, "p", "d/a"),
        Event(WRITE, "p", "d/a", data=b"old"),
        Event(SYNC, "p", "d/a", number=4),
        Event(SYNC, "p", "d", number=5),
        Event(CREATE, "p", "d/b"),
        Event(WRITE, "p", "d/b", data=b"new"),
    ]
    history += [Event(SYNC, "p", "d/b", number=8)] if content else []
    history.append(Event(RENAME, "p", "d/b", "d/a"))
    history += [Event(SYNC, "p", "d", number=2 + len(history))] if name else []
    return {image.get("d/a") for image in after(*history)}


@pytest.mark.parametrize(
    ("content", "name", "expected"),
    [
        (True, True, {b"new"}),
        (True, False, {b"old", b"new"}),
        (False, True, {b"", b"\0\0\0", b"new"}),
        (False, False, {b"old", b"", b"\0\0\0", b"new"}),
    ],
)
def test_a_rename_is_atomic_and_says_nothing_of_what_was_not_synced(
    content: bool, name: bool, expected: set[bytes | None]
) -> None:
    assert replaced(content=content, name=name) == expected


def test_a_sync_makes_durable_what_had_been_written_when_it_began() -> None:
    found = after(
        Event(CREATE, "p", "d/a"),
        Event(SYNC, "p", "d", number=3),
        Event(WRITE, "p", "d/a", data=b"1"),
        Event(WRITE, "q", "d/a", number=1, data=b"2"),
        Event(SYNC, "p", "d/a", number=5),  # it began between the two
    )
    assert {image.get("d/a") for image in found} == {b"1", b"1\0", b"12"}


def test_beyond_the_bound_disks_grow_with_what_was_done_and_not_with_its_power() -> None:
    units = [Unit(at, 1, at * 10, b"x" * 10) for at in range(40)]
    assert len(list(images.choices(units))) < 5 * len(units)

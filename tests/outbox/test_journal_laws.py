"""Laws of the journal: whatever was appended, whatever byte is lost or changed, it recovers what is whole or refuses."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from outbox.errors import BadInput, DamagedJournal
from tests.outbox.notes import NOTES, Entry

SETTINGS = settings(derandomize=True, database=None, deadline=None, max_examples=60)

TEXT = st.text(max_size=12)  # surrogates included: json can hold them
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)
DATA = st.dictionaries(TEXT, VALUES, max_size=3)
IDS = st.text(alphabet=st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=6)
APPENDS = st.lists(st.tuples(st.sampled_from(["note", "other"]), IDS, DATA), min_size=1, max_size=5, unique_by=lambda e: e[:2])


def written(directory: Path, appends: Sequence[Entry]) -> bytes:
    with NOTES.open(directory) as opened:
        for entry in appends:
            opened.append(*entry)
    return NOTES.path(directory).read_bytes()


def ends(content: bytes) -> list[int]:
    """How many bytes must be there for each record to be complete; its newline is not needed."""
    return [position for position, byte in enumerate(content) if byte == 0x0A]


def read_beginning(directory: Path) -> list[Entry]:
    """What a reader gets before the end or the refusal."""
    seen: list[Entry] = []
    try:
        for record in NOTES.read(directory):
            seen.append((record.type, record.id, dict(record.data)))
    except DamagedJournal:
        pass
    return seen


def recover(directory: Path, content: bytes) -> list[Entry] | None:
    """Put the bytes there, open for append, add a record, open again. None where it was refused, which changed nothing."""
    path = NOTES.path(directory)
    path.write_bytes(content)
    try:
        opened = NOTES.open(directory)
    except DamagedJournal:
        assert path.read_bytes() == content
        return None
    with opened:
        kept = read_beginning(directory)
        assert len(opened) == len(kept)
        opened.append("other", "appended-afterwards", {})
    NOTES.open(directory).close()
    assert read_beginning(directory) == [*kept, ("other", "appended-afterwards", {})]
    return kept


@SETTINGS
@given(APPENDS)
def test_what_is_appended_is_read_in_order_and_again_after_a_restart(appends: list[Entry]) -> None:
    with tempfile.TemporaryDirectory() as name:
        content = written(Path(name), appends)
        assert read_beginning(Path(name)) == appends
        assert written(Path(name), appends) == content  # the same again is a no-op, also across a restart


@SETTINGS
@given(
    st.lists(st.tuples(st.sampled_from(["note", "other"]), st.sampled_from("ab"), st.sampled_from([{}, {"x": 1}])), max_size=9)
)
def test_an_id_keeps_its_first_content_whatever_is_said_later(appends: list[Entry]) -> None:
    model: dict[tuple[str, str], object] = {}
    with tempfile.TemporaryDirectory() as name:
        for kind, record_id, data in appends:
            with NOTES.open(Path(name)) as opened:
                try:
                    assert opened.append(kind, record_id, data).data == data
                    assert model.setdefault((kind, record_id), data) == data
                except BadInput:
                    assert model[kind, record_id] != data
        assert [(*key, data) for key, data in model.items()] == read_beginning(Path(name))


@SETTINGS
@given(APPENDS, st.data())
def test_a_cut_at_any_byte_leaves_exactly_the_records_whose_bytes_are_there(appends: list[Entry], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        content = written(Path(name), appends)
        cut = data.draw(st.integers(0, len(content)))
        kept = appends[: sum(end <= cut for end in ends(content))]
        NOTES.path(Path(name)).write_bytes(content[:cut])
        assert read_beginning(Path(name)) == kept
        assert recover(Path(name), content[:cut]) == kept


@SETTINGS
@given(APPENDS, st.data(), st.integers(1, 255))
def test_a_flip_of_any_byte_is_refused_or_loses_no_complete_record(
    appends: list[Entry], data: st.DataObject, flip: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        content = bytearray(written(Path(name), appends))
        before = bytes(content)
        position = data.draw(st.integers(0, len(content) - 1))
        content[position] ^= flip
        flipped(Path(name), appends, before, bytes(content), position)


@SETTINGS
@given(APPENDS, st.data(), st.integers(1, 255))
def test_a_cut_and_a_flip_are_refused_or_lose_no_record_before_them(
    appends: list[Entry], data: st.DataObject, flip: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        content = bytearray(written(Path(name), appends))
        before = bytes(content)
        del content[data.draw(st.integers(1, len(content))) :]
        position = data.draw(st.integers(0, len(content) - 1))
        content[position] ^= flip
        flipped(Path(name), appends, before, bytes(content), position)


def flipped(directory: Path, appends: list[Entry], before: bytes, content: bytes, position: int) -> None:
    """No wrong record is read, and none that stands wholly before the flipped byte is lost."""
    whole = sum(end <= position for end in ends(before))
    NOTES.path(directory).write_bytes(content)
    seen = read_beginning(directory)
    assert seen == appends[: len(seen)]
    kept = recover(directory, content)
    if kept is not None:
        assert kept == appends[: len(kept)]
        assert len(kept) >= whole


def test_every_flip_of_every_byte_of_the_last_record_is_refused(tmp_path: Path) -> None:
    """All 255 other values at every place: a complete record, with its newline, is never taken for a torn one."""
    appends: list[Entry] = [("note", "a", {}), ("note", "b", {})]
    content = written(tmp_path, appends)
    path = NOTES.path(tmp_path)
    start = ends(content)[0] + 1
    for position in range(start, len(content)):
        # Every value where the frame is, a few inside the two sums.
        flips = (
            range(1, 256) if position >= len(content) - 12 or position < start + 14 else (1, 2, 0x0A ^ content[position], 0xFF)
        )
        for flip in flips:
            if not flip:
                continue
            changed = bytearray(content)
            changed[position] ^= flip
            path.write_bytes(changed)
            try:
                NOTES.open(tmp_path).close()
            except DamagedJournal as error:
                assert "line 2" in str(error)
            else:
                raise AssertionError(f"byte {position} flipped by {flip:#x} was accepted")
            assert path.read_bytes() == changed

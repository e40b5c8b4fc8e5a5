"""The journal: what it keeps, what it cuts, what it refuses, and that a refusal changes no byte."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from outbox import faults, journal
from outbox.errors import BadInput, DamagedJournal, LockHeld, MachineRefused
from tests.outbox import notes
from tests.outbox.notes import DIARY, NOTES, OBSERVED, entries, forge, members, open_and_read, read_all

# The bound that evidence/README.md and the module promise for one record.
MAX_LINE_BYTES = 16 * 1024 * 1024


class Interrupted(BaseException):
    """Raised at an armed point in place of the death of the test's own process."""


def interrupt(_fault: faults.Fault) -> None:
    raise Interrupted


def refuses_untouched(directory: Path, content: bytes, *words: str) -> None:
    """Opening and reading both refuse a journal of these bytes, in these words, and leave it as it is."""
    path = NOTES.path(directory)
    path.write_bytes(content)
    for refusing in (NOTES.open, lambda each: list(NOTES.read(each))):
        with pytest.raises(DamagedJournal) as caught:
            refusing(directory)
        for word in (str(path), *words):
            assert word in str(caught.value)
        assert path.read_bytes() == content


# What is damaged is refused.


def test_a_removed_record_is_refused(tmp_path: Path) -> None:
    first, _second, third = notes.write(tmp_path)
    refuses_untouched(tmp_path, first + third, "line 2", "removed, added or moved")


def test_a_removed_first_record_is_refused(tmp_path: Path) -> None:
    _first, second, third = notes.write(tmp_path)
    refuses_untouched(tmp_path, second + third, "line 1", "removed, added or moved")


def test_reordered_records_are_refused(tmp_path: Path) -> None:
    first, second, third = notes.write(tmp_path)
    refuses_untouched(tmp_path, first + third + second, "line 2")


def test_a_duplicated_record_is_refused(tmp_path: Path) -> None:
    first, second, third = notes.write(tmp_path)
    refuses_untouched(tmp_path, first + second + second + third, "line 3")


def test_a_record_of_another_journal_is_refused(tmp_path: Path) -> None:
    with DIARY.open(tmp_path) as diary:
        diary.append(*entries(1)[0])
    refuses_untouched(tmp_path, DIARY.path(tmp_path).read_bytes(), "line 1", "bound to another record")


def test_a_record_of_a_type_that_the_journal_does_not_hold_is_refused(tmp_path: Path) -> None:
    refuses_untouched(tmp_path, forge([members("receipt", "a", {})]), "line 1", "'receipt'", "note, other")


@pytest.mark.parametrize(
    "old_new", [(b'"number":2', b'"number":7'), (b"n-2", b"n-9"), (b"\\u20ac", b"\\u20ad"), (b'"data"', b'"Data"')]
)
def test_a_changed_record_is_refused_with_file_line_and_reason(tmp_path: Path, old_new: tuple[bytes, bytes]) -> None:
    first, second, third = notes.write(tmp_path)
    changed = second.replace(*old_new)
    assert changed != second
    refuses_untouched(tmp_path, first + changed + third, "line 2", "checksum", "left as it is")


def test_a_changed_last_record_is_refused_and_not_cut(tmp_path: Path) -> None:
    first, second, third = notes.write(tmp_path)
    refuses_untouched(tmp_path, first + second + third.replace(b"n-3", b"n-4"), "line 3", "checksum")


def test_a_changed_last_record_without_newline_is_refused_and_not_cut(tmp_path: Path) -> None:
    first, second, third = notes.write(tmp_path)
    refuses_untouched(tmp_path, first + second + third.replace(b"n-3", b"n-4")[:-1], "line 3", "checksum")


@pytest.mark.parametrize(
    "insertion", [b"\n", b"\r\n", b" \n", b"{}\n", b"\0\n", b"\xff\xfe\n", b"not a record\n", b"null\n", b"[" * 5000 + b"\n"]
)
def test_a_foreign_line_between_records_is_refused(tmp_path: Path, insertion: bytes) -> None:
    first, second, third = notes.write(tmp_path)
    refuses_untouched(tmp_path, first + insertion + second + third, "line 2")


@pytest.mark.parametrize(
    "junk",
    [
        *(b"x", b"{}", b'{"sha256":"xyz', b'{"sha256": "', b"hello", b"\xff", b"\0x", b"\0\0\0{", b" ", b"[[[[", b"{" * 3000),
        *(b'{"Sha256', b'{"sha256":"' + b"A" * 64, b'{"sha256":"' + b"0" * 64 + b'";'),
        b'{"sha256":"' + b"0" * 64 + b'","previous":"' + b"0" * 64,
    ],
    ids=range(15),
)
def test_a_tail_that_no_write_of_ours_leaves_is_refused(tmp_path: Path, junk: bytes) -> None:
    refuses_untouched(tmp_path, b"".join(notes.write(tmp_path)) + junk, "line 4")


def test_a_torn_beginning_of_another_sequence_is_refused(tmp_path: Path) -> None:
    first, second, third = notes.write(tmp_path)
    refuses_untouched(tmp_path, first + second + second[: len(second) // 2], "line 3")
    refuses_untouched(tmp_path, first + third[: len(third) // 2 + 60], "line 2")


def test_something_behind_a_huge_hole_is_refused_and_not_cut(tmp_path: Path) -> None:
    content = b"".join(notes.write(tmp_path)) + b"\0" * (MAX_LINE_BYTES + 4096) + b"somebody's data\n"
    refuses_untouched(tmp_path, content, "line 4")


def test_a_line_longer_than_any_record_is_refused_and_not_cut(tmp_path: Path) -> None:
    first, second, _third = notes.write(tmp_path)
    begun = second[:-3] + b"x" * MAX_LINE_BYTES
    refuses_untouched(tmp_path, first + begun + b'"}}\n' + b"somebody's data\n", "line 2", "longer than")


@pytest.mark.parametrize(
    "member",
    [members([], "a", {}), members({}, "a", {}), members(1, "a", {}), '"type":"note","id":"a"', '"type":"note","data":{}'],
)
def test_a_record_of_a_wrong_shape_is_refused_although_its_sum_is_right(tmp_path: Path, member: str) -> None:
    refuses_untouched(tmp_path, forge([member]), "line 1")


def test_an_id_that_stands_there_twice_is_refused(tmp_path: Path) -> None:
    path = NOTES.path(tmp_path)
    path.write_bytes(content := forge([members("note", "a", {"n": 1}), members("note", "a", {"n": 2})]))
    with pytest.raises(DamagedJournal, match=r"line 2: note 'a' stands there twice"):
        NOTES.open(tmp_path)
    assert path.read_bytes() == content


def test_an_id_that_stands_there_twice_is_told_rather_than_damage_behind_it_and_the_first_of_them_first(tmp_path: Path) -> None:
    lines = forge([members(*each, {}) for each in [("note", "b"), ("other", "a"), ("note", "a"), ("note", "a"), ("note", "b")]])
    for content in (lines, lines[:-1], lines[:-9], lines + b"x", lines.replace(b'"b","data":{}}', b'"c","data":{}}')):
        NOTES.path(tmp_path).write_bytes(content)
        told = "line 1: its checksum" if b'"c"' in content else "line 4: note 'a' stands there twice"
        with pytest.raises(DamagedJournal, match=told):
            NOTES.open(tmp_path)
        assert NOTES.path(tmp_path).read_bytes() == content


@pytest.mark.parametrize(
    "members_behind_the_sums",
    [
        '"type":"note","id":"a","data":{},"more":1',
        '"id":"a","data":{},"type":"note"',
        '"type": "note", "id": "a", "data": {}',
        '"type":"other","id":"a","data":{},"type":"note"',
        '"type":"n\\u006fte","id":"\\u0061","data":{}',
    ],
)
def test_a_record_that_another_writer_framed_is_read_by_its_members(tmp_path: Path, members_behind_the_sums: str) -> None:
    NOTES.path(tmp_path).write_bytes(forge([members_behind_the_sums, members("other", "b", {})]))
    assert open_and_read(tmp_path) == [("note", "a", {}), ("other", "b", {})]


@pytest.mark.parametrize("behind", ['"previous":"x"', '"sequence":2', '"data":[]', '"id":null', '"data":{}}{'])
def test_a_member_that_is_repeated_with_another_value_is_refused_although_its_sum_is_right(tmp_path: Path, behind: str) -> None:
    refuses_untouched(tmp_path, forge([f'"type":"note","id":"a","data":{{}},{behind}']), "line 1")


def test_a_refused_journal_can_be_restored_and_opened_in_the_same_process(tmp_path: Path) -> None:
    good = b"".join(notes.write(tmp_path))
    refuses_untouched(tmp_path, good.replace(b"n-2", b"n-9"), "line 2")
    NOTES.path(tmp_path).write_bytes(good)
    assert open_and_read(tmp_path) == entries(3)


def test_a_record_changed_while_the_journal_is_open_is_told_when_it_is_asked_for(tmp_path: Path) -> None:
    good = b"".join(notes.write(tmp_path))
    with NOTES.open(tmp_path) as opened:
        with NOTES.path(tmp_path).open("r+b") as file:
            file.write(good.replace(b"n-1", b"n-7"))
        with pytest.raises(DamagedJournal, match="changed while it was open"):
            opened.find("note", "n-1")


# What is torn is cut, and nothing else is.


def test_every_cut_of_the_file_keeps_exactly_the_complete_records_and_the_next_append_is_readable(tmp_path: Path) -> None:
    whole = b"".join(lines := notes.write(tmp_path))
    ends = [sum(map(len, lines[: number + 1])) - 1 for number in range(3)]
    path = NOTES.path(tmp_path)
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        kept = sum(end <= cut for end in ends)
        assert read_all(tmp_path) == entries(kept), cut
        with NOTES.open(tmp_path) as opened:
            assert path.read_bytes() == b"".join(lines[:kept]), cut
            opened.append("other", "next", {"cut": cut})
        assert open_and_read(tmp_path) == [*entries(kept), ("other", "next", {"cut": cut})], cut


def test_two_restarts_behind_a_torn_tail_lose_nothing_good(tmp_path: Path) -> None:
    """F21: a tail that is appended to instead of cut takes the next record with it."""
    a, b, *_more = notes.write(tmp_path, 2)
    NOTES.path(tmp_path).write_bytes(a + b[:-9])
    for name in ("c", "d"):
        with NOTES.open(tmp_path) as opened:
            opened.append("other", name, {})
    assert open_and_read(tmp_path) == [entries(1)[0], ("other", "c", {}), ("other", "d", {})]


def test_a_complete_record_without_newline_is_kept_and_the_next_one_is_not_glued_to_it(tmp_path: Path) -> None:
    """F22: and the file then holds what an undisturbed writer would have left."""
    lines = notes.write(tmp_path, 3)
    NOTES.path(tmp_path).write_bytes(b"".join(lines[:2])[:-1])
    assert read_all(tmp_path) == entries(2)
    assert open_and_read(tmp_path) == entries(2)
    assert notes.write(tmp_path, 3) == lines


@pytest.mark.parametrize("zeros", [1, 64, 4096, MAX_LINE_BYTES])
@pytest.mark.parametrize("records", [0, 3])
def test_a_zero_filled_tail_is_cut(tmp_path: Path, records: int, zeros: int) -> None:
    whole = b"".join(notes.write(tmp_path, records))
    NOTES.path(tmp_path).write_bytes(whole + b"\0" * zeros)
    assert read_all(tmp_path) == entries(records)
    assert open_and_read(tmp_path) == entries(records)
    assert NOTES.path(tmp_path).read_bytes() == whole


def test_a_tail_whose_size_came_without_the_rest_of_its_bytes_is_cut(tmp_path: Path) -> None:
    """A power cut: the file has grown for the whole record, and only a beginning of it is there."""
    first, second = notes.write(tmp_path, 2)
    for kept in range(len(second) - 1):
        NOTES.path(tmp_path).write_bytes(first + second[:kept].ljust(len(second), b"\0"))
        assert read_all(tmp_path) == entries(1), kept
        assert open_and_read(tmp_path) == entries(1), kept
        assert NOTES.path(tmp_path).read_bytes() == first, kept


def test_a_newline_whose_sector_did_not_come_takes_its_record_with_it(tmp_path: Path) -> None:
    """Anywhere else a newline that became something else is damage."""
    with NOTES.open(tmp_path) as opened:
        opened.append("note", "a", {"text": ""})
    short = len(NOTES.path(tmp_path).read_bytes())
    NOTES.path(tmp_path).unlink()
    with NOTES.open(tmp_path) as opened:
        opened.append("note", "a", {"text": "x" * (512 + 1 - short)})
    whole = NOTES.path(tmp_path).read_bytes()
    NOTES.path(tmp_path).write_bytes(whole[:512] + b"\0")
    assert open_and_read(tmp_path) == []


def test_what_only_observes_ends_before_the_gap_that_a_power_cut_left(tmp_path: Path) -> None:
    with OBSERVED.open(tmp_path) as observed:
        for entry in entries(4):
            observed.append(*entry)
    path = OBSERVED.path(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    for lost in range(4):
        gap = [line if at != lost else b"\0" * len(line) for at, line in enumerate(lines)]
        path.write_bytes(b"".join(gap))
        with OBSERVED.open(tmp_path) as observed:
            assert len(observed) == lost
        assert path.read_bytes() == b"".join(lines[:lost])


def test_what_is_synced_and_has_a_gap_before_a_whole_line_is_refused(tmp_path: Path) -> None:
    """It was durable: no power cut of ours takes it."""
    first, second, third = notes.write(tmp_path)
    refuses_untouched(tmp_path, first + b"\0" * len(second) + third, "line 2")


def test_reading_cuts_nothing(tmp_path: Path) -> None:
    torn = b"".join(notes.write(tmp_path))[:-7]
    NOTES.path(tmp_path).write_bytes(torn)
    assert read_all(tmp_path) == entries(2)
    assert NOTES.path(tmp_path).read_bytes() == torn


def test_a_reader_beside_a_writer_sees_what_is_complete(tmp_path: Path) -> None:
    with NOTES.open(tmp_path) as opened:
        assert read_all(tmp_path) == []
        for number, entry in enumerate(entries(3), 1):
            opened.append(*entry)
            assert read_all(tmp_path) == entries(number)


# Ids and contents.


def test_the_same_content_again_writes_nothing_and_returns_the_first_record(tmp_path: Path) -> None:
    with NOTES.open(tmp_path) as opened:
        first = opened.append("note", "a", {"x": 1, "y": [1, 2]})
        opened.append("note", "b", {})
        before = NOTES.path(tmp_path).read_bytes()
        again = opened.append("note", "a", {"y": [1, 2], "x": 1})
        assert (again, len(opened)) == (first, 2)
        assert NOTES.path(tmp_path).read_bytes() == before
    with NOTES.open(tmp_path) as reopened:
        assert reopened.append("note", "a", {"x": 1, "y": [1, 2]}) == first


def test_records_are_counted_by_type_before_and_after_a_restart(tmp_path: Path) -> None:
    with NOTES.open(tmp_path) as opened:
        for kind, name in (("note", "a"), ("other", "a"), ("note", "b"), ("note", "a")):
            opened.append(kind, name, {})
        assert (opened.count("note"), opened.count("other"), len(opened)) == (2, 1, 3)
    with NOTES.open(tmp_path) as reopened:
        assert (reopened.count("note"), reopened.count("other"), len(reopened)) == (2, 1, 3)


@pytest.mark.parametrize("other", [{"x": 2}, {}, {"x": 1, "y": 1}, {"x": 1.0}, {"x": "1"}, {"x": [1]}, {"x": True}])
def test_other_content_under_a_known_id_is_refused_and_the_first_stays(tmp_path: Path, other: dict[str, Any]) -> None:
    with NOTES.open(tmp_path) as opened:
        opened.append("note", "a", {"x": 1})
        before = NOTES.path(tmp_path).read_bytes()
        with pytest.raises(BadInput, match="'a' is recorded with other content"):
            opened.append("note", "a", other)
        assert NOTES.path(tmp_path).read_bytes() == before
        opened.append("note", "b", {})
    assert [record_id for _type, record_id, _data in open_and_read(tmp_path)] == ["a", "b"]


def test_two_types_may_use_the_same_id(tmp_path: Path) -> None:
    with NOTES.open(tmp_path) as opened:
        note, other = opened.append("note", "a", {"x": 1}), opened.append("other", "a", {"x": 2})
        assert (opened.find("note", "a"), opened.find("other", "a")) == (note, other)
        assert opened.find("note", "b") is None


CIRCULAR: dict[str, Any] = {}
CIRCULAR["self"] = CIRCULAR
UNWRITABLE = [
    pytest.param({"x": float("nan")}, id="nan"),
    pytest.param({"x": [float("inf")]}, id="infinity"),
    pytest.param({"x": b"bytes"}, id="bytes"),
    pytest.param({"x": {1, 2}}, id="set"),
    pytest.param(CIRCULAR, id="circular"),
    pytest.param({"x": 10**5000}, id="huge integer"),
]


@pytest.mark.parametrize("data", UNWRITABLE)
def test_what_json_cannot_hold_is_refused_and_the_journal_goes_on(tmp_path: Path, data: dict[str, Any]) -> None:
    with NOTES.open(tmp_path) as opened:
        with pytest.raises(BadInput, match="cannot be written as JSON"):
            opened.append("note", "a", data)
        opened.append("note", "a", {"x": 1})
    assert open_and_read(tmp_path) == [("note", "a", {"x": 1})]


@pytest.mark.parametrize("data", UNWRITABLE)
def test_what_json_cannot_hold_is_refused_under_a_known_id_too(tmp_path: Path, data: dict[str, Any]) -> None:
    with NOTES.open(tmp_path) as opened:
        opened.append("note", "a", {"x": 1})
        with pytest.raises(BadInput):
            opened.append("note", "a", data)


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _level in range(depth):
        value = {"x": value}
    return value


def test_whatever_depth_is_written_can_be_read_again(tmp_path: Path) -> None:
    """A record that can be written and not be read would make the journal refuse to open for ever."""

    def deeper(frames: int) -> None:
        # The one who reads may stand deeper in its stack than the one who wrote.
        if frames:
            deeper(frames - 1)
        else:
            NOTES.open(directory).close()

    for depth in (20, 500, 700, 800, 850, 900, 950):
        directory = tmp_path / str(depth)
        directory.mkdir()
        with NOTES.open(directory) as opened:
            try:
                opened.append("note", "a", nested(depth))
            except BadInput:
                continue
        deeper(200)


@pytest.mark.parametrize("record_id", ["", "ä", "a\nb", "a\0", "\x7f", "\ud800", "x" * 301, "a\tb"])
def test_an_id_that_is_not_printable_ascii_within_the_bound_is_refused(tmp_path: Path, record_id: str) -> None:
    with NOTES.open(tmp_path) as opened:
        with pytest.raises(BadInput, match="1 to 300 printable ASCII"):
            opened.append("note", record_id, {})
        assert len(opened) == 0
    assert NOTES.path(tmp_path).read_bytes() == b""


@pytest.mark.parametrize("record_id", ["x" * 300, " ", '"\\', "~", "a#1"])
def test_an_id_of_printable_ascii_is_kept(tmp_path: Path, record_id: str) -> None:
    with NOTES.open(tmp_path) as opened:
        opened.append("note", record_id, {})
    assert open_and_read(tmp_path) == [("note", record_id, {})]


def test_a_type_that_the_journal_does_not_hold_cannot_be_appended(tmp_path: Path) -> None:
    with NOTES.open(tmp_path) as opened, pytest.raises(BadInput, match="holds note, other, not 'receipt'"):
        opened.append("receipt", "a", {})


def test_a_record_over_the_bound_is_refused_and_one_at_the_bound_is_read_again(tmp_path: Path) -> None:
    with NOTES.open(tmp_path) as opened:
        opened.append("note", "a", {"x": ""})
        around = len(NOTES.path(tmp_path).read_bytes())
        room = MAX_LINE_BYTES - around
        with pytest.raises(BadInput, match=f"{MAX_LINE_BYTES + 1} bytes"):
            opened.append("note", "b", {"x": "y" * (room + 1)})
        assert len(NOTES.path(tmp_path).read_bytes()) == around
        opened.append("note", "b", {"x": "y" * room})
    assert [data["x"] for _type, _id, data in open_and_read(tmp_path)] == ["", "y" * room]


STRANGE = {
    "lone": "\ud800 \udfff",
    "nul": "\0",
    "line ends": "\u2028\r\n",
    "emoji": "\U0001f600",
    "quotes": '"\\/',
    "": [None, 1e300, -0.0],
}


def test_strange_text_comes_back_as_it_was_and_stands_there_in_ascii(tmp_path: Path) -> None:
    with NOTES.open(tmp_path) as opened:
        opened.append("note", "a", STRANGE)
    assert open_and_read(tmp_path) == [("note", "a", STRANGE)]
    content = NOTES.path(tmp_path).read_bytes()
    assert content.isascii()
    assert content.count(b"\n") == 1


def test_a_line_has_its_members_in_the_promised_order_and_its_data_sorted(tmp_path: Path) -> None:
    with NOTES.open(tmp_path) as opened:
        record = opened.append("note", "a", {"z": {"b": 1, "a": 2}, "y": "\u20ac"})
    genesis = journal.fingerprint(b"halt23 journal 1 notes")
    covered = f'"previous":"{genesis}","sequence":1,"type":"note","id":"a","data":{{"y":"\\u20ac","z":{{"a":2,"b":1}}}}}}'
    checksum = journal.fingerprint(covered.encode())
    assert NOTES.path(tmp_path).read_text() == f'{{"sha256":"{checksum}",{covered}\n'
    assert (record.sequence, record.previous, record.sha256) == (1, genesis, checksum)


def test_jq_reads_every_record(tmp_path: Path) -> None:
    lines = notes.write(tmp_path)
    program = shutil.which("jq")
    if program is None:
        assert [json.loads(line)["id"] for line in lines] == ["n-1", "n-2", "n-3"]
        return
    done = subprocess.run(
        [program, "-r", ".id + .data.text", str(NOTES.path(tmp_path))], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.splitlines() == [f"n-{number}grün \u20ac" for number in (1, 2, 3)]


# Ownership and interruption.


def test_a_second_opener_in_the_same_process_is_refused_until_the_first_gives_up(tmp_path: Path) -> None:
    with NOTES.open(tmp_path), pytest.raises(LockHeld, match=r"notes\.jsonl: another process holds its lock"):
        NOTES.open(tmp_path)
    NOTES.open(tmp_path).close()


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    opened = NOTES.open(tmp_path)
    opened.close()
    opened.close()


@pytest.mark.parametrize("stage", ["before", "torn", "written", "synced"])
def test_after_an_append_is_interrupted_the_journal_never_writes_a_chain_that_it_refuses_later(
    tmp_path: Path, stage: str
) -> None:
    with NOTES.open(tmp_path) as opened:
        opened.append("note", "a", {})
        faults.arm(faults.Fault(f"note.append.{stage}"), interrupt)
        with pytest.raises(Interrupted):
            opened.append("note", "b", {})
        faults.disarm()
        try:
            opened.append("note", "c", {})
            appended = ["c"]
        except MachineRefused as error:
            assert "open the journal again" in str(error)
            appended = []
    kept = {"before": ["a"], "torn": ["a"], "written": ["a", "b"], "synced": ["a", "b"]}[stage]
    assert [record_id for _type, record_id, _data in open_and_read(tmp_path)] == kept + appended


def test_a_directory_that_is_missing_or_no_directory_is_the_machine_refusing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "notes.jsonl").mkdir()
    for directory in (tmp_path / "missing", tmp_path / "file", tmp_path):
        with pytest.raises(MachineRefused, match=r"notes\.jsonl: cannot be opened") as caught:
            NOTES.open(directory)
        assert not caught.value.disk_full


def test_an_absent_journal_reads_as_empty_and_is_not_created_by_reading(tmp_path: Path) -> None:
    assert read_all(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_journal_that_cannot_be_read_is_the_machine_refusing(tmp_path: Path) -> None:
    NOTES.path(tmp_path).mkdir()
    with pytest.raises(MachineRefused, match="cannot be read"):
        list(NOTES.read(tmp_path))


def test_missing_parents_are_created_and_a_file_in_the_way_is_told(tmp_path: Path) -> None:
    journal.make_directory(tmp_path / "a" / "b" / "c")
    journal.make_directory(tmp_path / "a" / "b" / "c")
    assert (tmp_path / "a" / "b" / "c").is_dir()
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(MachineRefused, match="cannot be created"):
            journal.make_directory(path)


@pytest.mark.parametrize(
    "content", [b"", b"plain", "grün".encode(), b"\xff\xfe", b"\xed\xa0\x80", b"\0" * 10, bytes(range(256)), b"\xc0\x80"]
)
def test_a_payload_gives_back_exactly_the_bytes(content: bytes) -> None:
    value = json.loads(json.dumps(journal.payload(content)))
    assert journal.payload_bytes(value) == content


@pytest.mark.parametrize(
    "value",
    [
        *({}, {"content": "x"}, {"encoding": "utf-8"}, {"content": "x", "encoding": "latin-1"}, [], None),
        *({"content": "*", "encoding": "base64"}, {"content": "\ud800", "encoding": "utf-8"}),
        *({"content": 3, "encoding": "utf-8"}, {"content": 3, "encoding": "base64"}),
    ],
)
def test_what_is_no_payload_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="payload"):
        journal.payload_bytes(value)

"""Reading what is durable: torn tails, damaged lines, unknown members and missing files are seen for what they are."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outbox.record import encode, genesis
from scenarios.explore.model import Case
from scenarios.explore.readers import read_database, read_journals
from scenarios.explore.state import OPENING, Place, Unreadable, counted, in_words, read_lines
from scenarios.explore.verdicts import PHANTOM, judge
from tests.explore.ground import subject

FEW = settings(max_examples=60)
ids = st.text("abcdef", min_size=1, max_size=6)
records = st.lists(st.tuples(ids, st.dictionaries(ids, st.integers() | st.text(max_size=8), max_size=3)), max_size=5)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state") / "effects.jsonl"


def line(text: str) -> bytes:
    """A line whose checksum fits, whatever it holds: TEXT is what comes after the checksum's member."""
    return OPENING + hashlib.sha256(text.encode()).hexdigest().encode() + b'",' + text.encode() + b"\n"


def whole(identity: str, data: object) -> bytes:
    return line(json.dumps({"type": "effect", "id": identity, "data": data}, separators=(",", ":"))[1:])


def encoded(found: list[tuple[str, dict[str, object]]]) -> bytes:
    return b"".join(whole(identity, data) for identity, data in found)


@FEW
@given(found=records)
def test_whole_records_are_read_in_their_order(path: Path, found: list[tuple[str, dict[str, object]]]) -> None:
    path.write_bytes(encoded(found))
    lines = read_lines(path)
    assert [(record["id"], record["data"]) for record in lines.of_type("effect")] == found
    assert (lines.torn_bytes, lines.damaged_lines) == (0, 0)


@FEW
@given(found=records, data=st.data())
def test_every_prefix_of_a_journal_is_records_and_a_torn_tail(
    path: Path, found: list[tuple[str, dict[str, object]]], data: st.DataObject
) -> None:
    content = encoded(found)
    end = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:end])
    lines = read_lines(path)
    assert len(lines.records) == content[:end].count(b"\n")
    assert lines.torn_bytes == end - (content[:end].rfind(b"\n") + 1)
    assert lines.damaged_lines == 0


@FEW
@given(found=records.filter(bool), data=st.data())
def test_a_changed_byte_costs_the_lines_that_it_touches_and_no_other(
    path: Path, found: list[tuple[str, dict[str, object]]], data: st.DataObject
) -> None:
    content = bytearray(encoded(found))
    at = data.draw(st.integers(0, len(content) - 1).filter(lambda at: content[at] != 10))
    content[at] = data.draw(st.integers(0, 255).filter(lambda byte: byte not in (10, content[at])))
    path.write_bytes(bytes(content))
    lines = read_lines(path)
    assert (len(lines.records), lines.damaged_lines, lines.torn_bytes) == (len(found) - 1, 1, 0)


@FEW
@given(noise=st.binary(max_size=200))
def test_bytes_of_chance_are_damage_and_never_records(path: Path, noise: bytes) -> None:
    path.write_bytes(noise)
    lines = read_lines(path)
    assert (len(lines.records), lines.damaged_lines) == (0, noise.count(b"\n"))


@pytest.mark.parametrize(
    "text",
    [
        '"id":"a","data":{}}',
        '"type":"effect","data":{}}',
        '"type":"effect","id":"a"}',
        '"type":7,"id":"a","data":{}}',
        '"type":"effect","id":7,"data":{}}',
        '"type":"effect","id":"a","data":7}',
        "7",
        "",
        '"type":"effect","id":"a","data":{}} {}',
        '"a":' + "[" * 100_000,
    ],
)
def test_a_line_whose_checksum_fits_and_that_is_no_record_is_damage(path: Path, text: str) -> None:
    path.write_bytes(line(text))
    lines = read_lines(path)
    assert (lines.records, lines.damaged_lines) == ((), 1)


def test_unknown_members_are_nobodys_business(path: Path) -> None:
    path.write_bytes(line('"type":"effect","id":"a","data":{"more":1},"later":[]}'))
    assert [record["id"] for record in read_lines(path).of_type("effect")] == ["a"]


@pytest.mark.parametrize("type_", ["effect", "arrival", "receipt", "history", "intention"])
def test_what_the_journals_write_is_what_is_read(tmp_path: Path, type_: str) -> None:
    """The reader of the exploring shares no code with the journal that it reads."""
    path = tmp_path / "effects.jsonl"
    first, digest = encode(genesis("effects"), 1, type_, "a", {"n": 1})
    second, _digest = encode(digest, 2, type_, "b", {"n": 1})
    path.write_bytes(first + second)
    assert [record["id"] for record in read_lines(path).of_type(type_)] == ["a", "b"]


def test_a_folder_in_which_nothing_was_written_is_a_state(tmp_path: Path) -> None:
    state = read_journals(Place(tmp_path))
    assert (state.effects, state.receipts, state.history, state.arrivals) == ({}, {}, {}, 0)
    assert (state.unfinished, state.torn, state.damaged) == ((), (), ())
    assert state.told == "sender: 0 intentions, 0 attempts, 0 receipts, 0 history records; " + (
        "receiver: 0 arrivals, 0 effects, 0 answers"
    )
    assert read_database(Place(tmp_path, str(tmp_path / "nowhere.db"))).unfinished == ()


def test_torn_and_damaged_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "outbox").mkdir()
    (tmp_path / "receiver").mkdir()
    (tmp_path / "outbox" / "receipts.jsonl").write_bytes(b"half a li")
    (tmp_path / "receiver" / "effects.jsonl").write_bytes(b"no record\n")
    state = read_journals(Place(tmp_path))
    assert (state.torn, state.damaged) == (("receipts.jsonl",), ("effects.jsonl",))
    assert "receipts.jsonl ends in 9 torn bytes" in state.told
    assert "effects.jsonl has 1 damaged lines" in state.told


@pytest.mark.parametrize("data", [{}, {"key": None}, {"fingerprint": None, "key": ""}, {"fingerprint": "none of ours"}])
def test_an_effect_that_does_not_tell_whose_it_is_counts_and_is_nobodys(tmp_path: Path, data: dict[str, object]) -> None:
    (tmp_path / "receiver").mkdir()
    (tmp_path / "receiver" / "effects.jsonl").write_bytes(whole("effect-1", data))
    state = read_journals(Place(tmp_path))
    assert (list(state.effects.values()), state.damaged) == ([1], ())
    assert PHANTOM in judge(Case(subject("journal/keyed")), state, finished=False).kinds


@FEW
@given(contents=st.lists(st.binary(max_size=20), min_size=2, max_size=2), name=st.sampled_from(["receipts", "history"]))
def test_the_digest_is_that_of_the_bytes_and_their_place(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes], name: str
) -> None:
    digests = []
    for content in contents:
        root = tmp_path_factory.mktemp("digest")
        (root / "outbox").mkdir()
        (root / "outbox" / f"{name}.jsonl").write_bytes(content)
        digests.append(read_journals(Place(root)).digest)
    assert (digests[0] == digests[1]) == (contents[0] == contents[1])


def test_an_empty_file_is_not_the_file_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "outbox").mkdir()
    missing = read_journals(Place(tmp_path)).digest
    (tmp_path / "outbox" / "receipts.jsonl").touch()
    assert read_journals(Place(tmp_path)).digest != missing


def test_a_file_that_cannot_be_read_is_named_with_what_was_met(tmp_path: Path) -> None:
    (tmp_path / "receiver" / "effects.jsonl").mkdir(parents=True)
    with pytest.raises(Unreadable, match=r"^receiver/effects\.jsonl: IsADirectoryError: Is a directory$"):
        read_journals(Place(tmp_path))
    (tmp_path / "dispatch.db").write_bytes(b"this is no database, whatever its name says")
    with pytest.raises(Unreadable, match=r"^the database: DatabaseError: "):
        read_database(Place(tmp_path, str(tmp_path / "dispatch.db")))


def test_a_record_without_its_members_is_read_for_what_it_has(tmp_path: Path) -> None:
    (tmp_path / "outbox").mkdir()
    for kind, name in (("intention", "intentions"), ("receipt", "receipts"), ("history", "history")):
        (tmp_path / "outbox" / f"{name}.jsonl").write_bytes(line(f'"type":"{kind}","id":"a","data":{{}}}}') * 2)
    state = read_journals(Place(tmp_path))
    assert (state.receipts, state.repeated) == ({"a": 2}, ("a has 2 history records",))
    assert "the history record of a has another question than its intention" in state.uncaused


def dispatch(**more: object) -> dict[str, object]:
    return {
        "id": "d", "payload": "{}", "deliver_to": "http://receiver.localhost/operations?to=d#end", "status": "delivered",
        "attempt": 1, "max_attempts": 8, "ack_required": 0, "expires_at": None, "lane": None, "lane_position": None, **more,
    }  # fmt: skip


def moved(status: str, reason: str) -> dict[str, object]:
    return {
        "entity_id": "d", "previous_status": "delivering", "status": status, "reason_code": reason, "source": "system",
        "reason_summary": "", "metadata": "{}", "created_at": 1.0,
    }  # fmt: skip


SENT, DONE = moved("pending", "dispatch.delivered.transport_ok"), moved("delivered", "dispatch.delivered.transport_ok")
ACKED, IN_VAIN = moved("acked", "dispatch.acked.consumer"), moved("dead_letter", "dispatch.dead_letter.ack_timeout")


@pytest.mark.parametrize(
    ("rows", "moves", "receipts"),
    [
        ([dispatch()], [DONE], {"d": 1}),
        ([dispatch()], [DONE, DONE], {"d": 2}),
        ([dispatch(ack_required=1)], [SENT, SENT, ACKED], {"d": 1}),
        ([dispatch(ack_required=1)], [SENT, IN_VAIN], {"d": 1}),
        ([dispatch(ack_required=1)], [SENT, IN_VAIN, ACKED], {"d": 1}),
        ([dispatch(ack_required=1)], [SENT], {}),
        ([dispatch(ack_required=1)], [SENT, DONE], {}),
        # Purged: what was sent and not done waited for its acknowledgement.
        ([], [SENT, SENT, ACKED], {"d": 1}),
        ([], [DONE], {"d": 1}),
    ],
)
def test_of_what_waits_for_an_acknowledgement_only_that_or_its_timeout_is_a_receipt(
    tmp_path: Path, rows: list[object], moves: list[object], receipts: dict[str, int]
) -> None:
    tables = {"dispatch_outbox": rows, "status_transitions": moves}
    assert read_database(Place(tmp_path, tables=tables)).receipts == receipts


def test_what_a_dispatch_is_sent_as_is_what_its_row_says(tmp_path: Path) -> None:
    (tmp_path / "receiver").mkdir()
    arrived = {"key": "d", "route": "/operations?to=d", "fingerprint": hashlib.sha256(b"{}").hexdigest()}

    def uncaused(enqueued: int = 1, **other: object) -> tuple[str, ...]:
        data = {**arrived, **other}
        moves = [{**DONE, "previous_status": None, "status": "pending", "reason_code": "dispatch.pending.enqueued"}] * enqueued
        (tmp_path / "receiver" / "effects.jsonl").write_bytes(whole("d", data))
        text = json.dumps({"type": "arrival", "id": "arrival-1", "data": data}, separators=(",", ":"))[1:]
        (tmp_path / "receiver" / "arrivals.jsonl").write_bytes(line(text))
        return read_database(Place(tmp_path, tables={"dispatch_outbox": [dispatch()], "status_transitions": moves})).uncaused

    assert uncaused() == ()
    assert uncaused(route="/operations") == ("arrival-1 of d came to another route than /operations?to=d",)
    assert uncaused(fingerprint="f") == ("effect d has another body than d",)
    assert uncaused(enqueued=2, fingerprint="f") == ()


def test_numbers_agree_with_their_nouns() -> None:
    assert in_words({"entry": 2, "row": 1, "effect": 0}) == "2 entries, 1 row, 0 effects"
    assert counted(["a", "b", "a"]) == {"a": 2, "b": 1}

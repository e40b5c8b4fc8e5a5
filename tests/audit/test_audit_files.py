"""Files as they should not be: cut, emptied, swapped, linked, endless, or never written by a JSON encoder."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import audit.files
from audit import strict_json
from audit.strict_json import MOST_VALUES
from tests.audit import forge
from tests.audit.conftest import Audit
from tests.audit.play import study

DOCUMENTS = ("manifest.json", "processes.json", "results.json")
JOURNAL = "scenarios/delivery/keyed_delivery/receiver/arrivals.jsonl"
LONELY = "scenarios/delivery/keyed_delivery/outbox/receipts.jsonl"


def sentences(judge: Audit, run: Path) -> str:
    """All findings on an archive that has to fail."""
    report = judge(run)
    text = "\n".join(map(str, report.findings))
    assert report.verdict == "FAIL", text
    assert "foresaw" not in text, text
    return text


def test_a_valid_archive_passes(judge: Audit, run: Path) -> None:
    report = judge(run)
    assert [str(finding) for finding in report.findings] == []
    assert report.verdict == "PASS"
    assert report.totals == {"scenarios": 5, "processes": 22, "requests": 9, "records": 50}


@pytest.mark.parametrize("names", [["key_conflict"], ["keyed_delivery", "receiver_unavailable"]])
def test_a_valid_part_passes(judge: Audit, tmp_path: Path, names: list[str]) -> None:
    report = judge(study(names).write(tmp_path / "run"))
    assert [str(finding) for finding in report.findings] == []
    assert report.totals["scenarios"] == len(names)
    assert report.catalogue == 5


@pytest.mark.parametrize("where", [0, 5, 100, -2, -1])
def test_one_byte_changed_in_a_journal(judge: Audit, run: Path, where: int) -> None:
    data = bytearray((run / JOURNAL).read_bytes())
    data[where] ^= 1
    (run / JOURNAL).write_bytes(data)
    text = sentences(judge, run)
    assert f"{JOURNAL}: has the SHA-256" in text
    assert JOURNAL + ":" in text


def test_a_receipt_removed_with_its_hash_in_the_manifest(judge: Audit, run: Path) -> None:
    (run / LONELY).write_bytes(b"")
    forge.reseal(run)
    text = sentences(judge, run)
    assert "there is no receipt for the history record" in text
    assert "the journals have 1 effects, 0 receipts" in text


def test_records_swapped_on_the_disk(judge: Audit, run: Path) -> None:
    lines = (run / JOURNAL).read_bytes().splitlines(keepends=True)
    (run / JOURNAL).write_bytes(b"".join([lines[1], lines[0], *lines[2:]]))
    forge.reseal(run)
    text = sentences(judge, run)
    assert "previous: is" in text
    assert f"{JOURNAL}:1 sequence: is 2, expected 1" in text


GARBAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda data: b"", "it is empty"),
    "newline": (lambda data: b"\n", "it is empty"),
    "truncated": (lambda data: data[: len(data) // 2].rstrip(b"\n"), "it does not end with a newline"),
    "truncated_with_newline": (lambda data: data[: len(data) // 2] + b"\n", "it is not JSON"),
    "binary": (lambda data: bytes(range(256)) + b"\n", "carriage return"),
    "bits": (lambda data: b"{" + bytes(range(128, 256)) + b"\n", "is not ASCII"),
    "utf16": (lambda data: data.decode().encode("utf-16"), "does not end with a newline"),
    "latin": (lambda data: data.replace(b"delivery", b"d\xe9livery", 1), "is not ASCII"),
    "utf8": (lambda data: data.replace(b"delivery", "délivery".encode(), 1), "is not ASCII"),
    "bom": (lambda data: b"\xef\xbb\xbf" + data, "byte order mark"),
    "crlf": (lambda data: data.replace(b"\n", b"\r\n"), "carriage return"),
    "two_newlines": (lambda data: data + b"\n", "something follows"),
    "two_objects": (lambda data: data[:-1] + data, "something follows"),
    "array": (lambda data: b"[]\n", "opening brace"),
    "nested": (lambda data: b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n", "nested too deeply"),
    "nested_arrays": (lambda data: b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", "nested too deeply"),
    "unclosed": (lambda data: b'{"a":' + b"[" * 100_000 + b"\n", ""),
    "nan": (lambda data: data.replace(b": 1", b": NaN", 1), "NaN"),
    "infinity": (lambda data: data.replace(b": 1", b": -Infinity", 1), "Infinity"),
    "too_large": (lambda data: data.replace(b": 1", b": 1e999", 1), "is too large"),
    "huge_integer": (lambda data: data.replace(b": 1", b": " + b"9" * 10_000, 1), "10000 digits"),
    "integer": (lambda data: data.replace(b": 1", b": 99999999999999999999", 1), "expected"),
    "duplicate": (lambda data: data.replace(b"{", b'{"format": 1,', 1), "duplicate member"),
    "surrogate": (lambda data: data.replace(b'"halt23.', b'"\\ud800', 1), "expected 'halt23."),
    "control": (lambda data: data.replace(b'"halt23.', b'"\x1b[2J', 1), "it is not JSON"),
    "no_members": (lambda data: b"{}\n", "the member is missing"),
    "nul": (lambda data: b"\0" * 1000, "it does not end with a newline"),
}


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("garbage", GARBAGE)
def test_a_document_that_is_none(judge: Audit, run: Path, document: str, garbage: str) -> None:
    spoil, sentence = GARBAGE[garbage]
    (run / document).write_bytes(spoil((run / document).read_bytes()))
    if document != "manifest.json":
        forge.reseal(run)
    text = sentences(judge, run)
    assert document in text
    assert sentence in text


def test_too_many_values_are_not_read(judge: Audit, run: Path) -> None:
    (run / "results.json").write_bytes(b'{"a":[' + b"[]," * MOST_VALUES + b"[]]}\n")
    forge.reseal(run)
    assert f"it has more than {MOST_VALUES} commas and opening brackets" in sentences(judge, run)
    (run / "results.json").write_bytes(b'{"a":[' + b"0," * (MOST_VALUES - 2) + b"0]}\n")
    forge.reseal(run)
    assert "commas" not in sentences(judge, run)


def test_too_little_memory_is_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def scan(text: str, at: int) -> None:
        raise MemoryError

    monkeypatch.setattr(strict_json, "_scan", scan)
    with pytest.raises(strict_json.Malformed, match="there is not enough memory to read it"):
        strict_json.parse(b"{}")


NOT_IN_A_JOURNAL = {"surrogate", "nan", "infinity", "too_large", "huge_integer", "integer", "control"}


@pytest.mark.parametrize("garbage", sorted(GARBAGE.keys() - NOT_IN_A_JOURNAL))
def test_a_journal_that_is_none(judge: Audit, run: Path, garbage: str) -> None:
    (run / JOURNAL).write_bytes(GARBAGE[garbage][0]((run / JOURNAL).read_bytes()))
    forge.reseal(run)
    sentences(judge, run)


LINES: dict[str, tuple[Callable[[str], str], str]] = {
    "blank": (lambda rest: rest.replace('"type":', '"type": '), "is not in the one form"),
    "order": (lambda rest: rest.replace('"type":"receipt","id":"keyed_delivery-1"', '"id":"keyed_delivery-1","type":"receipt"'),
              "is not in the one form"),
    "escape": (lambda rest: rest.replace("counter", "\\u0063ounter", 1), "is not in the one form"),
    "float": (lambda rest: rest.replace('"sequence":1', '"sequence":1.0'), "sequence: is 1.0, expected an integer"),
    "huge": (lambda rest: rest.replace('"status":200', f'"status":{"2" * 5000}'), "5000 digits"),
    "nan": (lambda rest: rest.replace('"status":200', '"status":NaN'), "NaN"),
    "duplicate": (lambda rest: rest.replace('"sequence":1', '"sequence":1,"sequence":1'), "duplicate member"),
    "nested": (lambda rest: rest.replace('"status":200', '"status":' + "[" * 50_000 + "]" * 50_000), "nested too deeply"),
    "rather_nested": (lambda rest: rest.replace('"status":200', '"status":' + "[" * 700 + "]" * 700), "expected a status"),
    "surrogate": (lambda rest: rest.replace('"content":"', '"content":"\\ud800'), "expected a payload"),
    "type": (lambda rest: rest.replace('"type":"receipt"', '"type":"effect"'), "expected one of receipt"),
    "id": (lambda rest: rest.replace('"id":"keyed_delivery-1"', '"id":"' + "x" * 301 + '"'), "1 to 300 printable"),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_a_line_with_a_right_checksum_and_a_wrong_form(judge: Audit, run: Path, name: str) -> None:
    spoil, sentence = LINES[name]
    line = (run / LONELY).read_text()[:-1]
    rest = spoil(line[77:])
    assert rest != line[77:]
    (run / LONELY).write_text(f'{{"sha256":"{forge.sha(rest.encode())}",{rest}\n')
    forge.reseal(run)
    text = sentences(judge, run)
    assert f"{LONELY}:1" in text
    assert sentence in text
    assert "the checksum is" not in text


def test_a_torn_tail_that_no_fault_explains(judge: Audit, run: Path) -> None:
    data = (run / JOURNAL).read_bytes()
    (run / JOURNAL).write_bytes(data + data[:50])
    forge.reseal(run)
    assert "ends with a torn tail of 50 bytes" in sentences(judge, run)


@pytest.mark.parametrize("name", [*DOCUMENTS, "tables.md", JOURNAL, LONELY])
def test_a_missing_file(judge: Audit, run: Path, name: str) -> None:
    (run / name).unlink()
    report = judge(run)
    assert report.verdict == ("UNKNOWN" if name == "manifest.json" else "FAIL")
    assert any(name in str(finding) and "missing" in str(finding) for finding in report.findings)


@pytest.mark.parametrize("name", ["notes.txt", "scenarios/x", "scenarios/delivery/keyed_delivery/outbox/more.jsonl", ".hidden"])
def test_an_extra_file(judge: Audit, run: Path, name: str) -> None:
    (run / name).write_text("hello\n")
    assert f"{name}: is an extra file: manifest.json does not list it" in sentences(judge, run)


def test_a_name_that_is_no_text(judge: Audit, run: Path) -> None:
    with open(os.fsencode(run) + b"/\xff\n\x1b[2J", "wb"):
        pass
    text = sentences(judge, run)
    assert text.isascii()
    assert "\x1b" not in text


def test_an_empty_directory(judge: Audit, run: Path) -> None:
    (run / "scenarios" / "more").mkdir()
    assert "scenarios/more: is an empty directory" in sentences(judge, run)


@pytest.mark.parametrize("name", [*DOCUMENTS, "tables.md", JOURNAL, "notes"])
@pytest.mark.parametrize("kind", ["link", "dangling", "fifo", "socket", "directory"])
def test_what_is_no_regular_file(judge: Audit, run: Path, tmp_path: Path, name: str, kind: str) -> None:
    path, elsewhere = run / name, tmp_path / "elsewhere"
    if path.exists():
        shutil.move(path, elsewhere)
    if kind == "link":
        path.symlink_to(elsewhere)
    elif kind == "dangling":
        path.symlink_to("/nowhere")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            folder = os.open(path.parent, os.O_RDONLY)
            server.bind(f"/proc/self/fd/{folder}/{path.name}")
            os.close(folder)
    else:
        path.mkdir()
    text = sentences(judge, run)
    words = {"fifo": "a FIFO", "socket": "a socket", "directory": "an empty directory"}.get(kind, "a symbolic link")
    assert f"{name}: is {words}" in text


def test_a_linked_folder_is_not_followed(judge: Audit, run: Path, tmp_path: Path) -> None:
    folder = run / "scenarios" / "delivery" / "keyed_delivery" / "outbox"
    shutil.move(folder, tmp_path / "outbox")
    folder.symlink_to(tmp_path / "outbox")
    text = sentences(judge, run)
    assert "keyed_delivery/outbox: is a symbolic link" in text
    assert "the journal is missing" in text


@pytest.mark.parametrize("name", [*DOCUMENTS, "tables.md", JOURNAL])
def test_a_gigantic_file_is_not_read(judge: Audit, run: Path, name: str) -> None:
    with open(run / name, "ab") as file:
        file.truncate(1 << 40)
    assert "more than the 67108864 that the audit reads" in sentences(judge, run)


def test_an_endless_line(judge: Audit, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit.files, "LONGEST_LINE", 1000)
    monkeypatch.setattr(audit.files, "PIECE", 500)
    (run / JOURNAL).write_bytes(b"x" * 5000)
    assert "has a line of more than 1000 bytes" in sentences(judge, run)


def test_a_journal_of_nothing_but_lines(judge: Audit, run: Path) -> None:
    (run / JOURNAL).write_bytes(b"\n" * (60 << 20))
    assert "has more than 1000 damaged lines" in sentences(judge, run)


def test_journals_are_read_in_pieces(judge: Audit, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit.files, "PIECE", 7)
    assert judge(run).verdict == "PASS"


def test_a_very_deep_folder(judge: Audit, run: Path) -> None:
    (run / "/".join(["d"] * 200)).mkdir(parents=True)
    assert "deeper or larger than any archive" in sentences(judge, run)


def test_a_path_that_leaves_the_archive(judge: Audit, archive: forge.Archive, tmp_path: Path) -> None:
    for process in archive.processes:
        process["command"] = ["../../../../../etc" if word == "outbox" else word for word in process["command"]]
    assert "the journal is missing" in sentences(judge, archive.write(tmp_path / "run"))


def test_the_files_of_the_manifest(judge: Audit, run: Path) -> None:
    path = run / "manifest.json"
    whole = json.loads(path.read_text())

    def with_files(change: dict[str, object]) -> str:
        manifest = {**whole, "files": {**whole["files"], **change}}
        path.write_text(json.dumps(manifest) + "\n")
        return sentences(judge, run)

    assert "nowhere: is listed in manifest.json, but" in with_files({"nowhere": {"bytes": 0, "sha256": "0" * 64}})
    assert "bytes: is '0', expected an integer" in with_files({"tables.md": {"bytes": "0", "sha256": "0" * 64}})
    assert "files: is" in with_files({"tables.md": None})
    assert "manifest.json lists 1" in with_files({JOURNAL: {**whole["files"][JOURNAL], "bytes": 1}})


SNIPPETS = [b'"', b"{", b"}", b"[", b"null", b"-1", b"1e400", b"\\u0000"]


def _spoilt(judge: Audit, run: Path, name: str, at: int, cut: int, text: bytes, seal: bool) -> None:  # noqa: PLR0917
    """Replace `cut` bytes of one file by others: a verdict, and never PASS for another journal."""
    whole, manifest = (run / name).read_bytes(), (run / "manifest.json").read_bytes()
    spoilt = whole[:at] + text + whole[at + cut :]
    try:
        (run / name).write_bytes(spoilt)
        if seal and name != "manifest.json":
            forge.reseal(run)
        report = judge(run)
        assert not any("foresaw" in str(finding) for finding in report.findings)
        if name.endswith(".jsonl") or name == "dispatcher.lock":
            assert report.verdict == ("PASS" if spoilt == whole else "FAIL")
    finally:
        (run / name).write_bytes(whole)
        (run / "manifest.json").write_bytes(manifest)


@pytest.mark.parametrize("text", [b"\0", b'"', b"{", b"\r"])
def test_bytes_behind_the_end_of_each_file(judge: Audit, run: Path, text: bytes) -> None:
    """What the next test found once: a zero byte behind the last line of a client's journal."""
    names = [path.relative_to(run).as_posix() for path in sorted(run.rglob("*")) if path.is_file()]
    assert any(name.endswith("client/requests.jsonl") for name in names)
    for name in names:
        _spoilt(judge, run, name, (run / name).stat().st_size, 0, text, True)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_bytes_anywhere(
    judge: Audit, archive: forge.Archive, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whatever happens to one file, with and without a new manifest: a verdict, and never PASS."""
    run = tmp_path_factory.getbasetemp() / "any"
    if not run.exists():
        archive.write(run)
    name = data.draw(st.sampled_from(sorted(p.relative_to(run).as_posix() for p in run.rglob("*") if p.is_file())))
    size = (run / name).stat().st_size
    at = data.draw(st.integers(0, size) | st.just(size))
    cut = data.draw(st.sampled_from([0, 1, 2, 30, size]))
    text = data.draw(st.one_of(st.binary(max_size=4), st.sampled_from(SNIPPETS)))
    _spoilt(judge, run, name, at, cut, text, data.draw(st.booleans()))

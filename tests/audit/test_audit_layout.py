"""What fuzzing and tampering found: other texts of the same values, values of another type, facts of a run that cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.strict_json import Malformed, laid_out, parse_document, parse_laid_out
from tests.audit import forge
from tests.audit.conftest import Audit


def findings(judge: Audit, run: Path) -> str:
    forge.reseal(run)
    return "\n".join(map(str, judge(run).findings))


@pytest.mark.parametrize("name", ["results.json", "processes.json"])
@pytest.mark.parametrize("style", [{"indent": 2}, {}, {"indent": 1, "separators": (",", " : ")}, {"separators": (",", ":")}])
def test_another_layout_is_refused(name: str, style: dict[str, Any], run: Path, judge: Audit) -> None:
    path = run / name
    path.write_text(json.dumps(json.loads(path.read_text()), **style) + "\n")
    assert f"{name}: is not in the study's layout" in findings(judge, run)


def test_a_layout_has_one_text() -> None:
    value = {"a": [1, 2.5, {"b": []}], "c": {}, "d": "\u00e9\n", "e": [None, True]}
    text = json.dumps(value, indent=1)
    assert laid_out(text.encode() + b"\n", value)
    for old, new in ((" ", "  "), ("2.5", "2.50"), ("\\u00e9", "\\u00E9"), ("\n", "\n\n"), ("{}", "{ }"), ("[]", "[\n]")):
        assert not laid_out(text.replace(old, new, 1).encode() + b"\n", value)


def test_no_line_break_can_be_taken_out_put_in_or_moved() -> None:
    value = {"a": [1, {"b": [], "c": [[2]]}], "d": {"e": {}, "f": "x, {y}"}, "g": [True]}
    lines = json.dumps(value, indent=1).split("\n")
    texts = {
        "\n".join([*lines[:at], lines[at] + lines[at + 1].lstrip(), *lines[at + 2 :]]) for at in range(len(lines) - 1)
    }  # fmt: skip
    for text in ("\n".join(lines), *texts):
        for at in range(1, len(text)):
            for depth in range(4):
                texts.add(f"{text[:at]}\n{' ' * depth}{text[at:].lstrip(' ')}")
    texts.discard("\n".join(lines))
    tried = 0
    for text in texts:
        try:
            same = json.loads(text) == value
        except ValueError:
            continue
        tried += same
        assert not (same and laid_out(text.encode() + b"\n", value)), text
    assert tried > 1000


def test_an_expected_count_is_an_integer(run: Path, judge: Audit, archive: forge.Archive) -> None:
    archive.results["scenarios"][0]["expected"]["effects"] += 0.0
    assert "expected.effects: is " in findings(judge, archive.write(run))


@pytest.mark.parametrize(
    ("member", "value", "words"),
    [
        ("commit", None, "run.clean: is known where run.commit is not"),
        ("clean", None, "run.clean: is known where run.commit is not"),
        ("commit", "0123", "expected 40 lower-case hex digits"),
        ("started_at", "2026-01-01 00:00:00", "expected a moment in UTC"),
        ("started_at", "2026-13-01T00:00:00Z", "expected a moment in UTC"),
        ("started_at", "2026-01-01T24:00:00Z", "expected a moment in UTC"),
        ("started_at", "yesterday", "expected a moment in UTC"),
        ("sqlite", {"package": "sqlite3", "version": "3.40.1", "journal_mode": "delete"}, "run.sqlite.journal_mode"),
        ("sqlite", "3.40.1", "run.sqlite"),
        ("postgres", {"version": "15.14", "fsync": "on", "synchronous_commit": "on"}, "expected null: this run was on SQLite"),
        ("postgres", "15.14", "run.postgres: is '15.14', expected an object or null"),
    ],
)
def test_facts_of_a_run_have_their_form(  # noqa: PLR0917 (a case and its fixtures)
    member: str, value: object, words: str, run: Path, judge: Audit, archive: forge.Archive
) -> None:
    archive.run[member] = value
    assert words in findings(judge, archive.write(run))


@pytest.mark.parametrize("old, new", [("\n\n", "\n\f\n"), ("1 scenarios", "1 scenarios, counterexamples among them: 9;")])
def test_tables_hold_no_control_characters_and_no_other_count(old: str, new: str, run: Path, judge: Audit) -> None:
    text = (run / "tables.md").read_text()
    changed = (
        text.replace(old, new, 1)
        if old in text
        else text.replace(" scenarios,", " scenarios, counterexamples among them: 9;", 1)
    )
    (run / "tables.md").write_text(changed)
    assert "tables.md" in findings(judge, run)


TEXT = st.text(max_size=6)
SCALARS = st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=12
)


@settings(derandomize=True, database=None, deadline=None, max_examples=300)
@given(st.dictionaries(TEXT, VALUES, max_size=4), st.data())
def test_a_text_is_read_in_one_go_as_it_is_by_the_rules_one_after_the_other(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value, indent=1).encode() + b"\n"
    assert parse_laid_out(text) == (value, True)
    at, removed = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 2))
    put = data.draw(
        st.sampled_from([b"", b" ", b"\n", b"{", b"}", b",", b'"', b"0", b"9" * 21, b"-", b"1e999", b"\xe9", b"\r"])
    )
    same_as_by_the_rules(text[:at] + put + text[at + removed :])


def same_as_by_the_rules(text: bytes) -> None:
    """One go gives the value and the layout that the rules give, or the same refusal."""
    try:
        document = parse_document(text)
    except Malformed as refused:
        with pytest.raises(Malformed) as caught:
            parse_laid_out(text)
        assert str(caught.value) == str(refused)
        return
    assert parse_laid_out(text) == (document, text == json.dumps(document, indent=1).encode() + b"\n")


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"\n", b"{}", b"{}\n\n", b"{}\r\n", b" {}\n", b"[]\n", b"7\n", b'{\n "a": 1,\n "a": 1\n}\n'),
        *(b'{\n "a": 1,\n "a": 2\n}\n', b'{\n "a": 1e999\n}\n', b'{\n "a": NaN\n}\n', b'{\n "a": -Infinity\n}\n'),
        *(b'{\n "a": 123456789012345678901\n}\n', b'{\n "a": -123456789012345678901\n}\n', b'{\n "a": -0\n}\n'),
        *(b'{\n "a": [\n  123456789012345678901\n ]\n}\n', b'{\n "a": "123456789012345678901"\n}\n', b"\xef\xbb\xbf{}\n"),
        *(b'{\n "a": 12345678901234567890\n}\n', b'{\n "a": 0.123456789012345678901\n}\n', b'{"a": 1} {}\n'),
        b'{\n "a": ' + b"[" * 3000 + b"]" * 3000 + b"\n}\n",
    ],
)
def test_a_text_at_the_edge_of_a_rule_is_read_in_one_go_as_by_the_rules(text: bytes) -> None:
    same_as_by_the_rules(text)

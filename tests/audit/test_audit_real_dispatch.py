"""Careful forgeries of the real section dispatch: its exports as files, what is told of them, and what its receivers saw.

Every member of an export against the audit's own books is tried in `test_books`.
"""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import audit.expectations
from audit import promises
from audit.archive import audit_archive
from audit.compare import compare
from audit.explain import explain
from audit.exports import JSON
from audit.findings import Finding
from tests.audit.conftest import PINS, Audit
from tests.audit.real import Part, Whole, document
from tests.audit.real_forgeries import NOBODY, Edit, RealForgeries, judged

FORGERIES = RealForgeries()
enter = FORGERIES.enter
member = FORGERIES.member
of_process = FORGERIES.of_process
told = FORGERIES.told

Tables = dict[str, Any]
ONCE = "dispatch/producer_dies_after_commit"
END = f"scenarios/{ONCE}/exports/end.json"

# The file of an export.


@enter(ONCE, "the export is missing, though a step made it")
def no_export(part: Part) -> None:
    del part.extra[END]


@enter(ONCE, "is not in the study's layout")
def an_export_in_another_layout(part: Part) -> None:
    part.extra[END] = json.dumps(json.loads(part.extra[END]), indent=2).encode() + b"\n"


@enter(ONCE, "does not end with a newline")
def an_export_without_its_end(part: Part) -> None:
    part.extra[END] = part.extra[END][:-1]


@enter(ONCE, "has its members in another order")
def columns_in_another_order(part: Part) -> None:
    def edit(tables: Tables) -> None:
        row = tables["dispatch_outbox"][0]
        row["id"] = row.pop("id")

    part.export("end", edit)


@enter(ONCE, "is a member that the contract does not have")
def a_column_more(part: Part) -> None:
    part.export("end", lambda tables: tables["status_transitions"][0].update(id=1))


@enter(ONCE, "a duplicate member name")
def a_member_that_stands_twice(part: Part) -> None:
    text = b'   "kind": "study",\n'
    part.extra[END] = part.extra[END].replace(text, text * 2)


def typed(table: str, name: str, value: object, sentence: str) -> None:
    """Enter a value of another kind in the first item of a table."""
    words = f"{table} {name}={value!r}"
    edit = lambda part: part.export("end", lambda tables: tables[table][0].__setitem__(name, value))  # noqa: E731
    FORGERIES.by_name[words] = (ONCE, sentence, edit)


typed("dispatch_outbox", "status", "sent", "expected one of pending, delivering")
typed("dispatch_outbox", "next_attempt_at", 1015, "expected a time in seconds, written with a fraction")
typed("dispatch_outbox", "ack_required", False, "expected 0 or 1")
typed("dispatch_outbox", "attempt", 1.0, "expected an integer from 0")
typed("dispatch_outbox", "payload", "[]", "expected the text of a JSON object")
typed("dispatch_outbox", "session_id", "x", "expected None")
typed("dispatch_outbox", "id", "1", "expected 32 lower-case hex digits")
typed("status_transitions", "reason_code", "dispatch.sent", "expected one of dispatch.")
typed("status_transitions", "metadata", "{'a': 1}", "expected the text of a JSON object")
typed("status_transitions", "source", "consumer", "expected one of system, operator")


@enter("dispatch/repeated_without_key", "which does not come after")
def rows_in_another_order(part: Part) -> None:
    part.export("end", lambda tables: tables["dispatch_outbox"].reverse())


@enter("dispatch/repeated_without_key", "which does not come after")
def a_row_that_stands_twice(part: Part) -> None:
    part.export("end", lambda tables: tables["dispatch_outbox"].append(deepcopy(tables["dispatch_outbox"][-1])))


# What is counted of it.


@enter(ONCE, "but the audit expects 1 delivered, 1 attempts")
def a_row_is_gone(part: Part) -> None:
    part.export("end", lambda tables: tables["dispatch_outbox"].clear())


@enter("dispatch/acknowledged", "1 effects, 1 receipts, 3 history, 1 arrivals, but the protocol expects")
def a_transition_is_gone(part: Part) -> None:
    part.export("end", lambda tables: tables["status_transitions"].pop())


@enter("dispatch/recorded_error_then_death", "holds 1 delivering, 1 attempts, but the protocol asks for")
def the_flaw_is_mended(part: Part) -> None:
    part.export("after_the_death", lambda tables: tables["dispatch_outbox"][0].update(last_error=None))


# What the programs printed, and where their database is.

told("dispatch/overlapping_scans", "scheduler", 1, "attempted", 1, "its work on the books gives")
told("dispatch/zombie_keyed", "zombie", 1, "superseded", 0, "its work on the books gives")
of_process("dispatch/repeated_with_key", "producer", 2, "stdout", "0" * 31 + "2\n", "its work on the books gives")
of_process("dispatch/wrong_token", "consumer", 1, "exit_code", 0, "but step 5 of the protocol asks for 2")
of_process(ONCE, "producer", 1, "substitutions", {"db": "dispatch.db"}, "expected 'state/dispatch.db'")
of_process(ONCE, "producer", 1, "substitutions", {}, "but the command asks for ['db'] in this order")


# What the receivers saw.

member("dispatch/poison_row", "receiver/arrivals", 4, "status", 400, "expected (404,) for not_found")
member("dispatch/poison_row", "receiver/arrivals", 4, "result_sha256", NOBODY, "a refusal for 'not_found'")
member("dispatch/poison_row", "receiver/arrivals", 3, "route", "/operations", "sent '/nowhere'")
member("dispatch/revival_over_restart", "receiver/arrivals", 3, "route", "/operations", "sent '/operations?seat=2'")
member("dispatch/command_keyed", "receiver/arrivals", 1, "attempt", "2", "sent '1'")
member(ONCE, "receiver/arrivals", 1, "sender", "client", "sent None")


@enter("dispatch/poison_row", "effects.jsonl:3")
def a_refused_dispatch_has_an_effect(part: Part) -> None:
    effects = part.journal("receiver/effects")
    key = part.data("receiver/arrivals", 3)["key"]
    effects.append({**deepcopy(effects[-1]), "id": key})
    effects[-1]["data"].update(key=key, number=3, arrival="arrival-2")


@enter("dispatch/zombie_unkeyed", "sent '2'")
def the_zombie_sends_first(part: Part) -> None:
    arrivals = [record["data"] for record in part.journal("receiver/arrivals") if record["type"] == "arrival"]
    arrivals[0]["attempt"], arrivals[1]["attempt"] = "1", "2"


@enter("dispatch/poison_row", "stands before the answer to")
def an_answer_that_comes_late(part: Part) -> None:
    arrivals = part.journal("receiver/arrivals")
    arrivals[1], arrivals[2] = arrivals[2], arrivals[1]


@enter("dispatch/zombie_unkeyed", "but its answer comes after the request of")
def a_zombie_that_ended_before_the_other_scan_began(part: Part) -> None:
    part.process("zombie")["ended_seconds"] = part.process("scheduler")["started_seconds"] - 0.001


@enter("dispatch/success_is_not_storage", "was never answered")
def a_receiver_that_did_not_die(part: Part) -> None:
    process = part.process("receiver")
    process.update(exit_code=0, fault=None, environment={})


@pytest.mark.parametrize("name", FORGERIES.by_name)
def test_a_careful_forgery_is_refused(name: str, whole: Whole, judge_real: Audit, tmp_path: Path) -> None:
    FORGERIES.refuse(name, whole, judge_real, tmp_path)


def findings(part: Part, judge: Audit, folder: Path, *, changes: dict[str, bytes] | None = None, **selected: object) -> str:
    """What the audit says of a part of which some files, or members of the selection, are others."""
    files = {**part.files(), **(changes or {})}
    manifest = part.manifest(files)
    manifest["selection"].update(selected)
    for path, data in {**files, "manifest.json": document(manifest)}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return "\n".join(map(str, judge(folder).findings))


def test_an_archive_has_no_database(whole: Whole, judge_real: Audit, tmp_path: Path) -> None:
    part = whole.part(ONCE)
    part.extra[f"scenarios/{ONCE}/state/dispatch.db"] = b"SQLite format 3\0"
    found = [str(finding) for finding in judged(part, judge_real, tmp_path).findings]
    assert any(each.startswith(f"scenarios/{ONCE}/state/dispatch.db: is an extra file") for each in found)


@pytest.mark.parametrize(
    ("member", "value", "sentence"),
    [
        ("rows", {"delivered": 2}, "is 2 delivered, 1 attempts, but the export holds 1 delivered, 1 attempts"),
        ("expected", {"delivered": 2}, "but the protocol has"),
        ("name", None, "scenarios[0].exports[0].name"),
        ("rows", {"stale": 0.0}, "expected an integer from 0"),
    ],
)
def test_results_tell_of_the_exports_what_they_hold(  # noqa: PLR0917 (a case and its fixtures)
    member: str, value: Any, sentence: str, whole: Whole, judge_real: Audit, tmp_path: Path
) -> None:
    part = whole.part(ONCE)
    results = json.loads(part.files()["results.json"])
    export = results["scenarios"][0]["exports"][-1 if member != "name" else 0]
    export[member] = {**export[member], **value} if isinstance(value, dict) else "other"
    assert sentence in findings(part, judge_real, tmp_path, changes={"results.json": document(results)})


def test_no_export_may_be_left_out_of_the_results(whole: Whole, judge_real: Audit, tmp_path: Path) -> None:
    part = whole.part(ONCE)
    results = json.loads(part.files()["results.json"])
    results["scenarios"][0]["exports"].pop()
    found = findings(part, judge_real, tmp_path, changes={"results.json": document(results)})
    assert "scenarios[0].exports: has 1 entries, but the protocol has 2 exports" in found


@pytest.mark.parametrize(
    ("before", "after"), [(b"| 1 | 1 delivered |", b"| 1 | 2 delivered |"), (b"| Rows at the end |", b"| Rows |")]
)
def test_tables_tell_of_the_rows_at_the_end(
    before: bytes, after: bytes, whole: Whole, judge_real: Audit, tmp_path: Path
) -> None:
    part = whole.part(ONCE)
    text = part.files()["tables.md"]
    assert before in text
    assert "tables.md:" in findings(part, judge_real, tmp_path, changes={"tables.md": text.replace(before, after)})


def test_a_store_runs_what_it_can(whole: Whole, judge_real: Audit, tmp_path: Path) -> None:
    found = findings(whole.part("dispatch/disk_full_at_claim"), judge_real, tmp_path, store="postgres")
    assert "selection.store: is 'postgres', on which dispatch/disk_full_at_claim cannot be run" in found
    assert "give the database 'state/dispatch.db', expected postgresql://postgres@127.0.0.1:PORT/halt23_N" in found


def test_a_complete_study_is_all_that_its_store_can_run(whole: Whole, judge_real: Audit, tmp_path: Path) -> None:
    assert whole.manifest["selection"]["complete"]
    part = whole.part(*whole.names[:-1])
    assert "scenarios that sqlite can run were selected" in findings(part, judge_real, tmp_path, complete=True)


# What is told of exports.


def compared(whole: Whole, folder: Path, *edits: Edit) -> list[str]:
    """The lines of a comparison of a scenario with itself, edited."""
    one, other = whole.part(ONCE).write(folder / "one"), whole.part(ONCE)
    for edit in edits:
        edit(other)
    found = compare(str(one), str(other.write(folder / "other")))
    assert found.sides is not None
    assert found.problems == []
    return [str(finding).replace(str(folder), "") for finding in found.sides.findings]


def test_a_comparison_names_the_value_of_an_export_that_differs(whole: Whole, tmp_path: Path) -> None:
    def edit(part: Part) -> None:
        part.export("end", lambda tables: tables["dispatch_outbox"][0].update(attempt=2))

    assert compared(whole, tmp_path, edit) == [
        f"{ONCE}: exports/end.json dispatch_outbox[0].attempt: is 1 in /one, but 2 in /other"
    ]


def test_a_comparison_tells_of_another_layout_of_an_export(whole: Whole, tmp_path: Path) -> None:
    found = compared(whole, tmp_path, an_export_in_another_layout)
    assert found == [f"scenarios/{ONCE}/exports/end.json: is not in the study's layout in /other"]


def test_a_comparison_tells_of_an_export_that_one_side_lacks(whole: Whole, tmp_path: Path) -> None:
    found = compared(whole, tmp_path, no_export)
    assert f"{ONCE}: exports/end.json: the file is only in /one" in found


def test_the_database_of_a_run_may_be_another(whole: Whole, tmp_path: Path) -> None:
    def edit(part: Part) -> None:
        part.process("producer")["substitutions"] = {"db": "postgresql://postgres@127.0.0.1:54321/halt23_1"}

    assert compared(whole, tmp_path, edit) == []


def test_an_explanation_counts_what_the_exports_hold(whole: Whole, frozen: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for version, digest in PINS.items():
            patch.setitem(audit.expectations.PROTOCOLS, version, digest)
        text = " ".join(" ".join(explain(audit_archive(str(whole.folder), str(frozen), keep=True))).split())
    ends = [end for entry in whole.results if entry["exports"] for end in entry["exports"][-1:]]
    assert f"{sum(len(entry['exports']) for entry in whole.results)} exports of a dispatch outbox on SQLite with" in text
    assert f"and {sum(end['rows']['events'] for end in ends)} events. The audit kept books of its own" in text
    assert f"all {len(whole.names)} scenarios of the catalogue that SQLite can run, completely" in text


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("{}", True),
        ('{"a":"\u00e9 \u20ac \U0001f600"}', True),
        ('{"a":1,"a":1}', False),
        ('{"a":1} ', False),
        ('{"a":NaN}', False),
        ("[1]", False),
        ("\u00e9", False),
        ("", False),
        (None, False),
        ({}, False),
    ],
)
def test_what_the_text_of_a_json_object_is(text: object, good: bool) -> None:
    assert JSON.test(text) is good


def test_a_finding_against_an_export_breaks_the_promise_of_the_books() -> None:
    place = f"{END} dispatch_outbox[0].attempt"
    assert promises.promise(Finding(ONCE, place, "is 3, but the processes wrote 2")) == promises.BOOKS

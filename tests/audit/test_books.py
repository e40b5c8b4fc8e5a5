"""The audit's own books of a dispatch outbox: a clean study gives no finding, an edit of any value does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

from audit.case import Case
from audit.expectations import SQLITE
from audit.journals import Record
from tests.audit.forge import REPOSITORY
from tests.audit.held_books import ON_POSTGRES, SCENARIOS, Books, Row, Study

TABLES = ("dispatch_outbox", "status_transitions", "admin_events")


def test_the_books_are_loaded_only_where_they_are_needed() -> None:
    code = "import sys, audit.archive; print([name for name in sys.modules if name.startswith('audit.books')])"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_a_run_left_is_what_the_audit_comes_to(name: str, booked: Study) -> None:
    books = booked.books(name)
    assert books.findings() == []
    assert list(books.exports)[-1] == "end"


@pytest.mark.parametrize("name", ON_POSTGRES)
def test_what_a_run_on_postgresql_left_is_what_the_audit_comes_to(name: str, booked_on_postgres: Study) -> None:
    assert booked_on_postgres.books(name).findings() == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ack_meets_an_open_outcome", "step 6 asks that 'consumer' stands at its pause, but the books do not bring it there"),
        ("key_is_taken_meanwhile", "step 4 asks that 'other_producer' has ended, but the books do not bring it there"),
        ("scan_meets_an_open_claim", "step 5 asks that 'other_scheduler' has ended, but the books do not bring it there"),
    ],
)
def test_where_one_writes_at_a_time_two_writers_do_not_come_that_far(name: str, words: str, booked_on_postgres: Study) -> None:
    books = booked_on_postgres.books(name)
    books.store = SQLITE
    assert words in books.findings()[0]


@pytest.mark.parametrize(
    ("name", "process", "stdout", "words"),
    [
        ("key_is_taken_meanwhile", "producer", "0" * 31 + "1\n", f"gives '{'0' * 31}2\\n'"),
        ("ack_meets_an_open_outcome", "consumer", "0" * 31 + "1 is acknowledged\n", "gives ''"),
    ],
)
def test_who_came_second_says_so(name: str, process: str, stdout: str, words: str, booked_on_postgres: Study) -> None:
    books = booked_on_postgres.books(name)
    books.process(process)["stdout"] = stdout
    assert words in books.findings()[0]


def others(value: Any) -> list[Any]:
    """Values that the export could have in place of this one, of the same kind and type and, for text, of the same length."""
    if value is None:
        return ["x", 7.0]
    if isinstance(value, str):
        return [value[:-1] + ("1" if value[-1:] == "0" else "0"), f"{value} "]
    return [value + 1, float(value) if isinstance(value, int) else int(value)]


def edits(books: Books) -> Iterator[tuple[str, Any]]:
    """Every member of every item of every export, changed in place while the caller looks, one after the other."""
    for export, document in books.exports.items():
        for table in TABLES:
            for number, item in enumerate(document[table]):
                for member, value in item.items():
                    for other in others(value):
                        item[member] = other
                        yield f"{export} {table}[{number}].{member}", other
                    item[member] = value


@pytest.mark.parametrize(
    "name", ["poison_row", "forced_retry_is_fenced", "purge_frees_the_key", "recorded_slow_scan", "recorded_error_then_death"]
)
def test_no_member_of_an_export_can_be_edited(name: str, booked: Study) -> None:
    books = booked.books(name)
    case = books.case()
    passed = [each for each in edits(books) if not _again(books, case)]
    assert passed == []
    assert books.findings() == []


def _again(books: Books, case: Case) -> list[str]:
    """The findings with the journals read already."""
    from audit import books as audited  # noqa: PLC0415 (the name is the fixture's elsewhere)

    case.tree.findings.items.clear()
    audited.hold(case, books.exports, books.store)
    return [str(finding) for finding in case.tree.findings.items]


@pytest.mark.parametrize("name", ["poison_row", "purge_is_audited", "recorded_late_finaliser"])
@pytest.mark.parametrize("way", ["dropped", "doubled", "swapped"])
def test_no_item_of_an_export_can_be_dropped_doubled_or_moved(name: str, way: str, booked: Study) -> None:
    for export in booked.books(name).exports:
        for table in TABLES:
            for number in range(len(booked.books(name).exports[export][table])):
                books = booked.books(name)
                items = books.exports[export][table]
                if way == "dropped":
                    del items[number]
                elif way == "doubled":
                    items.insert(number, deepcopy(items[number]))
                elif number and items[number - 1] != items[number]:
                    items[number - 1], items[number] = items[number], items[number - 1]
                else:
                    continue
                assert books.findings() != [], (export, table, number)


def test_members_stand_in_the_order_of_the_columns(booked: Study) -> None:
    books = booked.books("poison_row")
    row = books.rows()[0]
    row["id"] = row.pop("id")
    assert "but the processes wrote {'id': " in books.findings()[0]


@pytest.mark.parametrize(("member", "value"), [("format", "halt23.other"), ("format_version", 2), ("format_version", 1.0)])
def test_a_document_says_what_it_is(member: str, value: object, booked: Study) -> None:
    books = booked.books("purge_is_audited")
    books.exports["end"][member] = value
    assert f"end.json {member}: is {value!r}, expected" in "\n".join(books.findings())


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_word_of_an_output_and_no_exit_code_can_be_edited(name: str, booked: Study) -> None:
    books = booked.books(name)
    for process in books.processes:
        if process["process"] == "receiver":
            continue
        where = f"processes.json {process['process']} (incarnation {process['incarnation']})"
        for member, other in (("stdout", process["stdout"] + " "), ("exit_code", process["exit_code"] + 1)):
            value, process[member] = process[member], other
            found = books.findings()
            assert len(found) == 1, found
            assert f"(step {process['step']}): {where}.{member}: is {other!r}, but its work" in found[0]
            process[member] = value


@pytest.mark.parametrize("counter", ["attempted", "delivered", "dead_letter", "expired", "retried", "superseded"])
def test_a_scan_counts_what_it_did(counter: str, booked: Study) -> None:
    books = booked.books("poison_row")
    scan = books.process("scheduler")
    before = int(scan["stdout"].partition(f'"{counter}": ')[2][0])
    scan["stdout"] = scan["stdout"].replace(f'"{counter}": {before}', f'"{counter}": {before + 1}')
    assert ".stdout: is " in books.findings()[0]


@pytest.mark.parametrize("member", ["attempt", "body_bytes", "fingerprint", "key", "method", "route", "sender"])
@pytest.mark.parametrize("name", ["poison_row", "storage_is_acknowledged"])
def test_an_arrival_is_what_the_scan_sent(member: str, name: str, booked: Study) -> None:
    def edit(case: Case) -> None:
        data = _arrivals(case)[1].data
        data[member] = "9" if data[member] is None or isinstance(data[member], str) else data[member] + 1

    found = booked.books(name).findings(edit)
    assert any(f"data.{member}: is " in each and "but attempt " in each for each in found), found


def _arrivals(case: Case) -> list[Record]:
    return case.stores["receiver"]["arrivals"].of("arrival")


def test_an_arrival_that_is_gone_was_sent_all_the_same(booked: Study) -> None:
    found = booked.books("poison_row").findings(lambda case: _remove(case, _arrivals(case)[-1]))
    assert "attempt 2 of the dispatch '00000000000000000000000000000002' was sent, but there is no arrival" in found[0]


def test_an_arrival_more_was_sent_by_nobody(booked: Study) -> None:
    def edit(case: Case) -> None:
        case.stores["receiver"]["arrivals"].records.append(_arrivals(case)[-1])

    found = booked.books("poison_row").findings(edit)
    assert any("the arrival 'arrival-4' was sent by no scan" in each for each in found)


def test_an_answer_that_is_gone_needs_a_receiver_that_could_die(booked: Study) -> None:
    def edit(case: Case) -> None:
        _remove(case, case.stores["receiver"]["arrivals"].of("answer")[-1])

    assert any("was never answered, but no fault was armed" in each for each in booked.books("poison_row").findings(edit))
    assert booked.books("success_is_not_storage").findings() == []


def _remove(case: Case, record: Record) -> None:
    case.stores["receiver"]["arrivals"].records.remove(record)


def test_what_the_receiver_answered_is_what_the_books_must_have(booked: Study) -> None:
    def edit(case: Case) -> None:
        case.stores["receiver"]["arrivals"].of("answer")[0].data["status"] = 503

    found = "\n".join(booked.books("poison_row").findings(edit))
    assert "but the processes wrote 'unavailable: the receiver answered 503'" in found
    assert "records that attempt 1 happened, but no receiver answered it with a success" in found


def test_each_arrival_gets_the_steps_of_its_scan(booked: Study) -> None:
    books = booked.books("recorded_slow_scan")
    case = books.case()
    _again(books, case)
    assert [arrival.span for arrival in _arrivals(case)] == [(5, 13), (5, 13), (10, 15)]


Plan = Callable[[Books], object]


def _set(books: Books, process: str, at: int, **members: Any) -> None:
    books.step(process, at).update(members)


def _argument(books: Books, process: str, at: int, old: str, new: str) -> None:
    arguments: list[str] = books.step(process, at)["arguments"]
    arguments[arguments.index(old)] = new


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("poison_row", lambda books: _argument(books, "scheduler", 2, "1060", "1061")),
        ("poison_row", lambda books: _argument(books, "scheduler", 2, "1060", "1059")),
        ("poison_row", lambda books: _argument(books, "producer", 2, "2", "3")),
        ("poison_row", lambda books: _set(books, "scheduler", 1, halt_at="dispatch.claim.committed#2")),
        ("purge_frees_the_key", lambda books: _argument(books, "producer", 1, "order-7", "order-8")),
        ("revival_over_restart", lambda books: _argument(books, "producer", 3, "1000", "1001")),
        ("recorded_late_finaliser", lambda books: _argument(books, "zombie", 1, "--books", "--courier")),
        ("recorded_status_then_death", lambda books: _set(books, "scheduler", 1, halt_at="recorded.error.committed")),
        ("disk_full_at_outcome", lambda books: _set(books, "scheduler", 1, pause_at="dispatch.claim.before")),
        ("producers_race_for_a_key", lambda books: _set(books, "producer", 1, pause_at="dispatch.enqueue.before#1")),
    ],
)
def test_the_plan_decides_what_must_have_come_out(name: str, change: Plan, booked: Study) -> None:
    """The same records under another plan are findings: nothing was learned from the records themselves, or by heart."""
    books = booked.books(name)
    change(books)
    assert books.findings() != []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("scan", "stop", "the program 'scenarios.dispatch' with 'stop' is one that the audit does not follow"),
        ("--receiver", "--recipient", "the option '--recipient' is one that the audit does not know"),
        ("1000", "soon", "--now 'soon' is no plain number"),
        ("--now", "--books", "is one that the audit does not follow"),
    ],
)
def test_what_the_audit_cannot_follow_it_says(old: str, new: str, words: str, booked: Study) -> None:
    books = booked.books("poison_row")
    _argument(books, "scheduler", 1, old, new)
    found = books.findings()
    assert "first illegal step (step 5): protocol: step 5: " in found[0]
    assert words in found[0]


def test_acts_routes_and_servers_that_the_audit_does_not_know_it_says(booked: Study) -> None:
    for name, process, old, new, words in (
        ("purge_is_audited", "operator", "purge", "events", "the operator's command 'events 0"),
        ("poison_row", "scheduler", "receiver.localhost={receiver.port}", "localhost={receiver.port}", "the host receiver.loc"),
        (
            "poison_row",
            "producer",
            "http://receiver.localhost/operations",
            "http://localhost/operations",
            "leads to no receiver",
        ),
        ("poison_row", "receiver", "--dir", "--folder", "the server 'receiver' is none that a scan is known to send to"),
        ("storage_is_acknowledged", "producer", "/operations", "operations", "the notify command refuses"),
        ("storage_is_acknowledged", "producer", "--ack-token", "--body", "is no object in JSON"),
    ):
        books = booked.books(name)
        _argument(books, process, 1, old, new)
        assert any(words in each for each in books.findings()), (words, books.findings())


def test_a_pause_that_is_never_reached_is_told(booked: Study) -> None:
    for name, process in (("ack_loses_to_claim", "consumer"), ("recorded_slow_scan", "receiver")):
        books = booked.books(name)
        point = books.step(process)["pause_at"].partition("#")[0]
        books.step(process)["pause_at"] = f"{point}#9"
        words = f"asks that '{process}' stands at its pause, but the books do not bring it there"
        assert any(words in each for each in books.findings()), books.findings()


def test_who_waits_for_ever_is_told(booked: Study) -> None:
    books = booked.books("producers_race_for_a_key")
    resumed = [step for step in books.plan["steps"] if step["do"] == "resume"][-1]
    resumed["process"] = "nobody"
    assert any("asks that 'producer' has ended, but the books" in each for each in books.findings())


def test_the_earliest_step_is_told_first(booked: Study) -> None:
    books = booked.books("poison_row")
    books.rows("end")[0]["kind"] = "other"
    books.rows("after_the_first_scan")[0]["kind"] = "other"
    found = books.findings()
    assert found[0] == (
        "dispatch/poison_row: the first illegal step (step 6): scenarios/dispatch/poison_row/exports/after_the_first_scan.json "
        "dispatch_outbox[0].kind: is 'other', but the processes wrote 'study'"
    )


@pytest.mark.parametrize("name", ["disk_full_at_claim", "disk_full_at_outcome"])
def test_a_killed_server_leaves_what_a_full_disk_leaves(name: str, booked: Study) -> None:
    """No transaction that was begun can be committed, and none can begin until the server is there again."""
    books = booked.books(name)
    steps: list[Row] = books.plan["steps"]
    at = next(number for number, step in enumerate(steps) if step["do"] == "limit_files")
    steps[at] = {"do": "kill_database"}
    found = books.findings()
    assert "the database server is not there to be asked" in found[0]
    export = next(number for number, step in enumerate(steps) if step["do"] == "export")
    steps[export : export + 1] = [{"do": "start_database"}, steps[export]]
    for later in books.processes:
        later["step"] += later["step"] > export
    assert books.findings() == []


def test_a_server_that_comes_back_does_not_bring_a_transaction_back(booked: Study) -> None:
    books = booked.books("disk_full_at_claim")
    steps: list[Row] = books.plan["steps"]
    at = next(number for number, step in enumerate(steps) if step["do"] == "limit_files")
    books.step("scheduler")["pause_at"] = "dispatch.claim.written#1"
    steps[at : at + 1] = [{"do": "kill_database"}, {"do": "start_database"}]
    for later in books.processes:
        later["step"] += later["step"] > at
    assert books.findings() == []

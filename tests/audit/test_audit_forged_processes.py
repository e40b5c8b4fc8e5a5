"""Careful forgeries of processes: how they were started, how they ended, what they said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.audit.catalogue import TALLY
from tests.audit.conftest import Audit
from tests.audit.forge import Archive
from tests.audit.forgeries import KD, RR, UD, Edit, Forgeries

FORGERIES = Forgeries()

# Processes.


@FORGERIES.enter("is 12, but step 4 of the protocol asks for 0")
def exit_code_edited(archive: Archive) -> None:
    archive.process(KD, "dispatcher", 2)["exit_code"] = 12


@FORGERIES.enter("was armed")
def halt_without_fault(archive: Archive) -> None:
    archive.process(KD, "dispatcher", 2)["exit_code"] = 23


@FORGERIES.enter("a fault was armed: expected 23")
def fault_that_did_not_fire(archive: Archive) -> None:
    archive.process(KD, "dispatcher", 1)["exit_code"] = 0


@FORGERIES.enter("does not end with the witness line 'halt(23) at send.response#1'")
def witness_removed(archive: Archive) -> None:
    archive.process(KD, "dispatcher")["stderr"] = "a warning\n"


@FORGERIES.enter("has the witness line of a halt, though no fault was armed")
def witness_added(archive: Archive) -> None:
    archive.process(KD, "producer")["stderr"] = "halt(23) at send.response#1\n"


@FORGERIES.enter("the process 'dispatcher' of step 4 is missing")
def process_removed(archive: Archive) -> None:
    archive.processes.remove(archive.process(KD, "dispatcher", 2))
    archive.finish()


@FORGERIES.enter("was started by no step")
def process_added(archive: Archive) -> None:
    last = archive.process(KD, "dispatcher", 2)
    archive.processes.insert(archive.processes.index(last) + 1, {**last, "incarnation": 3, "step": 6, "pid": 9999})
    archive.finish()


@FORGERIES.enter("stands after a later one, or twice")
def processes_swapped(archive: Archive) -> None:
    archive.processes[1], archive.processes[2] = archive.processes[2], archive.processes[1]


@FORGERIES.enter("pid")
def pid_shared(archive: Archive) -> None:
    archive.processes[1]["pid"] = archive.processes[0]["pid"]


@FORGERIES.enter("by the order of the steps it comes after")
def times_out_of_order(archive: Archive) -> None:
    archive.process(KD, "dispatcher", 2)["started_seconds"] = 0.001


@FORGERIES.enter("is before started_seconds")
def ends_before_it_starts(archive: Archive) -> None:
    archive.process(KD, "producer")["ended_seconds"] = 0.0


@FORGERIES.enter("expected 'READY 127.0.0.1:")
def another_port_is_ready(archive: Archive) -> None:
    archive.process(KD, "receiver")["ready"] = "READY 127.0.0.1:1"


@FORGERIES.enter("expected exactly one of them")
def exit_code_and_signal(archive: Archive) -> None:
    archive.process(KD, "producer")["signal"] = "SIGKILL"


def _shift(archive: Archive, scenario: str, seconds: float) -> None:
    for process in archive.processes:
        if process["scenario"] == f"delivery/{scenario}":
            process["started_seconds"] += seconds
            process["ended_seconds"] += seconds


@FORGERIES.enter("delivery/unkeyed_delivery began at 1.01, when 1 before it were not over, but the run had --jobs 1")
def a_scenario_too_many_at_a_time(archive: Archive) -> None:
    _shift(archive, KD, 0.98)


@FORGERIES.enter("when 2 before it were not over, but the run had --jobs 2")
def scenarios_out_of_order(archive: Archive) -> None:
    archive.run["jobs"] = 2
    _shift(archive, RR, 0.02 - 2.0)


@FORGERIES.enter("had the ready READY 127.0.0.1:40000 at the same time")
def two_servers_with_one_port(archive: Archive) -> None:
    archive.run["jobs"] = 2
    _shift(archive, KD, 0.98)
    for process in archive.processes:
        if process["scenario"] == f"delivery/{UD}":
            process["substitutions"] = {name: "40000" for name in process["substitutions"]}
            process["ready"] = process["ready"] and "READY 127.0.0.1:40000"


@FORGERIES.enter("but the run took 1.5")
def a_process_ends_after_the_run(archive: Archive) -> None:
    archive.run["wall_seconds"] = 1.5


@FORGERIES.enter("of 2 processors, but it lived for 0.005000 s")
def more_processor_time_than_there_was(archive: Archive) -> None:
    archive.process(KD, "producer")["resources"]["user_cpu_seconds"] = 0.2


@FORGERIES.enter("is no port of five digits")
def a_port_of_four_digits(archive: Archive) -> None:
    for process in archive.processes:
        process["substitutions"] = {name: "4000" for name in process["substitutions"]}
        process["ready"] = process["ready"] and "READY 127.0.0.1:4000"


def _edit_process(member: str, value: object, name: str = "dispatcher") -> Edit:
    return lambda archive: archive.process(KD, name).__setitem__(member, value)


for _member, _value, _words in (
    ("command", ["python", "-m", "outbox.dispatcher"], "asks for"),
    ("environment", {}, "asks for"),
    ("fault", {"point": "send.before", "occurrence": 1}, "asks for"),
    ("fault", {"point": "send.response", "occurrence": 2}, "own table"),
    ("fault", None, "23, the injected halt, though no fault was armed"),
    ("expected_exit", {"code": 0, "signal": None}, "asks for"),
    ("ended_by", "kill", "asks for"),
    ("ended_by", "nobody", "expected one of itself"),
    ("incarnation", 2, "asks for"),
    ("step", 2, "stands after"),
    ("process", "sender", "asks for"),
    ("scenario", "delivery/none", "was not selected"),
    ("stdout", "done\n", "a process that died printed nothing"),
    ("pid", 0, "expected an integer from 1"),
    ("pid", 2**31, "expected an integer from 1 that a process id can be"),
    ("pid", True, "expected an integer from 1"),
    ("started_seconds", "1", "expected a number"),
    ("substitutions", {}, "the command asks for"),
    ("substitutions", {"receiver.port": "70000"}, "is no port"),
    ("resources", {}, "the member is missing"),
    ("surplus", 1, "a member that the contract does not have"),
    ("ready", "READY 127.0.0.1:1", "expected null"),
):
    FORGERIES.change(f"process_{_member}_{_value}", _words, _edit_process(_member, _value))
FORGERIES.change("receiver_talks", "expected nothing", _edit_process("stdout", "hello\n", "receiver"))
FORGERIES.change(
    "producer_lies", "expected {'intention'", _edit_process("stdout", '{"intention":"other","created":true}\n', "producer")
)
FORGERIES.change("producer_is_silent", "is not the one JSON line", _edit_process("stdout", "", "producer"))


def _edit_summary(member: str) -> Edit:
    def edit(archive: Archive) -> None:
        process = archive.process(KD, "dispatcher", 2)
        process["stdout"] = json.dumps({**json.loads(process["stdout"]), member: 7}) + "\n"

    return edit


for _member in TALLY:
    FORGERIES.change(f"summary_{_member}", f"{_member} is 7", _edit_summary(_member))


@pytest.mark.parametrize("name", FORGERIES.by_name)
def test_a_careful_forgery_is_refused(name: str, archive: Archive, judge: Audit, tmp_path: Path) -> None:
    FORGERIES.refuse(name, archive, judge, tmp_path / "run")

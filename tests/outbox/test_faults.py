"""Fault points: what is armed halts there and nowhere else, what is not armed costs and changes nothing."""

import json
from collections import Counter
from pathlib import Path

import pytest

from outbox import faults
from outbox.errors import BadInput
from tests.outbox.world import World, python
from tests.support import ProcessBox

PROBE_A = faults.declare("probe.first", "a test is at its first place")
PROBE_B = faults.declare("probe.second", "a test is at its second place")


PROGRAMS = {"outbox.producer": ["--key", "k", "--body", "b"], "outbox.dispatcher": ["--receiver", "http://127.0.0.1:9"]}


@pytest.mark.parametrize("module", PROGRAMS)
@pytest.mark.parametrize("setting", ["no.such_point", "receipt.append.befor", "RECEIPT.APPEND.BEFORE"])
def test_an_unknown_point_is_refused_at_start_with_the_points_that_there_are(
    box: ProcessBox, tmp_path: Path, module: str, setting: str
) -> None:
    ended = box.run(module, ["--dir", str(tmp_path / "outbox"), *PROGRAMS[module]], {"HALT_AT": setting})
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert f"this program has no fault point {setting!r}" in ended.stderr
    for point in ("receipt.append.before", "send.response", "intentions.repair.synced"):
        assert point in ended.stderr
    assert not (tmp_path / "outbox").exists()


@pytest.mark.parametrize("module", PROGRAMS)
def test_the_point_of_another_program_is_unknown_here(tmp_path: Path, module: str) -> None:
    code = f"import sys; from {module} import main; sys.exit(main(sys.argv[1:]))"
    ended = python(code, "--dir", str(tmp_path / "outbox"), *PROGRAMS[module], HALT_AT="effect.append.before")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "this program has no fault point 'effect.append.before'" in ended.stderr


@pytest.mark.parametrize(
    "setting",
    [
        *("", " ", "#1", "send.before#", "send.before#0", "send.before#-1", "send.before#01", "send.before#x"),
        *("send.before#1#2", "send.before#1 ", "send.before#1\n", "send.before #1", "send.before#1000000000"),
        *("send.before#1.5", "send.before#\u0661"),
    ],
)
def test_a_malformed_setting_is_refused_at_start_and_nothing_is_done(world: World, setting: str) -> None:
    ended = world.produce(halt_at=setting)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "HALT_AT" in ended.stderr
    assert not world.outbox.exists()


def test_an_occurrence_halts_at_that_one_and_not_before(world: World) -> None:
    world.start_receiver()
    for number in range(1, 5):
        assert world.produce(f"turn-{number}").exit_code == 0
    ended = world.dispatch(halt_at="receipt.append.before#3")
    assert (ended.exit_code, ended.stderr) == (23, "halt(23) at receipt.append.before#3\n")
    assert [each["id"] for each in world.records("receipts")] == ["turn-1", "turn-2"]
    assert world.counts() == (3, 2, 2)


def test_an_occurrence_that_never_comes_halts_nothing(world: World) -> None:
    world.start_receiver()
    assert world.produce().exit_code == 0
    ended = world.dispatch(halt_at="receipt.append.before#2")
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert world.counts() == (1, 1, 1)


HALTING_PROGRAM = """
import atexit, sys, threading
from pathlib import Path
from outbox import faults
marks = Path(sys.argv[1])
faults.declare("probe.here", "in the middle")
faults.arm_from_environment()
atexit.register(lambda: (marks / "atexit").touch())
threading.Thread(target=threading.Event().wait).start()  # an ordinary exit would wait for it for ever
unflushed = (marks / "unflushed").open("w")
unflushed.write("still in the buffer")
print("still in the buffer of standard output", end="")
try:
    faults.reach("probe.here")
finally:
    (marks / "finally").touch()
"""


def test_halting_runs_no_finally_no_atexit_and_flushes_nothing(tmp_path: Path) -> None:
    ended = python(HALTING_PROGRAM, str(tmp_path), HALT_AT="probe.here")
    assert (ended.returncode, ended.stdout, ended.stderr) == (23, "", "halt(23) at probe.here#1\n")
    assert [path.name for path in tmp_path.iterdir()] == ["unflushed"]
    assert (tmp_path / "unflushed").read_bytes() == b""


def test_halting_needs_nobody_who_reads_its_witness() -> None:
    code = (
        "import os; from outbox import faults; faults.declare('probe.here', ''); os.close(2); "
        "faults.arm_from_environment(); faults.reach('probe.here')"
    )
    ended = python(code, HALT_AT="probe.here")
    assert (ended.returncode, ended.stderr) == (23, "")


def test_nothing_armed_does_nothing_and_an_armed_point_leaves_the_others_alone() -> None:
    faults.reach(PROBE_A)
    faults.reach(None)
    faults.reach("never.declared")
    assert not faults.is_watched(PROBE_A)
    seen: list[faults.Fault] = []
    faults.arm(faults.Fault(PROBE_A, 2), seen.append)
    assert (faults.is_watched(PROBE_A), faults.is_watched(PROBE_B), faults.is_watched(None)) == (True, False, False)
    faults.reach(PROBE_B)
    faults.reach(PROBE_A)
    assert seen == []
    faults.reach(PROBE_A)
    faults.reach(PROBE_A)
    assert seen == [faults.Fault(PROBE_A, 2)]
    faults.disarm()
    assert not faults.is_watched(PROBE_A)


@pytest.mark.parametrize(
    "name", ["probe", "Probe.first", "probe.", ".probe", "probe first.x", "probe.1", "probe..x", "", "probe.x\n"]
)
def test_a_name_that_is_not_dotted_lower_case_words_cannot_be_declared(name: str) -> None:
    with pytest.raises(ValueError, match="dotted lower-case words"):
        faults.declare(name, "anything")
    assert name not in faults.declared()


def test_a_point_cannot_be_declared_twice() -> None:
    with pytest.raises(ValueError, match="declared twice"):
        faults.declare(PROBE_A, "again")
    assert faults.declared()[PROBE_A] == "a test is at its first place"


@pytest.mark.parametrize(("setting", "occurrence"), [(PROBE_A, 1), (f"{PROBE_A}#1", 1), (f"{PROBE_A}#12", 12)])
def test_a_setting_reads_back_as_point_and_occurrence(setting: str, occurrence: int) -> None:
    fault = faults.parse(setting)
    assert (fault, str(fault)) == (faults.Fault(PROBE_A, occurrence), f"{PROBE_A}#{occurrence}")


def test_no_variable_arms_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HALT_AT", raising=False)
    faults.arm_from_environment()
    assert not faults.is_watched(PROBE_A)
    monkeypatch.setenv("HALT_AT", "no.such_point")
    with pytest.raises(BadInput, match="no fault point"):
        faults.arm_from_environment()


OBSERVED_PASS = """
import asyncio, json, sys
from collections import Counter
from pathlib import Path
from outbox import dispatcher, faults
from outbox.workflow import Intention, submit
seen = Counter()
faults.observe(lambda point: seen.update([point]))
directory = Path(sys.argv[1])
for key in ("a", "b"):
    submit(directory, Intention(key, "/operations", b"{}"))
summary = asyncio.run(dispatcher.dispatch(directory, sys.argv[2]))
assert summary.delivered == 2
print(json.dumps(seen))
"""


def test_observing_a_fault_free_pass_lists_each_point_as_often_as_it_was_reached(world: World) -> None:
    world.start_receiver()
    ended = python(OBSERVED_PASS, str(world.outbox), world.url)
    assert (ended.returncode, ended.stderr) == (0, "")
    stages = ("before", "torn", "written", "synced")
    expected = Counter(
        {f"{kind}.append.{stage}": 2 for kind in ("intention", "attempt", "receipt", "history") for stage in stages}
    )
    expected.update(
        {f"{name}.create.{stage}": 1 for name in ("intentions", "attempts", "receipts", "history") for stage in stages}
    )
    for name in ("intentions", "attempts", "receipts", "history"):
        del expected[f"{name}.create.torn"]
    expected.update({"send.before": 2, "send.response": 2})
    assert Counter(json.loads(ended.stdout)) == expected
    assert world.counts() == (2, 2, 2)

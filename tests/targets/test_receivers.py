"""The battery finds in our own counterexamples what each of them shows, and nothing grave in the keyed receiver."""

import asyncio
import re
import signal
import sys
from pathlib import Path

import psutil
import pytest

from outbox.errors import BadInput
from tests.support import ROOT, ProcessBox
from tests.targets.receivers import checked, mistaken, own, program, target

KEYED_POLICY = 'other_body = "409"\nin_flight = "wait"\nkey_max_length = 255'


@pytest.mark.campaign
def test_the_keyed_receiver_meets_all_that_is_grave(tmp_path: Path) -> None:
    found = checked(target(tmp_path, own("keyed"), policy=KEYED_POLICY))

    assert found.code == 0
    assert {name for name, line in found.results.items() if line["verdict"] == "violated"} == {"members-reordered"}
    struck = [line["fault"]["where"] for name, line in found.results.items() if name.startswith("killed-at-call:")]
    assert {"write receiver/effects.jsonl", "fsync receiver/effects.jsonl", "sendto to the client"} <= set(struck)


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("kind", "expectation", "severity"),
    [
        ("unkeyed", "replay", "duplicated"),
        ("unkeyed", "concurrent-duplicates", "duplicated"),
        ("key-then-effect", "killed-at-call", "lost"),
        ("effect-then-key", "killed-at-call", "duplicated"),
        ("volatile-registry", "restart-after-success", "duplicated"),
        ("volatile-registry", "killed-after-success", "duplicated"),
    ],
)
def test_a_counterexample_is_caught(tmp_path: Path, kind: str, expectation: str, severity: str) -> None:
    found = checked(target(tmp_path, own(kind)), expectation)

    assert found.code == 1
    assert found.severities(expectation) == {severity}


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("variant", "severities"),
    [
        ("stuck-in-progress", {"stuck"}),
        ("stored-error", {"stuck"}),
        ("error-text", {"stuck"}),
        ("warming", set()),
    ],
)
def test_a_mistake_that_a_death_brings_to_light_is_caught(tmp_path: Path, variant: str, severities: set[str]) -> None:
    found = checked(target(tmp_path, mistaken(variant)), "killed-at-call")

    assert found.code == int(bool(severities))
    assert found.severities("killed-at-call") == severities


@pytest.mark.campaign
@pytest.mark.parametrize("expectation", ["concurrent-duplicates", "concurrent-answers", "in-flight"])
def test_looking_before_acting_is_caught_by_a_crowd(tmp_path: Path, expectation: str) -> None:
    found = checked(target(tmp_path, program("slow_receiver.py")), expectation)

    assert found.code == 1
    assert found.severities(expectation) == {"duplicated"}


@pytest.mark.campaign
@pytest.mark.parametrize(("declared", "code", "severity"), [(100.0, 1, {"duplicated"}), (60.0, 0, set())])
def test_a_key_that_is_forgotten_too_early_is_a_duplicate(
    tmp_path: Path, declared: float, code: int, severity: set[str]
) -> None:
    command = own("forgetful", "--retention-seconds", "60", "--clock", "{dir}/clock")
    file = target(tmp_path, command, policy=f'retention_seconds = {declared}\nclock = "CLOCK"')

    kept, over = checked(file, "retention-kept"), checked(file, "retention-over")

    assert (kept.code, kept.severities("retention-kept")) == (code, severity)
    assert (over.code, over.severities("retention-over")) == (0, {"style"})


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("never-ready", "did not become ready within 2 s"),
        ("exits-23-at-once", "ended by itself with exit code 23, before it was ready"),
        ("exits-23", "ended by itself with exit code 23, and nothing had been done to it"),
        ("forks-away", "went into the background"),
        ("listens-elsewhere", r"listens on 127\.0\.0\.1:\d+ and not on"),
        ("never-answers", "has no answer"),
        ("refuses", "is answered 404"),
        ("counts-nothing", "counted wrongly: 0 before one operation that was answered 200, 0 after it"),
        ("counts-twice", "counted wrongly: 0 before one operation that was answered 200, 2 after it"),
        ("fills-the-disk", "fills the disk"),
    ],
)
def test_a_receiver_that_is_none_is_no_finding(tmp_path: Path, mode: str, told: str) -> None:
    seconds = 6.0 if mode == "listens-elsewhere" else 2.0

    with pytest.raises(BadInput, match=told) as caught:
        checked(target(tmp_path, program("bad_receiver.py"), mode=mode, ready_seconds=seconds), "replay")

    assert str(tmp_path / "target.toml") in str(caught.value)


@pytest.mark.campaign
def test_one_that_does_not_heed_sigterm_is_killed_and_noted(tmp_path: Path) -> None:
    found = checked(target(tmp_path, program("bad_receiver.py"), mode="ignores-sigterm"), "restart-after-success")

    line = found.results["restart-after-success"]
    assert (line["verdict"], line["severity"]) == ("violated", "lost")  # it has all in memory, the count, too
    assert any("does not end by SIGTERM" in note for note in line["notes"])


@pytest.mark.parametrize(
    ("effects", "told"),
    [
        ('url = "/effects"\npointer = "/total"', "effects.pointer '/total': there is no 'total'"),
        ('url = "/nowhere"', "GET /nowhere answered 404"),
        ('sql = "sqlite:{dir}/nothing.db:select 1"', "there is no file"),
        ('command = ["sh", "-c", "echo many"]', "expected a number and exit code 0, got exit code 0 and 'many'"),
    ],
)
@pytest.mark.campaign
def test_effects_that_cannot_be_counted_are_no_finding(tmp_path: Path, effects: str, told: str) -> None:
    with pytest.raises(BadInput, match=re.escape(told)):
        checked(target(tmp_path, own("keyed"), effects=effects), "replay")


def test_a_receiver_without_keys_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = checked(target(tmp_path, own("unkeyed")), "replay")

    assert found.code == 1
    assert found.results["replay"]["effects"] == {"before": 2, "after": 4}
    assert "DUPLICATED replay (study)" in capsys.readouterr().out


@pytest.mark.campaign
def test_one_place_can_be_struck_again(tmp_path: Path) -> None:
    found = checked(target(tmp_path, own("effect-then-key")), "killed-at-call:write#3")

    assert found.code == 1
    assert list(found.results) == ["killed-at-call:write#3"]
    assert found.results["killed-at-call:write#3"]["fault"]["where"] == "write receiver/keys.jsonl"
    folder = tmp_path / "out-killed-at-call_write#3" / "cases" / "killed-at-call_write_3"
    assert "signal SIGKILL" in (folder / "output" / "process-1.txt").read_text()
    assert (folder / "state" / "receiver" / "effects.jsonl").exists()


@pytest.mark.campaign
def test_a_receiver_that_runs_already_is_left_running(tmp_path: Path) -> None:
    with ProcessBox() as box:
        running = box.start("receivers", ["unkeyed", "--dir", str(tmp_path / "receiver")])
        file = target(tmp_path, [])
        file.write_text(file.read_text().replace("command = []", f'url = "{running.url}"'))
        found = checked(file)
        assert running.running

    assert found.code == 1
    assert found.severities("replay") == {"duplicated"}
    assert {line["seen"].partition(" (url)")[0] for name, line in found.results.items() if "killed" in name} == {
        "the receiver runs already"
    }


@pytest.mark.campaign
async def test_a_stop_leaves_nothing_alive_and_no_manifest(tmp_path: Path) -> None:
    file = target(tmp_path, own("keyed"))
    out = tmp_path / "out"
    command = [sys.executable, str(ROOT / "run.py"), "check", "receiver", str(file), "--out", str(out)]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    while b"killed-after-success" not in await process.stderr.readline():
        pass
    started = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    _stdout, stderr = await process.communicate()

    assert process.returncode == 3
    assert b"incomplete check" in stderr
    assert not psutil.wait_procs(started, timeout=5)[1]
    assert len(started) > 1
    assert not (out / "manifest.json").exists()
    assert not (out / "stands").exists()

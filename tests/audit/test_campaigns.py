"""The audit of campaigns: real ones pass, and whatever is edited in them and sealed again does not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from audit.archive import Report
from audit.campaign_words import SUBJECTS, declared
from audit.findings import FAIL, PASS, UNKNOWN
from audit.hashing import digest
from audit.inventory import Checkout
from audit.strict_json import encode
from tests.audit.campaigns import OPTIONS, Forger, changed, leaves, pins, play
from tests.audit.real import document
from tests.evidence.schemas import CAMPAIGN
from tests.support import ROOT

CAMPAIGNS = (*OPTIONS, "violated")
pytestmark = pytest.mark.campaign
Edit = Callable[[Forger], None]
Edits = Callable[[Forger], list[tuple[str, Edit]]]


@pytest.fixture(scope="session")
def campaigns(frozen: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    base = tmp_path_factory.mktemp("campaigns")
    return {name: play(frozen, base / name, name) for name in CAMPAIGNS}


@pytest.fixture(scope="session")
def forgers(campaigns: dict[str, Path], frozen: Path) -> dict[str, Forger]:
    checkout = Checkout(str(frozen))
    return {name: Forger(folder, checkout) for name, folder in campaigns.items()}


@pytest.fixture
def _lenient(monkeypatch: pytest.MonkeyPatch, forgers: dict[str, Forger]) -> None:
    """The audit knows the subject of the violated campaign as it was explored."""
    subject = forgers["violated"].json("plan.json")["subjects"][0]
    monkeypatch.setitem(SUBJECTS, subject["name"], digest(encode(subject).encode()))


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "audit/audit.py", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("name", OPTIONS)
def test_a_campaign_whose_cases_held_passes(forgers: dict[str, Forger], name: str) -> None:
    report = forgers[name].judge()
    assert (report.verdict, [str(each) for each in report.findings]) == (PASS, [])
    assert report.totals["cases"] == report.totals["held"] > 0
    assert report.totals["kept"] == (0 if name == "failed" else report.totals["cases"])


@pytest.mark.usefixtures("_lenient")
def test_a_campaign_that_found_violations_fails_in_words_of_its_own(forgers: dict[str, Forger]) -> None:
    report = forgers["violated"].judge()
    assert report.verdict == FAIL
    assert report.totals["violated"] > 0
    assert report.totals["kept"] == report.totals["violated"]
    assert {each.subject for each in report.findings} == {"violated"}
    assert report.campaign.startswith("the evidence agrees with itself, and")


def test_a_subject_that_is_softened_after_the_fact_is_another_than_the_audit_knows(forgers: dict[str, Forger]) -> None:
    report = forgers["violated"].judge()
    assert report.verdict == FAIL
    assert any("the audit knows it as" in each.sentence for each in report.findings)
    assert report.campaign == "the evidence does not agree with itself"


def test_a_subject_that_the_audit_does_not_know_leaves_it_unknown(
    forgers: dict[str, Forger], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(SUBJECTS, "journal/unkeyed")
    report = forgers["wire"].judge()
    assert report.verdict == UNKNOWN
    assert "its own word" in report.findings[0].sentence


def test_the_subjects_and_points_that_the_audit_knows_are_those_that_there_are() -> None:
    assert pins() == SUBJECTS
    # Asked of another process: what is declared in this one depends on which tests ran in it before.
    listed = subprocess.run([sys.executable, "run.py", "points", "--json"], cwd=ROOT, capture_output=True, check=True)
    assert declared() == sorted(each["point"] for each in json.loads(listed.stdout))


def test_campaigns_are_as_their_schemas_say(forgers: dict[str, Forger]) -> None:
    valid = {name: Draft202012Validator(schema) for name, (schema, _) in CAMPAIGN.items()}
    for forger in forgers.values():
        documents = [("campaign-manifest", forger.json("manifest.json")), ("campaign-plan", forger.json("plan.json"))]
        documents += [("campaign-result", line) for line in forger.lines("results.jsonl")]
        names = [name for name in forger.json("manifest.json")["files"] if name.endswith("processes.json")]
        documents += [("campaign-processes", forger.json(name)) for name in names]
        assert [error.message for name, value in documents for error in valid[name].iter_errors(value)][:3] == []


def test_a_campaign_without_a_manifest_is_unknown_beside_archives_too(campaigns: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(campaigns["failed"], tmp_path / "evidence" / "explore")
    (tmp_path / "evidence" / "explore" / "manifest.json").unlink()
    done = command(str(tmp_path / "evidence"))
    assert done.returncode == 3, done.stdout
    assert "UNKNOWN" in done.stdout
    assert "--resume" in done.stdout


def test_the_command_tells_a_campaign_in_text_json_and_at_length(campaigns: dict[str, Path], frozen: Path) -> None:
    shutil.copytree(ROOT / "audit", frozen / "audit", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    for option in ((), ("--json",), ("--explain",)):
        done = subprocess.run(
            [sys.executable, "audit/audit.py", str(campaigns["wire"]), *option],
            cwd=frozen, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        if option == ("--json",):
            assert json.loads(done.stdout)["archives"][0]["totals"]["held"] == 6
        else:
            assert "the evidence agrees with itself: 6 cases (6 held), 6 derived from their files" in done.stdout
            assert ("planted" in done.stdout) == (option == ("--explain",))


def test_two_campaigns_of_one_plan_are_equal_but_for_the_volatile_fields(
    campaigns: dict[str, Path], frozen: Path, tmp_path: Path
) -> None:
    other = play(frozen, tmp_path / "again", "pauses")
    same = command(str(campaigns["pauses"]), "--compare", str(other))
    assert same.returncode == 0, same.stdout
    lines = (other / "results.jsonl").read_text().replace('"rounds":1', '"rounds":2', 1)
    (other / "results.jsonl").write_text(lines)
    different = command(str(campaigns["pauses"]), "--compare", str(other))
    assert different.returncode == 1
    assert "line 1 rounds" in different.stdout
    assert command(str(campaigns["pauses"]), "--compare", str(campaigns["wire"])).returncode == 1


def refused(forger: Forger, what: str, edit: Edit) -> str | None:
    """What was edited, where the audit let it pass."""
    with forger.edited(edit) as report:
        told = report.campaign == "the evidence does not agree with itself" or not report.campaign
        return None if report.verdict == FAIL and told else f"{what}: {report.verdict}"


def each_document(name: str, places: Callable[[Any], list[Any]]) -> Callable[[Forger], list[tuple[str, Edit]]]:
    def edits(forger: Forger) -> list[tuple[str, Edit]]:
        value = forger.json(name)

        def at(place: Any) -> Edit:
            return lambda forger: forger.write(name, document(changed(value, place)))

        return [(f"{name} {place}", at(place)) for place in places(value)]

    return edits


def of_results(forger: Forger) -> list[tuple[str, Edit]]:
    """Every member of the last kept case's line; lines left out, twice, exchanged."""
    lines = forger.lines("results.jsonl")
    all_kept = forger.json("plan.json")["keep"] == "all"
    kept = [at for at, line in enumerate(lines) if all_kept or line["verdict"] != "held"]

    def member(at: int, place: Any) -> Edit:
        return lambda forger: forger.results([*lines[:at], changed(lines[at], place), *lines[at:][1:]])

    found = [(f"line {at} {place}", member(at, place)) for at in kept[-1:] for place in leaves(lines[at])]
    orders = {
        "the first left out": lines[1:], "the last left out": lines[:-1], "the last twice": [*lines, lines[-1]],
        "two exchanged": [lines[1], lines[0], *lines[2:]],
    }  # fmt: skip

    def ordered(told: list[Any]) -> Edit:
        return lambda forger: forger.results(told)

    return found + [(what, ordered(told)) for what, told in orders.items()]


def of_plan(forger: Forger) -> list[tuple[str, Edit]]:
    """Every member of the plan, in plan.json and in the manifest alike. A budget that was not reached says nothing."""
    plan, manifest = forger.json("plan.json"), forger.json("manifest.json")

    def at(place: Any) -> Edit:
        def edit(forger: Forger) -> None:
            told = changed(plan, place)
            forger.write("plan.json", document(told))
            forger.write("manifest.json", document({**manifest, "plan": told}))

        return edit

    def store(forger: Forger) -> None:
        told = {**plan, "store": None if plan["store"] is None else "postgres"}
        forger.write("plan.json", document(told))
        forger.write("manifest.json", document({**manifest, "plan": told}))

    found = [(f"plan {place}", at(place)) for place in leaves(plan)]
    return [("another store", store), *found] if plan["store"] else found


def of_manifest(forger: Forger) -> list[tuple[str, Edit]]:
    manifest = forger.json("manifest.json")
    names = ("format_version", "derived", "declared", "totals", "verdict")
    places = [place for name in names for place in leaves(manifest[name], (name,))]
    return each_document("manifest.json", lambda _: places)(forger)


def of_points(forger: Forger) -> list[tuple[str, Edit]]:
    """Every list of points of a run without faults and of the first case: a line less, another, one more."""
    names = [name for name in forger.json("manifest.json")["files"] if "/points/" in name]
    found = []
    for name in [name for name in names if name.startswith(("baseline", "cases/000000"))]:
        lines = (forger.folder / name).read_bytes().splitlines(keepends=True)
        other = b"history.append.synced\n" if lines[0] != b"history.append.synced\n" else b"send.before\n"
        for what, told in (("less", lines[:-1]), ("another", [other, *lines[1:]]), ("more", [*lines, lines[-1]])):
            found.append((f"{name} {what}", _writing(name, b"".join(told))))
        found.append((f"{name} taken away", _writing(name, None)))
    return found


def _writing(name: str, data: bytes | None) -> Edit:
    return lambda forger: forger.write(name, data)


def of_journals(forger: Forger) -> list[tuple[str, Edit]]:
    """Every third member of the journals of a kept case and of the states that its deaths left, with new sums."""
    names = [name for name in forger.json("manifest.json")["files"] if name.endswith(".jsonl") and "/" in name]
    first = min(name.split("/")[1] for name in names if name.startswith("cases/"))
    found: list[tuple[str, Edit]] = []

    def at(name: str, place: Any) -> Edit:
        return lambda forger: forger.journal(name, changed(forger.lines(name), place))

    for name in names:
        if name.startswith(f"cases/{first}/") and (lines := forger.lines(name)):
            places = [place for place in leaves(lines) if place[1] not in ("sha256", "previous", "sequence")]
            found += [(f"{name} {place}", at(name, place)) for place in places if not _is_size(place)]
            found.append((f"{name} without its end", lambda forger, n=name, k=lines: forger.journal(n, k[:-1])))  # type: ignore[misc]
            found.append((f"{name} taken away", _writing(name, None)))
    return found


def _is_size(place: Any) -> bool:
    return str(place[-1]).endswith("_bytes")


VOLATILE = ("substitutions", "ready", "pid", "started_seconds", "ended_seconds", "resources")
WORDS = ("stdout", "stderr", "exit_code")
"""What a program printed is its own word; of it only the witness lines are held. An exit code decides whether a round was the
last: others that decide the same are not told apart."""


def of_processes(forger: Forger) -> list[tuple[str, Edit]]:
    names = [name for name in forger.json("manifest.json")["files"] if name.endswith("processes.json") and "cases/" in name]
    name = names[-1]
    value = forger.json(name)
    places = [place for place in leaves(value) if place[2:3] and place[2] not in (*VOLATILE, *WORDS)]
    return each_document(name, lambda _: places)(forger)


def of_exports(forger: Forger) -> list[tuple[str, Edit]]:
    names = [each for each in forger.json("manifest.json")["files"] if each.endswith(("exports/end.json", "tables.json"))]
    found = []
    for name in [name for name in names if name.startswith(("cases/000020", "cases/000028"))]:
        found += each_document(name, lambda value: list(leaves(value)))(forger)
    return found


EDITS: tuple[tuple[str, Callable[[Forger], list[tuple[str, Edit]]]], ...] = (
    ("points", of_results), ("wire", of_results), ("pauses", of_results), ("violated", of_results), ("points", of_plan),
    ("wire", of_plan), ("points", of_manifest), ("points", of_points), ("violated", of_journals), ("wire", of_journals),
    ("points", of_exports), ("points", of_processes), ("pauses", of_processes), ("violated", of_processes),
    ("lines", of_results), ("lines", of_processes),
)  # fmt: skip


@pytest.mark.parametrize("witness", ["halt(23) at {} in ", "halt(23) at {}", "halt(23) at {}1 in main", "in main"])
def test_who_dies_at_a_line_says_in_which_function(forgers: dict[str, Forger], witness: str) -> None:
    forger, name = forgers["lines"], "cases/000000/processes.json"
    told = forger.json(name)
    dead = next(each for each in told["processes"] if each["exit_code"] == 23)
    setting = dead["environment"]["HALT_AT_LINE"]
    assert dead["stderr"].startswith(f"halt(23) at {setting} in ")
    dead["stderr"] = witness.format(setting) + "\n"
    with forger.edited(lambda forger: forger.write(name, document(told))) as report:
        assert report.verdict == FAIL
        assert any("witness line" in each.sentence for each in report.findings)


EVERY = int(os.environ.get("EVERY_EDIT", "12"))
"""Of so many edits one is made, and of results every one; EVERY_EDIT=1 makes them all, which takes a minute."""


@pytest.mark.usefixtures("_lenient")
@pytest.mark.parametrize(("name", "edits"), EDITS, ids=[f"{edits.__name__} of {name}" for name, edits in EDITS])
def test_every_edit_is_refused(
    forgers: dict[str, Forger], name: str, edits: Callable[[Forger], list[tuple[str, Edit]]]
) -> None:
    forger = forgers[name]
    found = edits(forger)[:: 1 if edits is of_results else EVERY]
    assert len(found) > 3
    print(f"{len(found)} edits")
    passed = [told for what, edit in found if (told := refused(forger, what, edit)) is not None]
    assert passed == [], f"{len(passed)} of {len(found)}"


def doubted(forger: Forger, *, given_up: bool) -> None:
    lines, manifest = forger.lines("results.jsonl"), forger.json("manifest.json")
    lines[0].update(verdict="unknown", doubts=["round 1: the dispatcher was to end and did not"])
    manifest["totals"].update(held=manifest["totals"]["held"] - 1, unknown=1)
    manifest["verdict"] = "UNKNOWN"
    if given_up:
        lines[0]["processes"] -= 1
        manifest["totals"]["processes"] -= 1
        processes = forger.json("cases/000000/processes.json")
        processes["processes"].pop()
        forger.write("cases/000000/processes.json", document(processes))
    forger.results(lines)
    forger.write("manifest.json", document(manifest))


@pytest.mark.parametrize("given_up", [False, True])
def test_a_case_in_doubt_leaves_a_campaign_unknown_also_where_it_was_given_up(
    forgers: dict[str, Forger], given_up: bool
) -> None:
    with forgers["pauses"].edited(lambda forger: doubted(forger, given_up=given_up)) as report:
        assert report.verdict == UNKNOWN, [str(each) for each in report.findings]
        assert report.campaign == "the evidence agrees with itself"
        assert [each.subject for each in report.findings] == ["unknown"]


def test_of_cases_that_were_not_kept_a_line_must_be_possible(forgers: dict[str, Forger]) -> None:
    forger = forgers["failed"]
    lines = forger.lines("results.jsonl")
    last = lines[-1]
    impossible: dict[str, dict[str, Any]] = {
        "an effect too many": {"counts": {**last["counts"], "effects": 3}},
        "no receipt": {"counts": {**last["counts"], "receipts": 0}},
        "nobody died": {"deaths": []},
        "another died": {"deaths": [{**last["deaths"][0], "process": "dispatcher"}]},
        "no round": {"rounds": 1},
        "held with a violation": {"violations": ["lost: first was promised and has 0 effects"], "kinds": ["lost"]},
        "violated, and nothing kept": {
            "verdict": "violated", "violations": ["lost: first was promised and has 0 effects"], "kinds": ["lost"],
        },
    }  # fmt: skip
    for what, told in impossible.items():
        assert refused(forger, what, lambda forger, told=told: forger.results([*lines[:-1], {**last, **told}])) is None, what  # type: ignore[misc]


def test_a_held_case_is_not_kept_and_a_violated_one_is(forgers: dict[str, Forger]) -> None:
    forger = forgers["violated"]
    names = [name for name in forger.json("manifest.json")["files"] if name.startswith("cases/")]
    folder = names[0].split("/")[1]

    def gone(forger: Forger) -> None:
        for name in names:
            if name.startswith(f"cases/{folder}/"):
                forger.write(name, None)

    assert refused(forger, "gone", gone) is None
    extra = (forger.folder / names[0]).read_bytes()
    assert refused(forger, "held and kept", lambda forger: forger.write("cases/000000/processes.json", extra)) is None


def test_a_counter_that_is_blind_is_found(forgers: dict[str, Forger]) -> None:
    forger = forgers["failed"]
    name = "baseline/journal/keyed/run-{}/receiver/effects.jsonl"
    first = (forger.folder / name.format(1)).read_bytes()
    with forger.edited(lambda forger: forger.write(name.format(2), first)) as report:
        assert any("the counter is blind" in each.sentence for each in report.findings)


def test_a_counter_that_is_blind_to_a_duplicate_is_found(forgers: dict[str, Forger]) -> None:
    forger = forgers["failed"]
    name = "baseline/journal/keyed/run-2/{}receiver/effects.jsonl"
    planted = (forger.folder / name.format("")).read_bytes()
    with forger.edited(lambda forger: forger.write(name.format("twice/"), planted)) as report:
        assert any(each.sentence.endswith("the counter is blind to a duplicate") for each in report.findings)
    with forger.edited(lambda forger: forger.write(name.format("twice/").replace("effects", "arrivals"), planted)) as report:
        assert any("is no copy of that of run-2" in each.sentence for each in report.findings)
    with forger.edited(lambda forger: forger.write(name.format("twice/"), None)) as report:
        assert report.verdict == FAIL


def grown(forger: Forger, count: int) -> None:
    """As if the last point had been reached so often, and every case of it had held."""
    lines, manifest = forger.lines("results.jsonl"), forger.json("manifest.json")
    point, process = lines[-1]["deaths"][0]["point"], lines[-1]["deaths"][0]["process"]
    del manifest["plan"]["budget"]
    plan = {**forger.json("plan.json"), "budget": len(lines) + count}
    points = manifest["derived"][0]["points"][0][process]
    more = [json.loads(json.dumps(lines[-1]).replace(f"{point}#1", f"{point}#{n + 2}")) for n in range(count)]
    for number, line in enumerate(more, 2):
        line["deaths"][0]["occurrence"] = number
    names = list(points)
    points[point] += count
    for run in (1, 2):
        name = f"baseline/journal/keyed/run-{run}/points/1.{process}"
        listed = (forger.folder / name).read_bytes().decode()
        forger.write(name, (listed + f"{point}\n" * count).encode())
    assert names == list(points)
    manifest["plan"] = plan
    for total, each in (("cases", count), ("held", count), ("processes", count * lines[-1]["processes"])):
        manifest["totals"][total] += each
    forger.write("plan.json", document(plan))
    forger.results([*lines, *more])
    forger.write("manifest.json", document(manifest))


def test_memory_does_not_grow_with_the_number_of_cases(forgers: dict[str, Forger], monkeypatch: pytest.MonkeyPatch) -> None:
    forger, peaks = forgers["failed"], []

    def measured() -> Report:
        tracemalloc.start()
        report = Forger.judge(forger)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        return report

    monkeypatch.setattr(forger, "judge", measured)
    counts = 3000, 8000
    for count in counts:
        with forger.edited(lambda forger, count=count: grown(forger, count)) as report:  # type: ignore[misc]
            assert (report.verdict, [str(each) for each in report.findings]) == (PASS, [])
            assert report.totals["cases"] == 12 + count
    size = len(json.dumps(forger.lines("results.jsonl")[-1]))
    assert peaks[1] - peaks[0] < (counts[1] - counts[0]) * size / 2, peaks


@pytest.mark.parametrize("fault", ["none", "cut-request:start"])
def test_a_cut_that_the_relay_did_not_do_is_found(forgers: dict[str, Forger], fault: str) -> None:
    """The first case cuts the first request at its start; as edited here, all of it went through."""

    def edit(forger: Forger) -> None:
        name = "cases/000000/relay/exchanges.jsonl"
        records = forger.lines(name)
        records[0]["data"] |= {"fault": fault, "request_forwarded_bytes": records[0]["data"]["request_bytes"]}
        forger.journal(name, records)

    with forgers["wire"].edited(edit) as report:
        assert report.verdict == FAIL
        assert any("cut-request:start was to be done to connection 1 and was not" in each.sentence for each in report.findings)

"""Careful forgeries of checkpoints, results, tables, manifest and protocol."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit.catalogue import NOTHING
from tests.audit.conftest import Audit
from tests.audit.forge import Archive
from tests.audit.forgeries import RU, Edit, Forgeries

FORGERIES = Forgeries()

# Checkpoints.

COPY = "scenarios/delivery/receiver_unavailable/checkpoints/after_refusal/"


@FORGERIES.enter("more than the")
def checkpoint_holds_more(archive: Archive) -> None:
    archive.journals[f"{COPY}outbox/attempts.jsonl"] = [*archive.journal(RU, "attempts"), *archive.journal(RU, "attempts")]


@FORGERIES.enter("is no prefix of")
def checkpoint_differs(archive: Archive) -> None:
    archive.journals[f"{COPY}outbox/attempts.jsonl"][1]["data"]["reason"] = "unreachable"


@FORGERIES.enter("holds 0 effects, 1 receipts")
def checkpoint_counts(archive: Archive) -> None:
    archive.journals[f"{COPY}outbox/receipts.jsonl"] = archive.journal(RU, "receipts")


@FORGERIES.enter("has 1 records, but the steps before the check wrote 2 to 2")
def checkpoint_lacks_an_outcome(archive: Archive) -> None:
    archive.journals[f"{COPY}outbox/attempts.jsonl"].pop()


@FORGERIES.enter("has 3 records, but the steps before the check wrote 2 to 2")
def checkpoint_is_ahead(archive: Archive) -> None:
    archive.journals[f"{COPY}outbox/attempts.jsonl"] = archive.journal(RU, "attempts")


@FORGERIES.enter("the copy is missing")
def checkpoint_file_missing(archive: Archive) -> None:
    del archive.journals[f"{COPY}receiver/effects.jsonl"]


@FORGERIES.enter("is an extra file")
def checkpoint_nobody_took(archive: Archive) -> None:
    archive.journals["scenarios/delivery/keyed_delivery/checkpoints/x/outbox/receipts.jsonl"] = []


# Conveniences and the manifest.


RESULTS: tuple[tuple[str, object, str], ...] = (
    ("counts", {**NOTHING, "effects": 2}, "but the journals have"),
    ("expected", NOTHING, "scenarios[3].expected"),
    ("shows", "Something else.", "scenarios[3].shows"),
    ("counterexample", True, "scenarios[3].counterexample"),
    ("checks", [], "the protocol has 1 checks"),
    ("checks", [{"name": "x", "expected": NOTHING, "counts": NOTHING}], "but the protocol has 'after_refusal'"),
    ("problems", ["It rained."], "scenarios[3].problems"),
    ("verdict", "FAIL", "scenarios[3].verdict"),
    ("scenario", "delivery/keyed_delivery", "scenarios[3].scenario"),
)


def _edit_results(member: str, value: object) -> Edit:
    return lambda archive: archive.results["scenarios"][3].__setitem__(member, value)


for _name, _other, _words in RESULTS:
    FORGERIES.change(f"results_{_name}_{_words}", _words, _edit_results(_name, _other))


@FORGERIES.enter("totals.records: is 1, but the archive has")
def totals_edited(archive: Archive) -> None:
    archive.results["totals"]["records"] = 1


@FORGERIES.enter("verdict: is 'FAIL'")
def verdict_edited(archive: Archive) -> None:
    archive.results["verdict"] = "FAIL"


@FORGERIES.enter("has 4 entries, but 5 scenarios")
def result_removed(archive: Archive) -> None:
    archive.results["scenarios"].pop()


@FORGERIES.enter("has the counts ['9', '1', '1', '2']")
def tables_edited(archive: Archive) -> None:
    archive.tables = (archive.tables or "").replace("| 1 | 1 | 1 | 2 |", "| 9 | 1 | 1 | 2 |", 1)


@FORGERIES.enter("names a counterexample where there is none, or does not")
def tables_hide_the_counterexample(archive: Archive) -> None:
    archive.tables = (archive.tables or "").replace(" (counterexample)", "")


@FORGERIES.enter("expected one for each of")
def tables_lack_a_row(archive: Archive) -> None:
    archive.tables = "\n".join(line for line in (archive.tables or "").split("\n") if "key_conflict" not in line)


@FORGERIES.enter("is pinned as")
def protocol_changed(archive: Archive) -> None:
    archive.protocol["scenarios"][0]["shows"] = archive.results["scenarios"][0]["shows"] = "Something else."


@FORGERIES.enter("but the audit knows [1]")
def protocol_of_another_version(archive: Archive) -> None:
    archive.protocol["version"] = 2


@FORGERIES.enter("the audit's own table has 1 effects")
def protocol_expects_something_else(archive: Archive) -> None:
    archive.protocol["scenarios"][0]["expected"]["effects"] = 2


@FORGERIES.enter("is not in the protocol")
def protocol_without_a_scenario(archive: Archive) -> None:
    archive.protocol["scenarios"].pop()


@FORGERIES.enter("which are not scenarios of the protocol in its order")
def selection_turned(archive: Archive) -> None:
    archive.selection.reverse()


@FORGERIES.enter("expected one of fork, exec")
def run_by_another_spawn(archive: Archive) -> None:
    archive.run["spawn"] = "magic"


@FORGERIES.enter("run.packages: is empty, but the programs do not run without their dependencies")
def run_without_packages(archive: Archive) -> None:
    archive.run["packages"] = {}


@FORGERIES.enter("is an extra file")
def extra_file(archive: Archive) -> None:
    archive.extra["notes.txt"] = b"hello"


@FORGERIES.enter("the journal is missing")
def empty_journal_missing(archive: Archive) -> None:
    del archive.journals["scenarios/delivery/key_conflict/outbox/receipts.jsonl"]


@FORGERIES.enter("the lock file is missing")
def lock_missing(archive: Archive) -> None:
    del archive.extra["scenarios/delivery/key_conflict/outbox/dispatcher.lock"]


@FORGERIES.enter("the lock file has 1 bytes")
def lock_filled(archive: Archive) -> None:
    archive.extra["scenarios/delivery/key_conflict/outbox/dispatcher.lock"] = b"x"


@pytest.mark.parametrize("name", FORGERIES.by_name)
def test_a_careful_forgery_is_refused(name: str, archive: Archive, judge: Audit, tmp_path: Path) -> None:
    FORGERIES.refuse(name, archive, judge, tmp_path / "run")

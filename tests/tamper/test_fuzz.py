"""A short stretch of `python -m tests.tamper.fuzz`, and the trees that take no time."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audit.records import SHAPES
from audit.strict_json import Malformed, encode, parse_document
from tests.audit.forge import REPOSITORY
from tests.audit.real import document
from tests.tamper.draft import PROCESSES
from tests.tamper.fuzz import SCENARIO, SCENARIOS, fuzz, says_the_same
from tests.tamper.ground import Field
from tests.tamper.mutate import MUTATIONS, Mutation
from tests.tamper.trees import TREES, strange_trees

SLOW = ("100,000 extra files", "an endless line", "six million empty arrays in the results")


@pytest.mark.campaign
def test_whatever_is_in_an_archive_the_audit_ends_with_a_verdict(ground_of: Field) -> None:
    found = fuzz(ground_of, inputs=1000, seed=23, scenarios=tuple(ground_of.whole.names))
    assert found.bad == []
    assert found.inputs == 1000
    assert found.verdicts.keys() <= {"PASS", "FAIL", "UNKNOWN"}


def test_the_scenarios_have_every_kind_of_journal_between_them() -> None:
    study = REPOSITORY / "evidence" / "study" / "scenarios"
    paths = [path for name in SCENARIOS for path in (study / name).rglob("*") if path.is_file()]
    assert {path.stem for path in paths if path.suffix == ".jsonl"} == set(SHAPES)
    assert any("checkpoints" in path.parts for path in paths)
    found = {json.loads(line)["type"] for path in paths if path.suffix == ".jsonl" for line in path.read_text().splitlines()}
    assert found == {kind for kinds in SHAPES.values() for kind in kinds}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"incarnation": 1,', b'"incarnation": 1.0,'),
        (b'"incarnation": 1,', b'"incarnation": true,'),
        (b'"process": "receiver",\n   "incarnation": 1,', b'"incarnation": 1,\n   "process": "receiver",'),
        (b'"format_version": 1,', b'"format_version": true,'),
    ],
)
def test_what_equals_in_python_is_not_the_same(ground_of: Field, before: bytes, after: bytes) -> None:
    ground = ground_of.ground(SCENARIO)
    data = ground.base.files[PROCESSES]
    assert before in data
    changed = data.replace(before, after, 1)
    assert not says_the_same(ground, {PROCESSES: changed})
    assert ground.audit({PROCESSES: changed}).verdict == "FAIL"


def test_another_pid_is_the_same(ground_of: Field) -> None:
    ground = ground_of.ground(SCENARIO)
    data = json.loads(ground.base.files[PROCESSES])
    data["processes"][0]["pid"] += 1
    assert says_the_same(ground, {PROCESSES: document(data)})


@pytest.mark.parametrize("name", sorted(TREES.keys() - set(SLOW)))
def test_a_strange_tree_is_refused(name: str, ground_of: Field) -> None:
    told, bad = strange_trees(ground_of.ground(SCENARIO), (name,))
    assert bad == []
    assert list(told) == [name]


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.binary(max_size=400) | st.text(max_size=200).map(lambda text: ('{"a":' + text + "}\n").encode("utf-8", "surrogatepass"))
)
def test_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        document = parse_document(data)
    except Malformed:
        return
    assert parse_document(encode(document).encode() + b"\n") == document


@pytest.mark.parametrize("mutation", list(dict.fromkeys(MUTATIONS)))
def test_a_mutation_takes_any_bytes(mutation: Mutation) -> None:
    for data in (b"", b"\n", b'{"a":1}\n{"b":[2]}\n'):
        for seed in range(20):
            assert mutation(data, random.Random(seed)) == mutation(data, random.Random(seed))

"""A short stretch of `python -m tests.tamper.fuzz`, and the trees that take no time."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audit.strict_json import Malformed, encode, parse_document
from tests.tamper.fuzz import SCENARIO, fuzz
from tests.tamper.ground import Field
from tests.tamper.mutate import MUTATIONS, Mutation
from tests.tamper.trees import TREES, strange_trees

SLOW = ("100,000 extra files", "an endless line")


def test_whatever_is_in_an_archive_the_audit_ends_with_a_verdict(ground_of: Field) -> None:
    found = fuzz(ground_of, inputs=500, seed=23)
    assert found.bad == []
    assert found.inputs == 500
    assert found.verdicts.keys() <= {"PASS", "FAIL", "UNKNOWN"}


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

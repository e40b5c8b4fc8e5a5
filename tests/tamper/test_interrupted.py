"""A few runs ended at seeded moments; fifty are ended by `python -m tests.tamper.interrupted`."""

from __future__ import annotations

import pytest

from tests.tamper.interrupted import interrupt


@pytest.mark.campaign
def test_a_run_that_was_ended_leaves_nothing_that_passes() -> None:
    found = interrupt(times=4, seed=23, only=("delivery/keyed_delivery", "delivery/unkeyed_delivery"))
    assert found.bad == []
    assert sum(found.verdicts.values()) + found.without_directory == 4
    assert found.reruns == 1

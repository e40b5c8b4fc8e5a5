"""The page of checks says what there is: the battery, the fields of a target file, the options, the verdicts."""

from __future__ import annotations

import dataclasses
import re

from scenarios.targets import documented, model, verdicts
from scenarios.targets.derive import MODES
from tests.docs.documents import DOCS, code_words

TEXT = (DOCS / "check.md").read_text("utf-8")


def test_the_battery_is_the_one_that_is_played() -> None:
    assert documented.update(TEXT) == TEXT, "run: python -m scenarios.targets.documented docs/check.md"
    assert documented.table() in TEXT


def test_every_field_of_a_worker_every_mode_verdict_claim_and_severity_is_told() -> None:
    words = set(code_words(TEXT)) | set(re.findall(r"^\| ([\w-]+) \|", TEXT, re.MULTILINE))
    for name in (*MODES, *model.CLAIMS, *verdicts.WORKER_VERDICTS, *(each.name for each in dataclasses.fields(model.Worker))):
        assert name in words, name
    assert all(severity in TEXT.lower() for severity in verdicts.SEVERITIES)

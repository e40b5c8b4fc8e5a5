"""What the audit lets pass, and why: each edit that may survive has its reason here, and anything else is a gap.

A reason names kinds, files and places by patterns. Volatile leaves are told apart: `evidence/README.md` lists them, and what
holds them is their type, their order and their agreement with each other, not their value.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.tamper.edits import Edit


class Reason(NamedTuple):
    """Patterns for kind, file and place, and why an edit that they match may pass."""

    kind: str
    file: str
    place: str
    why: str


APART = {
    "volatile": "it differs from run to run, and this value is as possible as the one before",
}
REASONS: tuple[Reason, ...] = ()


def reason_for(edit: Edit) -> str | None:
    """Why an edit may pass; None where it must not."""
    if edit.apart:
        return APART[edit.apart]
    for reason in REASONS:
        patterns = zip(reason[:3], (edit.kind, edit.file, edit.place), strict=True)
        if all(re.fullmatch(pattern, text) for pattern, text in patterns):
            return reason.why
    return None

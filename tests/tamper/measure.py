"""The measurement: which of the edits the audit refuses, by kind and by how careful the forger was.

Edits are judged in the part of the archive that holds their scenario. An edit of a journal that passes there is judged
once more in the whole archive, which has more to hold it against; only what passes there as well has survived. A sample of
the refused ones is taken to the whole archive, too, to see that a part does not refuse what the whole lets pass, and a sample
of the edits of the documents is made in the whole archive alone.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.audit.forge import REPOSITORY
from tests.tamper.draft import Draft
from tests.tamper.edits import Edit, edits_of, edits_of_documents
from tests.tamper.ground import Changes, Field, Ground
from tests.tamper.legal import Pool, legal_edits
from tests.tamper.pairs import pairs_of
from tests.tamper.reasons import reason_for

CARES = ("a", "b", "c")
APART = ("volatile: ",)
PAIR_SHARE = 5.0
"""Two-field forgeries are few: this many times the share of the single edits is tried."""
WHOLE_SHARE = 0.02
"""Of the edits of the documents of the whole archive, which were all made in parts as well, this part of the share is tried."""


@dataclass
class Figures:
    """What was made, what was refused, what survived."""

    made: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    survivors: Counter[tuple[str, str, str | None]] = field(default_factory=Counter)
    """By care, edit in words, and reason."""
    unforeseen: list[str] = field(default_factory=list)
    cross_checked: int = 0
    cross_passed: list[str] = field(default_factory=list)

    def held(self, care: str) -> tuple[int, int]:
        """Made and refused, of edits that are not counted apart."""
        kinds = [kind for kind, each in self.made if each == care and not kind.startswith(APART)]
        return sum(self.made[kind, care] for kind in kinds), sum(self.refused[kind, care] for kind in kinds)

    def bad(self) -> list[str]:
        """Everything that must not be."""
        gaps = [f"({care}) {words} passes" for care, words, why in self.survivors if why is None]
        return [*gaps, *self.unforeseen, *self.cross_passed]

    def data(self) -> dict[str, Any]:
        rows = [{"kind": k, "care": c, "made": n, "refused": self.refused[k, c]} for (k, c), n in sorted(self.made.items())]
        left = [{"care": c, "edit": e, "reason": why, "times": n} for (c, e, why), n in sorted(self.survivors.items(), key=str)]
        return {
            "rows": rows, "survivors": left, "unforeseen": self.unforeseen,
            "cross_checked": self.cross_checked, "cross_passed": self.cross_passed,
        }  # fmt: skip


def measure(
    folder: Path, share: float, seed: int, *, legal: float = 0.0, cross: float = 0.002, checkout: Path = REPOSITORY
) -> Figures:
    """Make a share of all edits of an archive, and of all legal ones, and judge them."""
    chance = random.Random(seed)
    figures = Figures()
    with Field(folder, checkout) as field_:
        pool = Pool(field_.whole) if legal else None
        for name in field_.whole.names:
            first = name == field_.whole.names[0]
            base = field_.ground(name).base
            for edit in _chosen(legal_edits(base, pool, chance, first), chance, legal) if pool else ():
                _try(edit, field_, figures, chance.random() < cross)
            for edit in _chosen(edits_of(base, first), chance, share):
                _try(edit, field_, figures, chance.random() < cross)
            for edit in pairs_of(base, chance, min(1.0, share * PAIR_SHARE)):
                _try(edit, field_, figures, chance.random() < cross)
        whole = field_.ground(*field_.whole.names)
        real_tables = (field_.whole.folder / "tables.md").read_bytes()
        for edit in _chosen(edits_of_documents(whole.base, real_tables), chance, share * WHOLE_SHARE):
            _try(edit, field_, figures, False)
    return figures


def _chosen(edits: Iterator[Edit], chance: random.Random, share: float) -> Iterator[Edit]:
    return (edit for edit in edits if chance.random() < share)


def _try(edit: Edit, field_: Field, figures: Figures, cross: bool) -> None:
    """One edit at every care; a care that makes no difference to the one before is not judged again."""
    ground = field_.ground(*edit.names)
    before: Changes | None = None
    passed = False
    for care in CARES:
        changes = changed(edit, ground, care)
        if not changes:
            continue  # made good again by the forger's own care
        if changes != before:
            passed = _passes(edit, ground, changes, figures)
            if edit.file.startswith("scenarios/") and len(edit.names) < len(field_.whole.names) and (passed or cross):
                whole = field_.ground(*field_.whole.names)
                everywhere = _passes(edit, whole, changed(edit, whole, care), figures)
                figures.cross_checked += not passed
                if everywhere and not passed:
                    figures.cross_passed.append(f"({care}) {edit} passes in the whole archive, and not in a part")
                passed = everywhere
        before = changes
        row = (f"{edit.apart}: {edit.kind}" if edit.apart else edit.kind, care)
        figures.made[row] += 1
        figures.refused[row] += not passed
        if passed:
            figures.survivors[care, words(edit), reason_for(edit)] += 1


def words(edit: Edit) -> str:
    """An edit without the name of its scenario."""
    parts = edit.file.split("/")
    file = "/".join(["…", *parts[3:]]) if parts[0] == "scenarios" and len(parts) > 3 else edit.file
    return f"{edit.kind}: {file} {edit.place}".rstrip()


def changed(edit: Edit, ground: Ground, care: str) -> Changes:
    draft = Draft(ground.base)
    edit.apply(draft)
    return draft.sealed(care)


def _passes(edit: Edit, ground: Ground, changes: Changes, figures: Figures) -> bool:
    try:
        report = ground.audit(changes)
    except Exception as error:
        figures.unforeseen.append(f"{edit}: the audit ended with {type(error).__name__}: {error}")
        return False
    return report.verdict == "PASS"

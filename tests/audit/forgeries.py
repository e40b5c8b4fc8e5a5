"""How a careful forgery is entered and judged: an edit of an archive's values, and a part of the finding it leads to.

Every checksum, chain and hash is computed anew after the edit, so that the audit has to see through what is said.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.audit.conftest import Audit
from tests.audit.forge import Archive

Edit = Callable[[Archive], object]
KD, UD, RR, RU, KC = "keyed_delivery", "unkeyed_delivery", "keyed_receiver_restart", "receiver_unavailable", "key_conflict"


class Forgeries:
    """A list of forgeries by name."""

    def __init__(self) -> None:
        self.by_name: dict[str, tuple[Edit, str]] = {}

    def enter(self, sentence: str) -> Callable[[Edit], Edit]:
        """Enter a function under its name."""

        def entered(edit: Edit) -> Edit:
            self.change(edit.__name__, sentence, edit)
            return edit

        return entered

    def change(self, name: str, sentence: str, edit: Edit) -> None:
        """Enter an edit under a name."""
        assert name not in self.by_name, name
        self.by_name[name] = (edit, sentence)

    def refuse(self, name: str, archive: Archive, judge: Audit, folder: Path) -> None:
        """Make the forgery and hold that the audit refuses it for the right reason."""
        edit, sentence = self.by_name[name]
        edit(archive)
        report = judge(archive.write(folder))
        found = [str(finding) for finding in report.findings]
        assert report.verdict == "FAIL"
        assert any(sentence in finding for finding in found), found
        assert not any("foresaw" in finding for finding in found), found

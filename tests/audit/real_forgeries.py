"""How a careful forgery of a real archive is entered and judged: a scenario, an edit of it, a part of the finding."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

from audit.archive import Report
from tests.audit.conftest import Audit
from tests.audit.forge import Record, sha
from tests.audit.real import Part, Whole

Edit = Callable[[Part], object]
NOBODY = sha(b"nobody sent this")


class RealForgeries:
    """A list of forgeries by name."""

    def __init__(self) -> None:
        self.by_name: dict[str, tuple[str, str, Edit]] = {}

    def enter(self, scenario: str, sentence: str) -> Callable[[Edit], Edit]:
        """Enter a function as a forgery of a scenario that leads to a finding with these words."""

        def entered(edit: Edit) -> Edit:
            self._add(edit.__name__, scenario, sentence, edit)
            return edit

        return entered

    def _add(self, name: str, scenario: str, sentence: str, edit: Edit) -> None:
        assert name not in self.by_name, name
        self.by_name[name] = (scenario, sentence, edit)

    def member(  # noqa: PLR0917 (rows of a table)
        self, scenario: str, path: str, line: int, name: str, value: object, sentence: str
    ) -> None:
        """Enter the change of one member of one record."""
        words = f"{scenario} {path}:{line} {name}={value}"
        self._add(words, scenario, sentence, lambda part: part.data(path, line).__setitem__(name, value))

    def of_process(  # noqa: PLR0917 (rows of a table)
        self, scenario: str, process: str, incarnation: int, name: str, value: object, sentence: str
    ) -> None:
        """Enter the change of one member of one process."""
        words = f"{scenario} {process} {incarnation} {name}={value}"
        self._add(words, scenario, sentence, lambda part: part.process(process, incarnation).__setitem__(name, value))

    def told(  # noqa: PLR0917 (rows of a table)
        self, scenario: str, process: str, incarnation: int, name: str, value: int, sentence: str
    ) -> None:
        """Enter the change of one number of a dispatcher's summary."""

        def edit(part: Part) -> None:
            record = part.process(process, incarnation)
            record["stdout"] = json.dumps({**json.loads(record["stdout"]), name: value}) + "\n"

        self._add(f"{scenario} {process} {incarnation} says {name}={value}", scenario, sentence, edit)

    def refuse(self, name: str, whole: Whole, judge: Audit, folder: Path) -> None:
        """Make the forgery and hold that the audit refuses it, names the scenario and says the right thing."""
        scenario, sentence, edit = self.by_name[name]
        part = whole.part(scenario)
        edit(part)
        report = judged(part, judge, folder)
        found = [str(finding) for finding in report.findings]
        assert report.verdict == "FAIL"
        assert any(finding.startswith(scenario) and sentence in finding for finding in found), "\n".join(found)


def judged(part: Part, judge: Audit, folder: Path) -> Report:
    """The report on a part."""
    report = judge(part.write(folder))
    assert not any("foresaw" in str(finding) for finding in report.findings)
    return report


def again(record: Record, identifier: str, **change: object) -> Record:
    """A copy of a record with another id and other members."""
    copied = deepcopy(record)
    return {**copied, "id": identifier, "data": {**copied["data"], **change}}


def digest_of(effect: Record) -> str:
    """The hash of an effect's result."""
    return hashlib.sha256(effect["data"]["result"]["content"].encode()).hexdigest()

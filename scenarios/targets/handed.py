"""A finished check as others read it back: its plan, its summary, its lines, and which of its windows are findings.

Whoever hands a check on (JUnit, a folder that stands alone, the track record) reads it from its folder, so it may be done at
any time later, and by somebody else.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from outbox.errors import BadInput
from scenarios.engine.evidence import MANIFEST
from scenarios.targets import verdicts
from scenarios.targets.results import PLAN, RESULTS, SUMMARY, WORKER


@dataclass(frozen=True)
class Handed:
    """The check in `folder`."""

    folder: Path
    plan: Mapping[str, Any]
    summary: Mapping[str, Any]

    @property
    def is_worker(self) -> bool:
        """Whether it is of a worker, else of a receiver."""
        return bool(self.summary["kind"] == WORKER)

    @cached_property
    def lines(self) -> Mapping[str, Mapping[str, Any]]:
        """Every line by the name of its case or expectation."""
        return {line["case" if self.is_worker else "expectation"]: line for line in self._read()}

    def _read(self) -> Iterator[dict[str, Any]]:
        with (self.folder / RESULTS).open("rb") as file:
            yield from map(json.loads, file)

    def is_finding(self, window: Mapping[str, Any]) -> bool:
        """Whether a window goes against what is claimed or expected."""
        if self.is_worker:
            return window["verdict"] in verdicts.breaks(self.summary["claims"])
        return bool(window["fails"])

    def is_in_doubt(self, window: Mapping[str, Any]) -> bool:
        """Whether a window leaves the check in doubt."""
        if self.is_worker:
            return bool(window["verdict"] == verdicts.UNKNOWN)
        return window["verdict"] == verdicts.UNCLEAR and window["severity"] in verdicts.GRAVE

    @property
    def allowed(self) -> list[str]:
        """The verdicts of a worker's cases that go with its claim."""
        bad = (*verdicts.breaks(self.summary["claims"]), verdicts.UNKNOWN)
        return [each for each in verdicts.WORKER_VERDICTS if each not in bad]

    def findings(self) -> list[Mapping[str, Any]]:
        """The windows that are findings, the worst first."""
        return [window for window in self.summary["windows"] if self.is_finding(window)]


def read(folder: Path) -> Handed:
    """Read a check's folder. Raises BadInput for one that is none, or was interrupted."""
    try:
        plan, summary = (json.loads((folder / name).read_bytes()) for name in (PLAN, SUMMARY))
        if not (folder / MANIFEST).is_file():
            raise BadInput(f"{folder}: it has no {MANIFEST}: the check was interrupted; begin it again in a new folder")
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{folder}: it holds no finished check: {error}") from error
    return Handed(folder, plan, summary)

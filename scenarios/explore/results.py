"""Results as they come: one line a case in `results.jsonl`, in the order of the cases, whoever is ready first.

A line that is there is whole and was written by a campaign that went on to the next one; the last line of an interrupted
campaign may be torn and is cut off by whoever goes on. Memory holds only the results that wait for an earlier one.
"""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from outbox.errors import BadInput
from scenarios.explore.rounds import Played
from scenarios.explore.verdicts import VERDICTS

RESULTS = "results.jsonl"
MEMBERS = {"case", "verdict", "kinds", "violations", "doubts", "deaths", "counts", "rounds", "processes"}
DEATH = {"process", "point", "occurrence", "round", "left", "digest"}


def line(played: Played, *, reached: bool) -> dict[str, Any]:
    """The result of a case as a JSON value. With `reached` the points of each round are in it, for deeper cases."""
    state, verdict = played.state, played.verdict
    assert state is not None
    told: dict[str, Any] = {
        "case": str(played.case),
        "verdict": verdict.outcome,
        "kinds": list(verdict.kinds),
        "violations": [f"{violation.kind}: {violation.sentence}" for violation in verdict.violations],
        "doubts": list(verdict.doubts),
        "deaths": [
            {
                "process": left.death.process,
                "point": left.death.point,
                "occurrence": left.death.occurrence,
                "round": left.round,
                "left": left.state.told,
                "digest": left.state.digest,
            }
            for left in played.left
        ],
        "counts": {
            "effects": sum(state.effects.values()),
            "receipts": sum(state.receipts.values()),
            "history": sum(state.history.values()),
            "arrivals": state.arrivals,
        },
        "digest": state.digest,
        "rounds": played.rounds,
        "processes": len(played.processes),
    }
    if played.case.history is not None:
        told["history"] = played.case.history.history.data()
    if played.image is not None:
        told["image"] = {"left": played.image.told, "digest": played.image.digest}
    if reached:
        told["reached"] = [{process: dict(points) for process, points in each.items()} for each in played.reached]
    return told


class Results:
    """The file in `directory`, which has `known` results. They may be given out of order; they are written in order, each at
    once."""

    def __init__(self, directory: Path, known: int) -> None:
        self._file = (directory / RESULTS).open("ab")
        self._waiting: dict[int, dict[str, Any]] = {}
        self._next = known

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()

    def put(self, number: int, result: dict[str, Any]) -> None:
        """Give result `number` (from 0). Raises OSError where the machine refuses."""
        self._waiting[number] = result
        while self._next in self._waiting:
            text = json.dumps(self._waiting.pop(self._next), ensure_ascii=True, separators=(",", ":"))
            self._file.write(text.encode() + b"\n")
            self._file.flush()
            self._next += 1


def repair(directory: Path) -> int:
    """Cut off a last line that is torn; how many results there are. A campaign that died before its first has none."""
    path = directory / RESULTS
    path.touch()
    count = end = 0
    with path.open("r+b") as file:
        for text in file:
            if text.endswith(b"\n"):
                count, end = count + 1, end + len(text)
        file.truncate(end)
    return count


def read(directory: Path, first: int = 0, end: int | None = None) -> Iterator[dict[str, Any]]:
    """The results numbered `first` (from 0) to before `end`, as a stream. Raises BadInput for a line that is none."""
    path = directory / RESULTS
    with path.open("rb") as file:
        for number, text in enumerate(islice(file, first, end), first + 1):
            try:
                result = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise BadInput(f"{path}, line {number}: it is no result: {error}; begin a new campaign") from error
            if not _is_result(result):
                raise BadInput(f"{path}, line {number}: it is no result, its members are others; begin a new campaign")
            yield result


def _is_result(value: Any) -> bool:
    """Whether every member that a campaign goes on with is there and of its type."""
    return (
        isinstance(value, dict)
        and value.keys() >= MEMBERS
        and isinstance(value["case"], str)
        and value["verdict"] in VERDICTS
        and all(isinstance(value[name], list) for name in ("kinds", "violations", "doubts", "deaths"))
        and all(isinstance(death, dict) and death.keys() >= DEATH for death in value["deaths"])
        and isinstance(value["counts"], dict)
        and all(type(value[name]) is int for name in ("rounds", "processes"))
        and isinstance(value.get("reached", []), list)
    )

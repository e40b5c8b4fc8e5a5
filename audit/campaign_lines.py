"""One line of `results.jsonl`: its one form, and whether it can be true by itself.

That is all that can be asked of a case whose files were not kept: what the verdict, the deaths and the counts say must go with
each other, and with the faults that the case's name tells.
"""

from __future__ import annotations

from audit.campaign_verdicts import kinds, outcome
from audit.campaign_words import DEATH, HELD, KINDS, PAUSE, SPARE_ROUNDS, VIOLATED
from audit.campaign_words import UNKNOWN as IN_DOUBT
from audit.findings import show
from audit.shapes import COUNT, LIST, NAME, OBJECT, POSITIVE, SHA, TEXT, Kind, holds, list_of, one_of
from audit.strict_json import Malformed, compact, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.campaign_plan import Case
    from audit.findings import Note
    from audit.shapes import Shape

VIOLATION = Kind(
    "KIND: SENTENCE", lambda value: type(value) is str and value.partition(": ")[0] in KINDS and bool(value.partition(": ")[2])
)
LINE: Shape = {
    "case": NAME, "verdict": one_of(HELD, VIOLATED, IN_DOUBT), "kinds": list_of(one_of(*KINDS)),
    "violations": list_of(VIOLATION), "doubts": list_of(NAME), "deaths": LIST, "counts": OBJECT, "digest": SHA,
    "rounds": POSITIVE, "processes": COUNT,
}  # fmt: skip
OBSERVED: Shape = {"reached": list_of(OBJECT)}
TOLD: Shape = {"history": OBJECT}
IMAGE: Shape = {"left": TEXT, "digest": SHA}
DIED: Shape = {"process": NAME, "point": NAME, "occurrence": POSITIVE, "round": POSITIVE, "left": TEXT, "digest": SHA}
COUNTS: Shape = dict.fromkeys(("effects", "receipts", "history", "arrivals"), COUNT)


def read(data: bytes, complete: bool, more: Shape, note: Note, place: str) -> dict[str, Any] | None:
    """The result that a line holds, with `more` members; None, with findings, where it cannot be worked with."""
    if not complete:
        note(place, "the last line does not end with a newline")
    try:
        line = parse(data)
    except Malformed as problem:
        note(place, f"the line is no result: {problem}")
        return None
    image: Shape = {"image": OBJECT} if type(line) is dict and "image" in line else {}
    good = [holds(line, {**LINE, **more, **image}, note, f"{place} ")]
    if good[0]:
        good += [holds(each, DIED, note, f"{place} deaths[{at}]") for at, each in enumerate(line["deaths"])]
        good.append("image" not in line or holds(line["image"], IMAGE, note, f"{place} image"))
        good.append(holds(line["counts"], COUNTS, note, f"{place} counts"))
        good += [counted(each, note, f"{place} reached[{at}]") for at, each in enumerate(line.get("reached", []))]
    if not all(good):
        return None
    if compact(line).encode("ascii") != data:
        note(place, "the line is not in the one form that its result has")
    return line


def counted(reached: dict[str, Any], note: Note, place: str) -> bool:
    """Whether the points of a round are counts by process and point."""
    for process, points in reached.items():
        if type(points) is not dict or not all(POSITIVE.test(count) for count in points.values()):
            note(f"{place}.{show(process)[1:-1]}", f"is {show(points)}, expected how often each point was reached")
            return False
    return True


def hold(line: dict[str, Any], case: Case, note: Note, place: str) -> None:
    """Hold what a line says against itself and against the faults in the case's name."""
    followed = outcome(line["violations"], line["doubts"])
    if line["verdict"] != followed:
        note(f"{place} verdict", f"is {line['verdict']}, but its violations and doubts make it {followed}")
    if line["kinds"] != kinds(line["violations"]):
        note(f"{place} kinds", f"are {show(line['kinds'])}, but its violations are of {show(kinds(line['violations']))}")
    if case.history is not None:
        _deaths_of_history(line, case, note, place)
    elif not line["doubts"]:
        _deaths(line, case, note, place)
    bound = len(case.rounds) + SPARE_ROUNDS
    if line["rounds"] > bound or (not line["doubts"] and line["rounds"] < len(case.rounds)):
        note(f"{place} rounds", f"are {line['rounds']}, but there are at least {len(case.rounds)} and at most {bound}")
    if ("image" in line) != (case.power is not None):
        note(f"{place} image", "is told of where the power is cut, and nowhere else")
    played = line["rounds"] - (case.power is not None)
    if line["processes"] < played and not line["doubts"] and case.history is None:
        note(f"{place} processes", f"are {line['processes']}, fewer than the {played} rounds that were played")
    if "reached" in line and len(line["reached"]) != line["rounds"] and not line["doubts"]:
        note(f"{place} reached", f"tells of {len(line['reached'])} rounds, but there were {line['rounds']}")
    if line["verdict"] == HELD:
        _allowed(line, case, note, place)


def _deaths(line: dict[str, Any], case: Case, note: Note, place: str) -> None:
    """Without a doubt everybody died who was to die, where and when the name says, and nobody else."""
    told = [(each["round"], each["process"], each["point"], each["occurrence"]) for each in line["deaths"]]
    named = [(at, fault.process, fault.what, fault.number) for at, fault in case.faults(DEATH)]
    if sorted(told) != sorted(named) or [each[0] for each in told] != sorted(each[0] for each in told):
        note(f"{place} deaths", f"are {show(told)}, but the case's name has {show(named)}")
    if told and line["verdict"] == HELD and line["rounds"] <= told[-1][0]:
        note(f"{place} rounds", f"are {line['rounds']}, but the last death was in round {told[-1][0]} and was recovered from")


def _deaths_of_history(line: dict[str, Any], case: Case, note: Note, place: str) -> None:
    """Whoever died was struck there by a step, once for each step that strikes."""
    left = [(fault.process, fault.what, fault.number) for _, fault in case.faults(DEATH)]
    for each in line["deaths"]:
        told = (each["process"], each["point"], each["occurrence"])
        if told not in left:
            note(f"{place} deaths", f"have {show(told)}, but no step of the history strikes so, or it has struck before")
        else:
            left.remove(told)
    steps = [each["round"] for each in line["deaths"]]
    if steps != sorted(steps) or (steps and steps[-1] > len((case.history or {})["steps"])):
        note(f"{place} deaths", f"are in the steps {show(steps)}, but come in the order of the steps, and not in the recovery")


def _allowed(line: dict[str, Any], case: Case, note: Note, place: str) -> None:
    """A case that held has counts that its subject allows."""
    counts, promised, least = line["counts"], len(case.subject.operations), case.subject.allowed["least"]
    if case.subject.allowed["may_end"]:
        least = 0  # an operation may have been given up
    elif counts["receipts"] != promised:
        note(f"{place} counts.receipts", f"are {counts['receipts']}, but it held, with {promised} operations promised")
    if not promised * least <= counts["effects"] <= promised * case.most:
        said = f"are {counts['effects']}, but {promised * least} to {promised * case.most} are allowed, and the case held"
        note(f"{place} counts.effects", said)
    if counts["history"] < promised and case.subject.known:
        note(f"{place} counts.history", f"are {counts['history']}, fewer than the {promised} operations of a case that held")
    if case.subject.data["unfinished"] is None and case.subject.known and counts["history"] > promised:
        note(f"{place} counts.history", f"are {counts['history']}, more than one of each of the {promised} operations")
    if counts["arrivals"] < counts["effects"] and case.power is None:  # arrivals are not synced, effects are
        note(f"{place} counts.arrivals", f"are {counts['arrivals']}, fewer than the {counts['effects']} effects")
    # A program sends an operation once in each run of it, and who overtakes another is one run more.
    runs = (
        line["processes"]
        if case.history is not None
        else line["rounds"] * len(case.subject.data["roles"]) + len(case.faults(PAUSE))
    )
    if case.subject.known and counts["arrivals"] > promised * runs + case.copies:
        note(f"{place} counts.arrivals", f"are {counts['arrivals']}, more than its programs can have sent in their {runs} runs")
    if line["processes"] > runs:
        note(f"{place} processes", f"are {line['processes']}, more than the {runs} that its rounds can have started")

"""Audits a campaign: the cases that `run.py explore` derived, played and judged.

Three questions, in this order. Does the evidence agree with itself: files and hashes, the plan, the list of cases derived anew,
and every result, from the kept files wherever they are kept? Did any case break an invariant? Is anything unknown? A campaign
FAILs where the first answer is no or the second is yes, is UNKNOWN where the third is yes, and PASSes otherwise: all held.

Results are read as a stream, and held one by one. What grows with a campaign are the names of its files and, where it goes
deeper, the states that it met.
"""

from __future__ import annotations

from itertools import islice

from audit import (
    campaign_baseline,
    campaign_derive,
    campaign_history,
    campaign_kept,
    campaign_lines,
    campaign_plan,
    campaign_power,
    campaign_random,
    campaign_struck,
    inventory,
)
from audit.archive import Report, document
from audit.campaign_kept import Folder
from audit.campaign_plan import Case, Fault
from audit.campaign_play import Setting
from audit.campaign_state import States
from audit.campaign_words import (
    HELD,
    HISTORIES,
    KEEP_ALL,
    POWER,
    POWER_CUT,
    RANDOM,
    SUBJECTS,
    SYSCALLS,
    VIOLATED,
    declared,
)
from audit.campaign_words import UNKNOWN as IN_DOUBT
from audit.files import Tree, Unreadable
from audit.findings import FAIL, PASS, UNKNOWN, Findings, show
from audit.protocol import hold_run
from audit.shapes import COUNT, LIST, NAME, OBJECT, SHA, exactly, holds, list_of, map_of, one_of
from audit.strict_json import Malformed, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from audit.campaign_calls import Call
    from audit.campaign_plan import Subject
    from audit.findings import Note
    from audit.inventory import Checkout
    from audit.shapes import Shape

    Reached = dict[str, dict[str, int]]

MANIFEST, PLAN, RESULTS = "manifest.json", "plan.json", "results.jsonl"
SHAPE: Shape = {
    "format": exactly("halt23.campaign"), "format_version": exactly(1), "plan": OBJECT, "derived": LIST,
    "declared": list_of(NAME), "totals": OBJECT, "verdict": one_of(PASS, FAIL, UNKNOWN), "run": OBJECT,
    "sources": map_of(SHA), "files": map_of(OBJECT),
}  # fmt: skip
DERIVED: Shape = {"subject": NAME, "points": list_of(OBJECT), "digest": SHA, "doubts": list_of(NAME)}
RECORDED: Shape = {"calls": COUNT, "images": COUNT, "judged": COUNT}
TOTALS: Shape = {
    "cases": COUNT, "held": COUNT, "violated": COUNT, "unknown": COUNT, "pruned": COUNT, "processes": COUNT,
    "fired": list_of(NAME),
}  # fmt: skip
MOST_TOLD = 20
RUNS = ("run-1", "run-2", "calls-1", "calls-2")


class Campaign:
    """One campaign while it is held."""

    def __init__(self, tree: Tree, manifest: dict[str, Any], plan: dict[str, Any], subjects: list[Subject]) -> None:
        self.tree, self.manifest, self.plan, self.subjects = tree, manifest, plan, subjects
        self.findings = tree.findings
        self.states = States(tree)
        self.expected = {PLAN, RESULTS}
        self.totals = dict.fromkeys(("cases", "held", "violated", "unknown", "pruned", "processes", "kept"), 0)
        self.fired: set[str] = set()
        self.broken: list[str] = []
        self.violated: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        self.doubted: list[str] = []
        self._note = self.findings.about(RESULTS)
        self.folders = _folders(tree)
        self._lines = self._results(0, None)
        self._called: list[dict[str, list[Call]]] = []

    def run(self) -> None:
        """Hold every subject, its cases level by level, and that there are no others."""
        derived = self.manifest["derived"]
        names = [each["subject"] for each in derived]
        if names != [subject.name for subject in self.subjects]:
            self.findings.add(MANIFEST, "derived", f"is of {show(names)}, but the plan has other subjects")
            return
        if self.plan["mode"] == RANDOM and not any(each["doubts"] for each in derived):
            campaign_random.hold_canary(self)
        for subject, told in zip(self.subjects, derived, strict=True):
            reached = self._baseline(subject, told)
            if told["doubts"]:
                self.doubted += told["doubts"]
            elif reached is None or not self._explore(subject, reached):
                return
        if next(self._lines, None) is not None:
            self._note("", f"has more lines than the {self.totals['cases']} cases that the plan comes to")
        if self.plan["mode"] == RANDOM:
            campaign_random.hold_seeds(self)
        if not self.totals["cases"] and not self.doubted:
            self.doubted.append("no case was derived")

    def _baseline(self, subject: Subject, told: dict[str, Any]) -> list[Reached] | None:
        """Hold the runs without faults of a subject; the points of each round."""
        paths = [f"baseline/{subject.name}/run-{number}/" for number in (1, 2)]
        folders = [Folder(path, self.folders.pop(path, [])) for path in paths]
        note = self.findings.about(f"baseline/{subject.name}")
        if told["doubts"]:  # whatever is wrong there is why nothing follows from it
            for folder in [*folders, *self._recorded(subject)]:
                self.expected |= {folder.path + name for name in folder.names}
            return None
        case = campaign_plan.Case(subject, [])
        first = campaign_baseline.hold(self.states, folders, case, Setting(self.plan, True, baseline=True), note)
        self.expected |= folders[0].paths() | folders[1].paths()
        if first is None:
            return None
        place = f"derived {show(subject.name)}"
        campaign_kept.hold_reached(told["points"], first, lambda said: note(f"{paths[0]}points/", said))
        if told["digest"] != first.state.digest:
            said = f"is {told['digest']}, but {paths[0]} gives {first.state.digest}"
            self.findings.add(MANIFEST, f"{place}.digest", said)
        points: list[Reached] = told["points"]
        if self.plan["mode"] == SYSCALLS and not self._hold_calls(case, (folders[0], len(points)), note):
            return None
        return points

    def _recorded(self, subject: Subject) -> list[Folder]:
        """The folders of the runs whose system calls were recorded."""
        paths = [f"baseline/{subject.name}/calls-{number}/" for number in (1, 2)]
        windows = f"baseline/{subject.name}/{campaign_struck.WINDOWS}"
        if self.plan["mode"] == SYSCALLS and windows in self.tree.sizes:
            self.expected.add(windows)
        return [Folder(path, self.folders.pop(path, [])) for path in paths if path in self.folders]

    def _hold_calls(self, case: Case, observed: tuple[Folder, int], note: Note) -> bool:
        """Hold the recorded runs of a subject and its windows; False where nothing can be derived from them."""
        setting, runs = Setting(self.plan, False, baseline=True), []
        base = f"baseline/{case.subject.name}/"
        for folder in self._recorded(case.subject):
            found = campaign_kept.derive(self.states, folder, (case, setting), note)
            if found is None or found.play.broken:
                return False
            for wrong in [*found.doubts, *found.violations]:
                note(folder.path, f"does not hold without any fault: {wrong}")
            runs.append(campaign_struck.listings(self.states, folder, (case, found.play.rounds), note))
            for record in found.play.records:
                if not runs[-1][record["step"] - 1].get(record["process"]):
                    note(folder.path, f"no call of {record['process']} was recorded in round {record['step']}")
            self.expected |= folder.paths()
        if len(runs) != len(("calls-1", "calls-2")):
            note(base, "has not two runs whose calls were recorded")
            return False
        folder, rounds = observed
        marked = campaign_struck.listings(self.states, folder, (case, rounds), note)
        campaign_struck.hold_recorded(self.states, runs, (f"{base}{campaign_struck.WINDOWS}", marked), note)
        self._called = runs[0]
        return True

    def _explore(self, subject: Subject, reached: list[Reached]) -> bool:
        """Hold the cases of a subject; False where their list is another than the one that was derived."""
        if self.plan["mode"] == RANDOM:
            return self._histories(subject)
        cases, images = campaign_derive.first_level(subject, self.plan["mode"], reached), None
        if self.plan["mode"] == SYSCALLS:
            cases = campaign_derive.of_calls(subject, self._called)
        if self.plan["mode"] == POWER:
            images = self._images(subject)
            if images is None:
                return False
            cases = iter([Case(subject, [[Fault(POWER_CUT, "", str(call), number)]]) for call, number in images.judged])
        deeper = campaign_derive.Deeper(subject, self.plan["mode"], reached)
        if self.totals["cases"] == self.plan["budget"]:
            self.doubted.append(f"{subject.name}: the budget was spent before it")
        for depth in range(1, self.plan["depth"] + 1):
            first, setting = self.totals["cases"], Setting(self.plan, depth < self.plan["depth"], images=images)
            for case in cases:
                if self.totals["cases"] == self.plan["budget"]:
                    break
                if not self._case(case, setting):
                    return False
            for _ in cases:
                pass  # beyond the budget nothing is played, and pruned all the same
            self.totals["pruned"] += deeper.pruned
            deeper = campaign_derive.Deeper(subject, self.plan["mode"], reached)
            cases = deeper.cases(self._parsed(first, self.totals["cases"]))
        return True

    def _histories(self, subject: Subject) -> bool:
        """Hold the histories of a subject: those of files by name, then those of the seeds; False where they are others."""
        budget, setting = self.plan["budget"], Setting(self.plan, False)
        most = HISTORIES if budget is None else max(1, budget // len(self.subjects))
        last, seed = "", self.plan["seed"]
        for _ in range(most):
            if self.totals["cases"] == budget:
                break
            place = f"line {self.totals['cases'] + 1}"
            data, complete = next(self._lines, (b"", False))
            line = campaign_lines.read(data, complete, campaign_lines.TOLD, self._note, place) if data else None
            if line is None:
                self._note(place, f"is missing, or no result: {subject.name} has {most} histories")
                return False
            owner, _, name = line["case"].rpartition("/random:")
            wanted = f"{seed}" if name[:1].isdigit() or name <= last or seed != self.plan["seed"] else name
            case = campaign_history.case_of(line["case"], line["history"], subject, self._note, place)
            if owner != subject.name or name != wanted or case is None:
                self._note(place, f"is of {show(line['case'])}, expected {subject.name}/random:{wanted}")
                return False
            if name[:1].isdigit():
                seed += 1
            last = name
            if line["verdict"] == VIOLATED and name[:1].isdigit():
                self.violated.setdefault(subject.name, []).append((name, line))
            self._held(line, case, setting)
        return True

    def _images(self, subject: Subject) -> campaign_power.Recorded | None:
        """The recording of a subject, held against what the manifest tells of it."""
        base = f"baseline/{subject.name}"
        self.expected |= {f"{base}/{campaign_power.CALLS}", f"{base}/{campaign_power.VIEWS}"}
        note = self.findings.about(base)
        recorded = campaign_power.read(self.tree, subject, f"{base}/run-1/", note)
        if recorded is None:
            return None
        told = next(each for each in self.manifest["derived"] if each["subject"] == subject.name).get("recorded")
        counts = {"calls": len(recorded.events), "images": recorded.images, "judged": len(recorded.judged)}
        if told != counts:
            self.findings.add(
                MANIFEST, f"derived {show(subject.name)}.recorded", f"is {show(told)}, but it gives {show(counts)}"
            )
        return recorded

    def _case(self, case: Case, setting: Setting) -> bool:
        number = self.totals["cases"]
        place = f"line {number + 1}"
        data, complete = next(self._lines, (b"", False))
        if not data:
            self._note(place, f"is missing: {case.name} was derived next")
            return False
        more = campaign_lines.OBSERVED if setting.observed else {}
        line = campaign_lines.read(data, complete, more, self._note, place)
        if line is None:
            return False
        if line["case"] != case.name:
            self._note(place, f"is of {show(line['case'])}, but {show(case.name)} is the next case that was derived")
            return False
        self._held(line, case, setting)
        return True

    def _held(self, line: dict[str, Any], case: Case, setting: Setting) -> None:
        """Hold a line and, where they are kept, the files of its case."""
        number = self.totals["cases"]
        campaign_lines.hold(line, case, self._note, f"line {number + 1}")
        if setting.images is not None:
            campaign_power.hold_line(line, case, setting.images, self.findings.about(case.name))
        self._count(line)
        path = f"cases/{number:06d}/"
        if self.plan["keep"] == KEEP_ALL or line["verdict"] != HELD:
            self.totals["kept"] += 1
            folder = Folder(path, self.folders.pop(path, []))
            campaign_kept.hold(self.states, folder, (case, setting), line, self.findings.about(case.name))
            self.expected |= folder.paths()

    def _count(self, line: dict[str, Any]) -> None:
        verdict = line["verdict"]
        self.totals["cases"] += 1
        self.totals[verdict] += 1
        self.totals["processes"] += line["processes"]
        self.fired.update(death["point"] for death in line["deaths"])
        told = {VIOLATED: self.broken, IN_DOUBT: self.doubted}.get(verdict)
        if told is not None and len(told) < MOST_TOLD:
            told.append(f"{line['case']}: {'; '.join([*line['doubts'], *line['violations']])}")

    def _results(self, first: int, end: int | None) -> Iterator[tuple[bytes, bool]]:
        try:
            yield from islice(self.tree.lines(RESULTS), first, end)
        except (Unreadable, KeyError) as error:
            self._note("", str(error))

    def _parsed(self, first: int, end: int) -> Iterator[dict[str, Any]]:
        """Results that were held before, read once more."""
        for data, _ in self._results(first, end):
            try:
                yield parse(data)
            except Malformed:
                return


def _folders(tree: Tree) -> dict[str, list[str]]:
    """The files of each case and of each run without faults, relative to its folder."""
    found: dict[str, list[str]] = {}
    for name in tree.sizes:
        parts = name.split("/")
        if parts[0] in ("cases", "canary") and len(parts) > 2:
            at = 2
        elif parts[0] == "baseline":
            at = next((at for at, part in enumerate(parts[:-1], 1) if part in RUNS), 0)
        else:
            continue
        if at:
            found.setdefault("/".join(parts[:at]) + "/", []).append("/".join(parts[at:]))
    return found


def audit_campaign(path: str, checkout: Checkout, keep: bool = False) -> Report:
    """Audit one campaign against itself, the audit's own derivation and the checkout."""
    findings = Findings()
    tree = Tree(path, findings)
    manifest, plan = document(tree, MANIFEST), document(tree, PLAN)
    campaign: Campaign | None = None
    unknown: list[str] = []
    note = findings.about(MANIFEST)
    if manifest is not None and plan is not None and _shaped(manifest, note):
        subjects = campaign_plan.subjects(plan, findings.about(PLAN))
        if manifest["plan"] != plan:
            note("plan", "is not what plan.json has")
        if subjects is not None:
            unknown = campaign_plan.strange(subjects, findings.about(PLAN))
            campaign = Campaign(tree, manifest, plan, subjects)
            if RESULTS in tree.sizes:
                campaign.run()
                _totals(campaign, note)
            inventory.check_files(tree, manifest["files"], campaign.expected, findings)
        inventory.check_sources(checkout, manifest["sources"], findings)
        if plan["sources"] != inventory.one_hash(manifest["sources"]):
            note("sources", "are not those that plan.json was begun with")
        hold_run(manifest["run"], plan["store"], note)
    return _report(path, campaign, unknown, findings, keep)


def _shaped(manifest: dict[str, Any], note: Note) -> bool:
    if not holds(manifest, SHAPE, note, ""):
        return False
    good = []
    for at, each in enumerate(manifest["derived"]):
        recorded = {"recorded": OBJECT} if type(each) is dict and "recorded" in each else {}
        good.append(holds(each, {**DERIVED, **recorded}, note, f"derived[{at}]"))
        good.append(not recorded or holds(each["recorded"], RECORDED, note, f"derived[{at}].recorded"))
    if all(good):
        good = [
            campaign_lines.counted(points, note, f"derived[{at}].points")
            for at, each in enumerate(manifest["derived"])
            for points in each["points"]
        ]
    known = all(each["subject"] in SUBJECTS for each in manifest["derived"]) if all(good) else True
    if manifest["declared"] != (declared() if known else sorted({*manifest["declared"], *declared()})):
        strange = sorted({*manifest["declared"]} ^ {*declared()})
        note("declared", f"are other points than the audit's own table has, or in another order: {show(strange)}")
    return all(good) and holds(manifest["totals"], TOTALS, note, "totals")


def _totals(campaign: Campaign, note: Note) -> None:
    """The manifest's sums are those of the lines."""
    told = campaign.manifest["totals"]
    counted: dict[str, Any] = {name: campaign.totals[name] for name in TOTALS if name != "fired"}
    counted["fired"] = sorted(campaign.fired)
    for name, value in counted.items():
        if told[name] != value:
            note(f"totals.{name}", f"is {show(told[name])}, but the lines give {show(value)}")
    verdict = UNKNOWN if campaign.doubted else FAIL if campaign.broken else PASS
    if campaign.manifest["verdict"] != verdict:
        note("verdict", f"is {campaign.manifest['verdict']}, but the lines give {verdict}")


def _report(path: str, campaign: Campaign | None, unknown: list[str], findings: Findings, keep: bool) -> Report:
    totals = campaign.totals if campaign is not None else {}
    disagrees = bool(findings.items)
    broken, doubted = (campaign.broken, campaign.doubted) if campaign is not None else ([], [])
    for each in [] if disagrees else broken:
        findings.add("violated", "", each)
    for each in [] if disagrees else doubted:
        findings.add("unknown", "", each)
    for name in unknown:
        findings.add(PLAN, f"subject {show(name)}", "the audit does not know it: what it allows is its own word")
    verdict = FAIL if disagrees or broken else UNKNOWN if doubted or unknown else PASS
    report = Report(path, verdict, findings, totals, 0)
    report.campaign = said(totals, disagrees)
    report.explored = campaign if keep else None
    return report


def said(totals: dict[str, int], disagrees: bool) -> str:
    """The verdict on a campaign, in words that tell false evidence from a case that did not hold."""
    if disagrees:
        return "the evidence does not agree with itself"
    if totals.get("violated"):
        return f"the evidence agrees with itself, and {totals['violated']} of {totals['cases']} cases are violated"
    return "the evidence agrees with itself"

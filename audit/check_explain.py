"""`--explain` of a check: what was derived from its lines, what was taken on its word, and what its verdict means."""

from __future__ import annotations

import os

from audit.check_words import WORKER
from audit.explain import count, heading, wrapped
from audit.findings import FAIL, PASS, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.archive import Report
    from audit.check_table import Sums

SHOWN = 20
FILES = (
    "Files. The hashes of all were computed anew and held against the manifest: none may be missing, changed or surplus; "
    "the sources of the run were held against this checkout. The target file says what plan.json says of it."
)
OF_A_WORKER = (
    "Results. {cases}. From the arrivals of each the effects were counted again, at a receiver with keys (one for each key) "
    "and at one without (one for each arrival); from these, from the canary, and from whether the job was still stored, the "
    "verdict: lost, stuck, duplicate-keyed, duplicate-unkeyed or recovered, and unknown where the fault did not come or a "
    "doubt is told.",
    "Conclusions. Windows (neighbouring lines or calls with the same verdict), sums, the claims that hold, the verdict by what "
    "is claimed ({claims}), and the table for people were made anew from the lines.",
    "On its word. Who died, and when; which requests arrived; whether a job was stored; how long it took; what a real receiver "
    "without keys confirmed. These things happened in another's program, and only a run of your own can repeat them.",
)
OF_A_RECEIVER = (
    "Results. {cases}. Where an expectation asks for one effect, and effects were counted, these must go with its verdict: one "
    "of what was met, none of what was lost, more of what was duplicated.",
    "Conclusions. The list of what was not met, sums, the verdict (violated, and grave or declared, is FAIL), and the table "
    "for people were made anew from the lines.",
    "On its word. What was sent and answered, how effects were counted, and what was expected. The exchanges stand in "
    "results.jsonl for you to judge.",
)
PASSES = {
    True: "PASS means: at every place at which this check let the worker die it came to what it claims.",
    False: "PASS means: no grave expectation, and none that the receiver declares of itself, was violated.",
}
MEANS_NOT = (
    "that nobody made it up. Against that there is only a check of your own.",
    "that other places, jobs, loads or configurations hold: those of the plan were tried, and no others.",
    "that power loss would come out the same. A process died; what it had handed to the kernel was still there afterwards.",
)
FAILS = {
    True: "What it says of its cases is worth nothing. Begin with the first finding.",
    False: "What it is held to does not hold. These are the places; run.py check with --only CASE plays one again.",
}


def explain(report: Report, sums: Sums | None) -> list[str]:
    """The explanation of the report on one check, in lines of ASCII."""
    name = plain(os.path.normpath(report.path))
    lines = heading(f"What was checked in {name}")
    is_worker = sums is not None and sums.kind == WORKER
    if sums is None:
        lines += wrapped("Nothing beyond a first look: without manifest and plan in their form there is nothing to derive.")
    else:
        told = [f"{number} {verdict}" for verdict, number in sums.counts.items() if number]
        values = {"cases": f"{count(sums.cases, 'case')}: {', '.join(told) or 'none'}", "claims": sums.claims or "nothing"}
        for paragraph in (FILES, *(OF_A_WORKER if is_worker else OF_A_RECEIVER)):
            lines += wrapped(paragraph.format_map(values))
    lines += heading(f"{report.verdict} {name}: {report.checked.partition('; taken on')[0]}")
    if report.verdict == PASS:
        lines += [*wrapped(PASSES[is_worker]), "", "PASS does not mean:"]
        return lines + [line for sentence in MEANS_NOT for line in wrapped(f"- {sentence}", "  ")]
    disagrees = not report.checked.startswith("the evidence agrees")
    lines += wrapped(FAILS[disagrees] if report.verdict == FAIL else "What is unknown is no pass.")
    lines += [f"    {finding}" for finding in report.findings[:SHOWN]]
    return [*lines, f"    and {len(report.findings) - SHOWN} more"] if len(report.findings) > SHOWN else lines

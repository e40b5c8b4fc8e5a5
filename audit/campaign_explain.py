"""`--explain` of a campaign: what was looked at, with this campaign's numbers, and what its verdict means."""

from __future__ import annotations

import os

from audit.campaign_words import KEEP_ALL
from audit.explain import count, heading, wrapped
from audit.findings import FAIL, PASS, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.archive import Report
    from audit.campaign import Campaign

SHOWN = 20
MODES = {
    "points": "one case for each process, point and occurrence at which it can die",
    "wire": "one case for each cut of each connection between sender and receiver",
    "lines": "one case for each process and each line of its functions, the first two times and the last",
    "syscalls": "one case for each call of the system that changes something, and each way in which it can end",
    "pauses": "one case for each point at which a program can be stopped and overtaken by another one of its kind",
}
WALK = (
    "Files. {files} with {bytes} bytes. The hashes of all were computed anew and held against the {listed} of the manifest: "
    "none may be missing, changed or surplus. {sources} were held against this checkout.",
    "Subjects. {subjects}: {names}. What a subject is, and how many effects one operation may come to in it, is pinned in the "
    "audit by its hash.",
    "Runs without faults. Two of each subject. Both must have reached the same points, left the same state, and held. An "
    "effect planted into the second must be counted, and a copy with each effect once more must be a duplicate: a counter that "
    "is blind proves nothing.",
    "Cases. Mode {mode}, depth {depth}: {what}. Their list was derived anew from the points, level by level, with the deeper "
    "ones that were pruned ({pruned}); results.jsonl must have exactly these, in this order.",
    "Results. {cases}. {kept} were derived from their files{others}. To derive one its processes are played again from their "
    "records (who was started when, with what, armed where; who died must have ended with 23 and left its witness line), the "
    "states that deaths and end left are read, hashed and counted, and the verdict is stated anew from the invariants.",
)
OTHERS = (
    "; of the others nothing is kept, and their lines were held for what they say: deaths as the name has them, counts as "
    "they are allowed"
)
HOLDS = (
    "every operation has its effects, no more than the receiver's kind and the case's faults allow, and one receipt; nothing "
    "has an effect or receipt that nobody promised; and recovery came to its end, in all {cases}"
)
MEANS_NOT = (
    "that nobody made it up. Against that there is only a campaign of your own, and --compare.",
    "that other points, subjects or depths hold: those of the plan were explored, and no others.",
    "that power loss would come out the same. A process died; what it had handed to the kernel was still there afterwards.",
)
TELLS = {
    True: "What it says of its cases is worth nothing. Begin with the first finding.",
    False: "What it shows does not hold. These are the cases; run.py replay CASE plays one again.",
}
INTERRUPTED = "What is unknown is no pass: what is in doubt, or not known to the audit, is told here with what to mend."


def explain(report: Report) -> list[str]:
    """The explanation of the report on one campaign, in lines of ASCII."""
    name = plain(os.path.normpath(report.path))
    lines = heading(f"What was checked in {name}")
    if report.explored is None:
        lines += wrapped(
            "Nothing beyond a first look: without manifest and plan in their form there is nothing to derive from."
        )
    else:
        numbers = _numbers(report.explored)
        for paragraph in WALK:
            lines += wrapped(paragraph.format_map(numbers))
    lines += heading(f"{report.verdict} {name}: {report.campaign}")
    if report.verdict == PASS and report.explored is not None:
        held = HOLDS.format(cases=count(report.totals["cases"], "case"))
        lines += [*wrapped(f"PASS means: {held}."), "", "PASS does not mean:"]
        return lines + [line for sentence in MEANS_NOT for line in wrapped(f"- {sentence}", "  ")]
    disagrees = not report.campaign.startswith("the evidence agrees")
    lines += wrapped(TELLS[disagrees] if report.verdict == FAIL else INTERRUPTED)
    lines += [f"    {finding}" for finding in report.findings[:SHOWN]]
    if len(report.findings) > SHOWN:
        lines.append(f"    and {len(report.findings) - SHOWN} more")
    return lines


def _numbers(campaign: Campaign) -> dict[str, str | int]:
    plan, totals, sizes = campaign.plan, campaign.totals, campaign.tree.sizes
    complete = plan["keep"] == KEEP_ALL or totals["kept"] == totals["cases"]
    told = [f"{totals[each]} {each}" for each in ("held", "violated", "unknown") if totals[each]]
    return {
        "files": count(len(sizes), "file"),
        "bytes": sum(sizes.values()),
        "listed": len(campaign.manifest["files"]),
        "sources": count(len(campaign.manifest["sources"]), "source"),
        "subjects": count(len(campaign.subjects), "subject"),
        "names": plain(", ".join(subject.name for subject in campaign.subjects)),
        "mode": plan["mode"],
        "depth": plan["depth"],
        "what": MODES[plan["mode"]],
        "pruned": totals["pruned"],
        "cases": f"{count(totals['cases'], 'case')}: {', '.join(told) or 'none'}",
        "kept": totals["kept"],
        "others": "" if complete else OTHERS,
    }

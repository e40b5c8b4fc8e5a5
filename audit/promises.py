"""Which promise of an archive a finding breaks, told from the file and the place that it names.

The promises are those that `explain` walks through. A finding that names no place of its own falls to the last one.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.findings import Finding

FILES = "Nothing is missing, added or changed: the files are those of the manifest"
SOURCES = "The sources that ran are those of this checkout"
PLAN = "What was to happen was fixed before: the protocol is the pinned one"
RUN = "The manifest says how the run was made, in the contract's form"
PROCESSES = "Every process was started, armed and ended as the plan has it"
CHAIN = "No record was changed, moved, taken out or put in"
COUNTS = "The declared counts are those of the journals"
CLAIMS = "results.json and tables.md say what the journals say"
SENDER = "What the sender recorded follows from its policy and from what came back"
RECEIVER = "What the receiver did and answered follows from what arrived"
BOOKS = "What a database held follows from what its processes did and from what came back"
WIRE = "What one side sent is what the other side received"
PREFIXES = "A journal that is cut anywhere is opened again with its complete records"
WHOLE = "The archive agrees with itself"
ORDER = (FILES, SOURCES, PLAN, RUN, PROCESSES, CHAIN, SENDER, RECEIVER, BOOKS, WIRE, PREFIXES, COUNTS, CLAIMS, WHOLE)

OF_JOURNAL = {
    "intentions": SENDER, "attempts": SENDER, "receipts": SENDER, "history": SENDER, "effects": RECEIVER, "keys": RECEIVER,
    "arrivals": RECEIVER, "requests": WIRE, "exchanges": WIRE, "prefixes": PREFIXES,
}  # fmt: skip
OF_LINES = ("the checksum is", "the line ", "the journal is missing", "has more than", "stands twice for the type")
OF_MANIFEST = {"sources": SOURCES, "protocol": PLAN, "selection": PLAN, "run": RUN, "files": FILES}
OF_FILE = {"processes.json": PROCESSES, "results.json": CLAIMS, "tables.md": CLAIMS}


def broken(findings: list[Finding]) -> list[tuple[str, list[Finding]]]:
    """The findings by the promise that they break, in the order of the explanation."""
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(promise(finding), []).append(finding)
    return [(each, found[each]) for each in ORDER if each in found]


def promise(finding: Finding) -> str:
    """The promise that one finding breaks."""
    subject, place = finding.subject, finding.place
    if place.startswith("scenarios/"):
        return _of_journal(place, finding.sentence)
    if place.startswith("processes.json"):
        return PROCESSES
    if place:
        first = place.replace("[", ".").replace(" ", ".").partition(".")[0]
        return (
            OF_MANIFEST.get(first, WHOLE)
            if subject == "manifest.json"
            else OF_FILE.get(subject, COUNTS if place == "counts" else WHOLE)
        )
    return WHOLE if subject == "." else FILES


def _of_journal(place: str, sentence: str) -> str:
    if "/exports/" in place:
        return BOOKS
    path, _, where = place.partition(".jsonl")
    if "/checkpoints/" in path or where.endswith((" previous", " sequence")) or sentence.startswith(OF_LINES):
        return CHAIN
    return OF_JOURNAL.get(path.rpartition("/")[2], WHOLE)

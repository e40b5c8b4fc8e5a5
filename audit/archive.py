"""One archive, from the first look to its verdict.

`audit_archive` reads everything once, runs every check and returns a `Report`. The order matters only where one check
needs what another gathered: the manifest says what was selected, the processes say which journals there must be, and
the journals say what everything else has to agree with.
"""

from __future__ import annotations

import os

from audit import (
    checkpoints,
    dispatch,
    given_up,
    inquiries,
    inventory,
    lanes,
    ledger,
    messages,
    order,
    outbox,
    processes,
    protocol,
    requests,
    results,
    serve,
    tails,
    volatile,
    wire,
)
from audit.case import PREFIXES, RELAY, Case, gather
from audit.checkpoints import say
from audit.files import Tree, Unreadable, pieces
from audit.findings import FAIL, PASS, UNKNOWN, Findings
from audit.inventory import Checkout
from audit.shapes import LIST, exactly, holds
from audit.strict_json import Malformed, parse_laid_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.campaign import Campaign
    from audit.check_table import Sums
    from audit.findings import Finding
    from audit.shapes import Shape

CAMPAIGN = b'{\n "format": "halt23.campaign",\n'
CHECK = b'{\n "format": "halt23.check",\n'
MANIFEST, PROCESSES, RESULTS, TABLES = "manifest.json", "processes.json", "results.json", "tables.md"
DOCUMENT: Shape = {"format": exactly("halt23.processes"), "format_version": exactly(1), "processes": LIST}


class Kept:
    """What was read of an archive, for whoever wants to tell more about it than the verdict."""

    __slots__ = ("cases", "manifest", "tree")

    def __init__(self, manifest: dict[str, Any], cases: list[Case], tree: Tree) -> None:
        self.manifest = manifest
        self.cases = cases
        self.tree = tree


class Report:
    """What the audit has to say about one directory; `kept` is there only where it was asked for.

    `catalogue` is how many scenarios of the catalogue the run's store can run. `campaign` says in words what became of a
    campaign, and is empty for a study; `explored` is what was read of one. `checked` and `sums` are the same of a check.
    """

    __slots__ = (
        "campaign",
        "catalogue",
        "checked",
        "explored",
        "findings",
        "kept",
        "left_out",
        "path",
        "sums",
        "totals",
        "verdict",
    )

    def __init__(self, path: str, verdict: str, findings: Findings, totals: dict[str, int], catalogue: int) -> None:
        self.path = path
        self.verdict = verdict
        self.findings: list[Finding] = findings.items
        self.left_out = findings.left_out
        self.totals = totals
        self.catalogue = catalogue
        self.kept: Kept | None = None
        self.campaign = ""
        self.explored: Campaign | None = None
        self.checked = ""
        self.sums: Sums | None = None


def audit_archive(path: str, root: str | Checkout, keep: bool = False) -> Report:
    """Audit one archive against itself, the audit's table and the checkout at `root`; with `keep`, keep what was read."""
    checkout = Checkout(root) if isinstance(root, str) else root
    findings = Findings()
    if not os.path.lexists(os.path.join(path, MANIFEST)):
        on = "; a campaign goes on with run.py explore --resume" if os.path.lexists(os.path.join(path, "plan.json")) else ""
        if os.path.lexists(os.path.join(path, "target.toml")):
            on = "; a check is begun again in a new folder"
        findings.add(MANIFEST, "", f"is missing: the run was interrupted, or the archive is not whole{on}")
        return Report(path, UNKNOWN, findings, {}, 0)
    if is_campaign(path):
        from audit.campaign import audit_campaign  # noqa: PLC0415 (not needed for a study)

        return audit_campaign(path, checkout, keep)
    if is_check(path):
        from audit.check import audit_check  # noqa: PLC0415 (not needed for a study)

        return audit_check(path, checkout)
    tree = Tree(path, findings)
    manifest = document(tree, MANIFEST)
    recorded = document(tree, PROCESSES)
    claimed = document(tree, RESULTS)
    totals: dict[str, int] = {}
    catalogue = 0
    kept: Kept | None = None
    if manifest is not None and protocol.well_formed(manifest, findings.about(MANIFEST)):
        catalogue = len(protocol.runnable(manifest))
        later = Findings()
        cases = _cases(manifest, recorded, tree, findings, later)
        if any(case.exporting for case in cases):
            from audit import databases  # noqa: PLC0415 (needed by one section, so not at every start)

            databases.check(cases, manifest["selection"]["store"], findings.about(PROCESSES))
        for case in cases:
            _scenario(case, manifest["selection"]["store"])
        for each in later.items:
            findings.add(each.subject, each.place, each.sentence)
        totals = _totals(cases)
        if claimed is not None:
            results.check(claimed, cases, totals, findings.about(RESULTS))
        tables = tree.read(TABLES) if TABLES in tree.sizes else None
        if tables is not None:
            results.check_tables(tables, cases, findings.about(TABLES))
        expected = {PROCESSES, RESULTS, TABLES}.union(*[case.files for case in cases])
        inventory.check_files(tree, manifest["files"], expected, findings)
        inventory.check_sources(checkout, manifest["sources"], findings)
        kept = Kept(manifest, cases, tree) if keep else None
    report = Report(path, FAIL if findings.items else PASS, findings, totals, catalogue)
    report.kept = kept
    return report


def is_campaign(path: str) -> bool:
    """Whether the manifest of an archive begins as that of a campaign."""
    return _begins(path, CAMPAIGN)


def is_check(path: str) -> bool:
    """Whether the manifest of an archive begins as that of a check."""
    return _begins(path, CHECK)


def _begins(path: str, head: bytes) -> bool:
    try:
        return next(iter(pieces(os.path.join(path, MANIFEST))), b"").startswith(head)
    except Unreadable:
        return False


def document(tree: Tree, name: str) -> dict[str, Any] | None:
    """A document of an archive; None, with findings, where it cannot be read."""
    if name not in tree.sizes:
        tree.findings.add(name, "", "is missing, or no regular file")
        return None
    data = tree.read(name)
    if data is None:
        return None
    try:
        document, in_layout = parse_laid_out(data)
    except Malformed as problem:
        tree.findings.add(name, "", f"cannot be read: {problem}")
        return None
    if not in_layout:
        tree.findings.add(name, "", "is not in the study's layout: a line for each member and item, one blank a level")
    return document


def _cases(
    manifest: dict[str, Any], recorded: dict[str, Any] | None, tree: Tree, findings: Findings, later: Findings
) -> list[Case]:
    """The selected scenarios, each with its own process records; `later` takes what follows from what the scenarios tell."""
    note = findings.about(PROCESSES)
    plans = protocol.selected(manifest, findings.about(MANIFEST))
    records: list[dict[str, Any]] = []
    if recorded is not None and holds(recorded, DOCUMENT, note, ""):
        records = processes.readable(recorded, note, later.about(PROCESSES))
    names = [f"{plan['section']}/{plan['name']}" for plan, _ in plans]
    processes.hold_order(records, [plan for plan, _ in plans], note)
    lanes.check(records, manifest["run"], note)
    by_scenario: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for record in records:
        by_scenario.get(record["scenario"], []).append(record)
    return [Case(*planned, by_scenario[name], tree) for planned, name in zip(plans, names, strict=True)]


def _scenario(case: Case, store: str) -> None:
    """Every check of one scenario, which was run on this store."""
    case.first.begin()
    gather(case)
    processes.check(case)
    volatile.check_ports(case)
    volatile.check_clock(case)
    outbox.check(case)
    ledger.check(case)
    if case.having(PREFIXES):
        from audit import prefixes  # noqa: PLC0415 (needed by one scenario, so not at every start)

        prefixes.check(case)
    if case.exporting:
        from audit import books, exports  # noqa: PLC0415 (needed by one section, so not at every start)

        exports.gather(case)
        books.hold(case, case.exports, store)
    traffic = requests.gather(case)
    dispatch.check(case, traffic)
    if case.having(RELAY):
        from audit import relay  # noqa: PLC0415 (needed by one section, so not at every start)

        relay.match(case, traffic)
        relay.check(case, traffic)
    wire.check(case, traffic)
    inquiries.match(case, traffic)
    serve.check(case, traffic)
    tails.check(case)
    inquiries.check(case, traffic)
    order.check(case, traffic)
    messages.check(case, traffic)
    volatile.check_causes(case, traffic)
    checkpoints.check(case, traffic)
    _counts(case)
    case.first.tell()
    given_up.tell(case)
    case.close()


def _counts(case: Case) -> None:
    counts, planned = case.counts(), case.plan["expected"]
    wanted = {
        "the protocol": tuple(planned[name] for name in ("effects", "receipts", "history", "arrivals")),
        "the audit's own table": case.expectation.counts if case.expectation else counts,
    }
    for source, expected in wanted.items():
        if counts != expected:
            case.note("counts", f"the journals have {say(counts)}, but {source} expects {say(expected)}")


def _totals(cases: list[Case]) -> dict[str, int]:
    return {
        "scenarios": len(cases),
        "processes": sum(len(case.processes) for case in cases),
        "requests": sum(case.counts()[3] for case in cases),
        "records": sum(case.tally.lines for case in cases if case.tally is not None),
    }

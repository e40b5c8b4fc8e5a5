"""What stands beside the cases of mode `random`: the canary, which must have failed, and the histories that were shrunk.

A canary is a system with a mistake. One whose files do not show the mistake proves nothing, and no other one is taken for it.
"""

from __future__ import annotations

from audit import campaign_history, campaign_kept, campaign_lines
from audit.archive import document
from audit.campaign_kept import Folder
from audit.campaign_plan import SUBJECT, Subject
from audit.campaign_play import Setting
from audit.campaign_words import DUPLICATE, MOST_SHRUNK, RANDOM, VIOLATED
from audit.findings import show
from audit.shapes import COUNT, LIST, NAME, OBJECT, exactly, holds, list_of
from audit.strict_json import Malformed, parse_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.campaign import Campaign
    from audit.findings import Note
    from audit.shapes import Shape

CANARY, RESULT, CASE = "oracle/key-per-attempt", "canary/result.json", "canary/case/"
POLICY = ["--policy", "key-per-attempt"]
SETTING: dict[str, Any] = {"mode": RANDOM, "depth": 1, "store": None}
FOUND: Shape = {"subject": OBJECT, "result": OBJECT}
KEPT: Shape = {
    "format": exactly("halt23.seed"), "format_version": exactly(1), "subject": NAME, "seed": COUNT, "kinds": list_of(NAME),
    "violations": LIST, "history": OBJECT,
}  # fmt: skip


def hold_canary(campaign: Campaign) -> None:
    """The canary is the one that the audit knows, and its files show its mistake."""
    campaign.expected.add(RESULT)
    found = document(campaign.tree, RESULT)
    note = campaign.findings.about(RESULT)
    if found is None or not holds(found, FOUND, note, ""):
        return
    if not holds(found["subject"], SUBJECT, note, "subject"):
        return
    subject, line = Subject(found["subject"], found["subject"]["roles"]), found["result"]
    allowed = {"least": 1, "most": 1, "each_fault": 0, "each_copy": 0, "may_end": []}
    sender = subject.role("dispatcher")
    if subject.name != CANARY or subject.allowed != allowed or sender is None or sender["arguments"][-2:] != POLICY:
        note("subject", f"is {show(subject.name)}, and not the canary as the audit knows it")
        return
    if not holds(line, {**campaign_lines.LINE, **campaign_lines.TOLD}, note, "result"):
        return
    case = campaign_history.case_of(line["case"], line["history"], subject, note, "result")
    if case is None:
        return
    campaign_lines.hold(line, case, note, "result")
    if line["verdict"] != VIOLATED or DUPLICATE not in line["kinds"]:
        note("result", f"is {line['verdict']} with {show(line['kinds'])}: the canary was not found failing")
    folder = Folder(CASE, campaign.folders.pop(CASE, []))
    campaign_kept.hold(campaign.states, folder, (case, Setting(SETTING, False)), line, campaign.findings.about(CASE))
    campaign.expected |= folder.paths()


def _parsed(campaign: Campaign, path: str, note: Note) -> dict[str, Any] | None:
    """A file that is laid out for a person: a line for each step."""
    data = campaign.tree.read(path) if path in campaign.tree.sizes else None
    if data is None:
        note("", "is missing, or no regular file")
        return None
    try:
        return parse_document(data)
    except Malformed as problem:
        note("", f"cannot be read: {problem}")
        return None


def hold_seeds(campaign: Campaign) -> None:
    """The first violated histories of each subject have a file each, of their subject and seed."""
    wanted = {}
    subjects = {subject.name: subject for subject in campaign.subjects}
    for name, lines in campaign.violated.items():
        wanted.update({f"seeds/{name.replace('/', '-')}-{seed}.json": (name, seed, line) for seed, line in lines[:MOST_SHRUNK]})
    for path, (name, seed, line) in wanted.items():
        campaign.expected.add(path)
        note = campaign.findings.about(path)
        data = _parsed(campaign, path, note)
        if data is None or not holds(data, KEPT, note, ""):
            continue
        if (data["subject"], f"{data['seed']}") != (name, seed):
            note("", f"is of seed {data['seed']} of {show(data['subject'])}, expected {seed} of {name}")
        if line["kinds"][0] not in data["kinds"]:
            note("kinds", f"are {show(data['kinds'])}, but the history that it comes from is {show(line['kinds'])}")
        campaign_history.case_of(f"{name}/{RANDOM}:{seed}", data["history"], subjects[name], note, "")

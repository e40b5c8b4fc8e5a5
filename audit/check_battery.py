"""What a receiver is asked: the expectations by name, who expects each, and how grave it is where it is not met.

A line of a check's results must be of one of these. Whose expectation it is follows from its name, from what the target file
declares, and from whether effects went wrong; how grave a violation is may be told more exactly by what was seen, but a grave
one stays grave.
"""

from __future__ import annotations

from audit.check_words import DECLARED, GRAVE
from audit.findings import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.findings import Note

STUDY, DRAFT = "study", "draft-ietf-httpapi-idempotency-key-header"
# name: who expects it, how grave it is, and the field of the target's policy that replaces what is expected
BATTERY: dict[str, tuple[str, str, str | None]] = {
    "replay": (STUDY, "duplicated", None),
    "replay-answer": (DRAFT, "unclear", None),
    "other-body": (STUDY, "duplicated", None),
    "other-body-answer": (DRAFT, "unclear", "other_body"),
    "members-reordered": (STUDY, "style", None),
    "missing-key": (DRAFT, "style", "missing_key"),
    "key-empty": (DRAFT, "style", None),
    "key-doubled": (DRAFT, "style", None),
    "key-case": (DRAFT, "unclear", "case_sensitive"),
    "key-length-1": (STUDY, "unclear", "key_max_length"),
    "key-length-255": (STUDY, "style", "key_max_length"),
    "key-length-256": (STUDY, "unclear", "key_max_length"),
    "key-length-4096": (STUDY, "unclear", "key_max_length"),
    "key-non-ascii": (DRAFT, "style", None),
    "failure-then-retry": (STUDY, "stuck", None),
    "hang-up-during-request": (STUDY, "stuck", None),
    "hang-up-after-request": (STUDY, "stuck", None),
    "concurrent-duplicates": (STUDY, "duplicated", None),
    "concurrent-answers": (DRAFT, "unclear", None),
    "restart-after-success": (STUDY, "duplicated", None),
    "killed-after-success": (STUDY, "duplicated", None),
    "killed-while-handling": (STUDY, "stuck", None),
    "killed-at-call": (STUDY, "stuck", None),
    "hang-up-while-handled": (STUDY, "stuck", None),
    "concurrent-slowed": (STUDY, "duplicated", None),
    "in-flight": (DRAFT, "style", "in_flight"),
    "retention-kept": (STUDY, "duplicated", "retention_seconds"),
    "retention-over": (STUDY, "style", None),
}


def hold(line: dict[str, Any], plan: dict[str, Any], note: Note, place: str) -> None:
    """A receiver's line is of the battery, of whose expectation it is, and as grave as that."""
    known = BATTERY.get(line["expectation"].partition(":")[0])
    if known is None:
        note(f"{place} expectation", f"is {show(line['expectation'])}, which no receiver is asked")
        return
    source, severity, field = known
    if source == DRAFT and line["severity"] in GRAVE:
        source = STUDY  # what the effects show is no matter of how an answer should look
    elif field is not None and _policy(plan).get(field) is not None:
        source = DECLARED
    if line["source"] != source:
        note(f"{place} source", f"is {show(line['source'])}, but by its name and the target's policy it is {source}")
    if severity in GRAVE and line["severity"] not in GRAVE:
        note(f"{place} severity", f"is {line['severity']}, but who does not meet it is one of {', '.join(GRAVE)}")
    elif line["verdict"] not in ("violated", "unclear") and line["severity"] != severity:
        note(f"{place} severity", f"is {line['severity']}, but of what was not violated it is {severity}")


def _policy(plan: dict[str, Any]) -> dict[str, Any]:
    receiver = plan["target"].get("receiver")
    policy = receiver.get("policy") if type(receiver) is dict else None
    return policy if type(policy) is dict else {}

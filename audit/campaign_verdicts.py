"""The audit's own statement of what a case must come to.

Every promised operation has its effects, no more than its receiver's kind and the case's faults allow, and one receipt; nothing
else has any; and recovery comes to an end. What does not hold is `lost`, `duplicate`, `phantom` or `stuck`.
"""

from __future__ import annotations

from audit.campaign_words import DUPLICATE, HELD, KINDS, LOST, PHANTOM, STUCK, UNKNOWN, VIOLATED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.campaign_plan import Case
    from audit.campaign_state import State


def violations(case: Case, state: State, finished: bool) -> list[str]:
    """`KIND: SENTENCE` for each invariant that the last state of a case breaks."""
    found = []
    promised, least, most = case.subject.operations, case.subject.allowed["least"], case.most
    if not finished:
        left = "; ".join(state.unfinished) or "a program does not end as it does when there is nothing left to do"
        found.append(f"{STUCK}: after the last round: {left}")
    for key in promised:
        effects, receipts = state.effects.get(key, 0), state.receipts.get(key, 0)
        # Who gave up where that is allowed, and said so, has kept its word.
        told = state.ended.get(key) in case.subject.allowed["may_end"] and not receipts
        if effects < least and (finished or receipts) and not told:
            behind = ", and a receipt says that it was" if receipts else ""
            found.append(f"{LOST}: {key} was promised and has {effects} effects{behind}")
        if effects > most:
            found.append(f"{DUPLICATE}: {key} has {effects} effects, at most {most} may be")
        if receipts > 1:
            found.append(f"{DUPLICATE}: {key} has {receipts} receipts")
        if finished and not receipts and not told:
            found.append(f"{LOST}: {key} has no receipt, and nobody is going to write one")
    for what, counts in (("effect", state.effects), ("receipt", state.receipts), ("history record", state.history)):
        found += [f"{PHANTOM}: there is a {what} of {key}, which nobody promised" for key in counts if key not in promised]
    found += [f"{DUPLICATE}: {sentence}" for sentence in state.repeated]
    if state.arrivals > state.attempts + case.copies:
        found.append(f"{PHANTOM}: arrivals: {state.arrivals}, attempts that the sender recorded: {state.attempts}")
    found += [f"{PHANTOM}: {sentence}" for sentence in state.uncaused]
    if state.damaged:
        found.append(f"{LOST}: records cannot be read any more: {', '.join(state.damaged)}")
    return found


def kinds(broken: list[str]) -> list[str]:
    """The kinds of some violations, each once, in their one order."""
    met = {each.partition(":")[0] for each in broken}
    return [kind for kind in KINDS if kind in met]


def outcome(broken: list[str], doubts: list[str]) -> str:
    """The verdict that follows: a doubt outweighs everything."""
    return UNKNOWN if doubts else VIOLATED if broken else HELD

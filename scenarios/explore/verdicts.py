"""What a case came to: held against invariants, in four words that are always told apart, or unknown.

`lost`: an operation that was promised has no effect, or no receipt, or a receipt that nothing stands behind. `duplicate`: more
effects than the receiver's kind allows, a second receipt or history record. `phantom`: something that has no cause: an effect,
receipt or history record of no operation, or that tells of something else than its operation has; a request without a key, of
another route, or that nobody recorded as an attempt; an effect out of its turn, an attempt after its deadline, beyond the last
or in the lease of another, a dispatch that had ended and moved again, or that nobody acknowledged and that was recorded as
delivered.
`stuck`: rounds have run out and something is still to be done. `undeclared`, where a system call was struck: a program ended as
none may, with a traceback or a code that it does not declare. Whatever makes the judgement worthless is *unknown*, never a
pass.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scenarios.explore.leases import attempts_in_a_lease
from scenarios.explore.model import Case
from scenarios.explore.state import State

VERDICTS = HELD, VIOLATED, UNKNOWN = "held", "violated", "unknown"
LOST, DUPLICATE, PHANTOM, STUCK, UNDECLARED = "lost", "duplicate", "phantom", "stuck", "undeclared"
KINDS = (LOST, DUPLICATE, PHANTOM, STUCK, UNDECLARED)


@dataclass(frozen=True, slots=True)
class Violation:
    """One invariant that does not hold: its kind, and a sentence."""

    kind: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """`outcome` is HELD, VIOLATED or UNKNOWN; `doubts` say why a case is unknown and what to mend."""

    violations: tuple[Violation, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        """A doubt outweighs everything: what was seen may not be what happened."""
        if self.doubts:
            return UNKNOWN
        return VIOLATED if self.violations else HELD

    @property
    def why(self) -> str:
        """All doubts and violations, in one line."""
        return "; ".join([*self.doubts, *(violation.sentence for violation in self.violations)])

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its violations, each once, in the order of KINDS."""
        found = {violation.kind for violation in self.violations}
        return tuple(kind for kind in KINDS if kind in found)


def judge(
    case: Case, state: State, *, finished: bool, doubts: Sequence[str] = (), refused: Sequence[Violation] = ()
) -> Verdict:
    """The verdict on the last state of a case; `finished` says that recovery came to its end, `refused` what was done wrong
    after a system call had failed."""
    return Verdict((*_violations(case, state, finished=finished), *refused), tuple(doubts))


def _violations(case: Case, state: State, *, finished: bool) -> Iterator[Violation]:
    subject, promised = case.subject, case.subject.operations
    if not finished:
        left = "; ".join(state.unfinished) or "a program does not end as it does when there is nothing left to do"
        yield Violation(STUCK, f"after the last round: {left}")
    for key in promised:
        yield from _of_operation(case, state, key, finished=finished)
    for what, counts in (("effect", state.effects), ("receipt", state.receipts), ("history record", state.history)):
        for key in counts:
            if key not in promised:
                yield Violation(PHANTOM, f"there is a {what} of {key}, which nobody promised")
    for sentence in state.repeated:
        yield Violation(DUPLICATE, sentence)
    # Each attempt is one request, and is recorded before it leaves; what comes more often than that was sent by nobody.
    if state.arrivals > state.attempts + case.copies:
        yield Violation(PHANTOM, f"arrivals: {state.arrivals}, attempts that the sender recorded: {state.attempts}")
    for sentence in state.uncaused:
        yield Violation(PHANTOM, sentence)
    if subject.lease_seconds is not None:
        for sentence in attempts_in_a_lease(state.tables.get("status_transitions", []), subject.lease_seconds):
            yield Violation(PHANTOM, sentence)
    if state.damaged:
        yield Violation(LOST, f"records cannot be read any more: {', '.join(state.damaged)}")


def _of_operation(case: Case, state: State, key: str, *, finished: bool) -> Iterator[Violation]:
    allowed, most = case.subject.allowed, case.subject.allowed.up_to(case)
    effects, receipts = state.effects.get(key, 0), state.receipts.get(key, 0)
    # A sender that gave up, may do so here, and said so, has kept its word. A receipt would say the opposite.
    told = state.ended.get(key) in allowed.may_end and not receipts
    if effects < allowed.least and (finished or receipts) and not told:
        behind = ", and a receipt says that it was" if receipts else ""
        yield Violation(LOST, f"{key} was promised and has {effects} effects{behind}")
    if effects > most:
        yield Violation(DUPLICATE, f"{key} has {effects} effects, at most {most} may be")
    if receipts > 1:
        yield Violation(DUPLICATE, f"{key} has {receipts} receipts")
    if finished and not receipts and not told:
        yield Violation(LOST, f"{key} has no receipt, and nobody is going to write one")

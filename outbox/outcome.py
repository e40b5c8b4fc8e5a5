"""What can become of one attempt, in the three ways that recovery must tell apart."""

from dataclasses import dataclass

DID_NOT_HAPPEN = "did_not_happen"
MAY_HAVE_HAPPENED = "may_have_happened"


@dataclass(frozen=True, slots=True)
class Delivered:
    """A success status (2xx) with a complete body that is a JSON object."""

    status: int
    replayed: bool
    result: bytes


@dataclass(frozen=True, slots=True)
class NotDelivered:
    """No result came back.

    `outcome` is DID_NOT_HAPPEN or MAY_HAVE_HAPPENED, `reason` one of the words listed in evidence/README.md, `status` the
    response's status where one was read. `not_before` is the earliest time for the next attempt, in seconds since the epoch,
    where the receiver asked for one (`Retry-After`). `detail` is for a person and differs from run to run.
    """

    outcome: str
    reason: str
    status: int | None
    detail: str
    not_before: float | None = None


Outcome = Delivered | NotDelivered


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What the receiver's status query says of an operation.

    `answer` is APPLIED (then `status` and `result` are those of the effect), NOT_APPLIED or UNANSWERABLE. `detail` is for a
    person.
    """

    answer: str
    status: int | None = None
    result: bytes | None = None
    detail: str = ""


APPLIED = "applied"
NOT_APPLIED = "not_applied"
UNANSWERABLE = "unanswerable"

"""Section unknown: receivers that cannot deduplicate. The sender does not send again; it asks."""

from scenarios.catalogue.parts import AFTER_THE_RESPONSE, STATUS_QUERY, UNKEYED, crash_and_recovery, dispatcher, producer
from scenarios.model import Counts, Run, Scenario, Start, Stop

INTRODUCTION = (
    "Where a duplicate does harm and the receiver knows no keys, an attempt without an answer stays unknown until somebody "
    "who knows is asked. Recovery asks the receiver's status query; where there is none, nothing is made up and nothing is "
    "sent."
)

RECONCILE = ("--policy", "reconcile")
ONE_EACH = Counts(effects=1, receipts=1, history=1, arrivals=1)

SCENARIOS = (
    Scenario(
        section="unknown",
        name="unknown_applied",
        shows="In doubt, and it had been applied: the status query brings the result",
        look_at="one arrival, one query; the receipt says that it came by status_query",
        steps=crash_and_recovery("unknown_applied-1", STATUS_QUERY, options=RECONCILE),
        expected=ONE_EACH,
    ),
    Scenario(
        section="unknown",
        name="unknown_not_applied",
        shows="In doubt, and it had not been applied: the status query allows a second attempt",
        look_at="attempt 1 never left; the inquiry says not_applied, and attempt 2 is sent",
        steps=crash_and_recovery("unknown_not_applied-1", STATUS_QUERY, halt_at="send.before#1", options=RECONCILE),
        expected=ONE_EACH,
    ),
    Scenario(
        section="unknown",
        name="unknown_unanswerable",
        shows="In doubt, and nobody can say: it stays unknown, nothing is made up",
        look_at="the second pass ends with exit code 12 and tells the operator what to find out; no receipt, no second arrival",
        steps=(
            Start(UNKEYED),
            Run(producer("unknown_unanswerable-1")),
            Run(dispatcher(*RECONCILE), halt_at=AFTER_THE_RESPONSE, exit_code=23),
            Run(dispatcher(*RECONCILE), exit_code=12),
            Stop("receiver"),
        ),
        expected=Counts(effects=1, receipts=0, history=0, arrivals=1),
    ),
    Scenario(
        section="unknown",
        name="unknown_resent_blindly",
        shows="The same crash at the same receiver, but the sender sends again without asking",
        look_at="the status query could have told; nobody asked, and the operation was applied twice",
        counterexample=True,
        steps=crash_and_recovery("unknown_resent_blindly-1", STATUS_QUERY),
        expected=Counts(effects=2, receipts=1, history=1, arrivals=2),
    ),
)

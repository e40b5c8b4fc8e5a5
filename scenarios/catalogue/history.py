"""Section history: the sender's side after the receipt, and the lock that keeps dispatchers apart."""

from scenarios.catalogue.parts import KEYED, client, crash_and_recovery, dispatcher, producer
from scenarios.model import Await, AwaitPaused, Begin, Check, Counts, Resume, Run, Scenario, Start, Step, Stop

INTRODUCTION = (
    "With the receipt on disk nothing needs to be sent any more: recovery completes the history from it. One dispatcher at "
    "a time works on a directory, under a kernel lock that dies with its holder and that is held while the network is "
    "waited for."
)

ONE_SENT = Counts(effects=1, receipts=1, history=1, arrivals=1)


def _history(name: str, shows: str, look_at: str, steps: tuple[Step, ...], expected: Counts = ONE_SENT) -> Scenario:
    return Scenario("history", name, shows, look_at, steps, expected)


SCENARIOS = (
    _history(
        "crash_after_receipt",
        "The dispatcher dies between receipt and history record: no resend",
        "one arrival; the second pass adds the history record without sending",
        crash_and_recovery("crash_after_receipt-1", KEYED, halt_at="receipt.append.synced#1"),
    ),
    _history(
        "torn_history",
        "The dispatcher dies with half of the history record in the file",
        "the second pass cuts the torn line and writes the record whole",
        crash_and_recovery("torn_history-1", KEYED, halt_at="history.append.torn#1"),
    ),
    _history(
        "crash_after_history",
        "The dispatcher dies after everything is durable",
        "the second pass finds nothing to do",
        crash_and_recovery("crash_after_history-1", KEYED, halt_at="history.append.synced#1"),
    ),
    _history(
        "recovery_is_idempotent",
        "Three recoveries after a crash: the second and third change nothing",
        "the checkpoint after the first recovery holds the same bytes as the end",
        (
            Start(KEYED),
            Run(producer("recovery_is_idempotent-1")),
            Run(dispatcher(), halt_at="receipt.append.synced#1", exit_code=23),
            Run(dispatcher()),
            Check("after_first_recovery", ONE_SENT),
            Run(dispatcher()),
            Run(dispatcher()),
            Stop("receiver"),
        ),
    ),
    _history(
        "two_dispatchers",
        "A second dispatcher on the same directory is turned away",
        "while dispatcher_1 stands before its send, dispatcher_2 ends with exit code 13; one arrival in all",
        (
            Start(KEYED),
            Run(producer("two_dispatchers-1")),
            Begin(dispatcher(name="dispatcher_1"), pause_at="send.before#1"),
            AwaitPaused("dispatcher_1"),
            Run(dispatcher(name="dispatcher_2"), exit_code=13),
            Resume("dispatcher_1"),
            Await("dispatcher_1", exit_code=0),
            Stop("receiver"),
        ),
    ),
    _history(
        "lock_after_crash",
        "A dispatcher that died holding the lock blocks nobody",
        "dispatcher.lock is still there, and the next pass takes it at once",
        crash_and_recovery("lock_after_crash-1", KEYED, halt_at="send.before#1"),
    ),
    _history(
        "head_of_line",
        "A slow request delays the intentions behind it: the price of a lock that spans the network",
        "the checkpoint: the receiver works on intention 1, and intention 2 has not been attempted",
        (
            Start(KEYED, pause_at="effect.append.before#1"),
            Run(producer("head_of_line-1")),
            Run(producer("head_of_line-2")),
            Begin(dispatcher()),
            AwaitPaused("receiver"),
            Check("while_the_first_is_slow", Counts(effects=0, receipts=0, history=0, arrivals=1)),
            Resume("receiver"),
            Await("dispatcher", exit_code=0),
            Stop("receiver"),
        ),
        Counts(effects=2, receipts=2, history=2, arrivals=2),
    ),
    _history(
        "shared_receiver",
        "Another sender's request under its own key is served in between and disturbs nothing",
        "arrival-2 belongs to the client; the dispatcher's resend is still a replay",
        (
            Start(KEYED),
            Run(producer("shared_receiver-1")),
            Run(dispatcher(), halt_at="send.response#1", exit_code=23),
            Run(client("shared_receiver-other")),
            Run(dispatcher()),
            Stop("receiver"),
        ),
        Counts(effects=2, receipts=1, history=1, arrivals=3),
    ),
)

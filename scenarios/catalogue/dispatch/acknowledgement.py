"""P5: transport success is not the consumer's acknowledgement."""

from scenarios.catalogue.dispatch.parts import (
    ACK,
    AFTER_SEND,
    BACKED_OFF,
    BEFORE_SEND,
    BY_COMMAND,
    CHANGED_MEANWHILE,
    CLAIMED,
    ENQUEUED_AT,
    HALTED,
    ONE,
    REFUSED,
    TOKEN,
    enqueue,
    operator,
    scan,
    scan_by_command,
    scenario,
    served,
)
from scenarios.catalogue.parts import KEYED
from scenarios.model import POSTGRES, Await, AwaitPaused, Begin, Export, Program, Resume, Rows, Run, Start, Step

SENT = Rows(pending=1, attempts=1)
# min(30 * 2 ** attempt, 1800) after each of the first two sends.
SECOND_SEND, THIRD_SEND = ENQUEUED_AT + 60, ENQUEUED_AT + 60 + 120


def _ack(token: str = TOKEN, *, at: int = ENQUEUED_AT + 1) -> Program:
    return operator("ack", ONE, token, at=at, name="consumer")


def _asking(*options: str) -> Program:
    return enqueue(*ACK, *options)


def _sent_once(*steps: Step) -> tuple[Step, ...]:
    return served(KEYED, Run(_asking()), Run(scan()), Export("after_the_send", SENT), *steps)


SCENARIOS = (
    scenario(
        "acknowledged",
        "P5: a success leads back to pending, and the token ends it",
        "nothing is due after the acknowledgement: one send",
        _sent_once(Run(_ack()), Run(scan(at=SECOND_SEND))),
        counts=(1, 1, 4, 1),
        rows=Rows(acked=1, attempts=1),
    ),
    scenario(
        "never_acknowledged",
        "P5: three sends are allowed, and the token never comes",
        "sent again after 60 and 120 seconds, then a dead letter for want of an acknowledgement, with the effect applied",
        served(
            KEYED,
            Run(_asking("--max-attempts", "3")),
            Run(scan()),
            Run(scan(at=SECOND_SEND)),
            Run(scan(at=THIRD_SEND)),
        ),
        counts=(1, 3, 7, 3),
        rows=Rows(dead_letter=1, attempts=3),
    ),
    scenario(
        "ack_races_resend",
        "P5: the acknowledgement comes while the dispatch is being sent again",
        "acked from delivering; the outcome of the second send comes too late and changes nothing",
        _sent_once(
            Begin(scan(at=SECOND_SEND), pause_at=BEFORE_SEND),
            AwaitPaused("scheduler"),
            Run(_ack(at=SECOND_SEND)),
            Resume("scheduler"),
            Await("scheduler", exit_code=0),
        ),
        counts=(1, 1, 5, 2),
        rows=Rows(acked=1, attempts=2),
    ),
    scenario(
        "ack_loses_to_claim",
        "P5: the row is claimed between the acknowledgement's reading and its writing",
        "the first acknowledgement changes nothing and says so (exit code 1); the same once more is recorded",
        _sent_once(
            Begin(_ack(at=SECOND_SEND), pause_at="dispatch.ack.before#1"),
            AwaitPaused("consumer"),
            Begin(scan(at=SECOND_SEND), pause_at=CLAIMED),
            AwaitPaused("scheduler"),
            Resume("consumer"),
            Await("consumer", exit_code=CHANGED_MEANWHILE),
            Run(_ack(at=SECOND_SEND)),
            Resume("scheduler"),
            Await("scheduler", exit_code=0),
        ),
        counts=(1, 1, 5, 2),
        rows=Rows(acked=1, attempts=2),
    ),
    scenario(
        "ack_meets_an_open_outcome",
        "P5: the acknowledgement comes while the outcome of the send is written and not committed",
        "it waits for the outcome, finds that the row has changed, and says so (exit code 1); the same once more is recorded",
        served(
            KEYED,
            Run(_asking()),
            Begin(scan(), pause_at="dispatch.outcome.written#1"),
            AwaitPaused("scheduler"),
            Begin(_ack(), pause_at="dispatch.ack.before#1"),
            AwaitPaused("consumer"),
            Resume("consumer"),
            Resume("scheduler"),
            Await("scheduler", exit_code=0),
            Await("consumer", exit_code=CHANGED_MEANWHILE),
            Run(_ack()),
        ),
        counts=(1, 1, 4, 1),
        rows=Rows(acked=1, attempts=1),
        store=POSTGRES,
    ),
    scenario(
        "ack_before_dead_letter",
        "P5: the acknowledgement comes in the last send, before its outcome",
        "acked; the outcome, a dead letter, comes too late",
        served(
            KEYED,
            Run(_asking("--max-attempts", "1")),
            Begin(scan(), pause_at=AFTER_SEND),
            AwaitPaused("scheduler"),
            Run(_ack()),
            Resume("scheduler"),
            Await("scheduler", exit_code=0),
        ),
        counts=(1, 0, 3, 1),
        rows=Rows(acked=1, attempts=1),
    ),
    scenario(
        "ack_after_dead_letter",
        "P5: the acknowledgement comes after the last outcome",
        "refused (exit code 2): the graph has no way from dead letter to acked",
        served(KEYED, Run(_asking("--max-attempts", "1")), Run(scan()), Run(_ack(), exit_code=REFUSED)),
        counts=(1, 1, 3, 1),
        rows=Rows(dead_letter=1, attempts=1),
    ),
    scenario(
        "wrong_token",
        "P5: a token that is not the dispatch's",
        "refused (exit code 2); the row is as it was",
        _sent_once(Run(_ack("0" * 32), exit_code=REFUSED)),
        counts=(1, 1, 3, 1),
        rows=SENT,
    ),
    scenario(
        "success_is_not_storage",
        "A notify command exits 0 before its destination stored anything, and the destination dies",
        "delivered, says the outbox, and nothing will ever be sent again; there is no effect",
        (
            Start(KEYED, halt_at="effect.append.before#1"),
            Run(enqueue(to=BY_COMMAND)),
            Run(scan_by_command("--careless")),
            Await("receiver", exit_code=HALTED),
            *served(KEYED, Run(scan_by_command("--careless", at=BACKED_OFF))),
        ),
        counts=(0, 1, 3, 1),
        rows=Rows(delivered=1, attempts=1),
        counterexample=True,
    ),
    scenario(
        "storage_is_acknowledged",
        "The same command and the same death, with an acknowledgement asked for",
        "the success of attempt 1 is not the end; attempt 2 is stored, and the consumer says so",
        (
            Start(KEYED, halt_at="effect.append.before#1"),
            Run(enqueue(*ACK, to=BY_COMMAND)),
            Run(scan_by_command("--careless")),
            Await("receiver", exit_code=HALTED),
            *served(KEYED, Run(scan_by_command(at=BACKED_OFF)), Run(_ack(at=BACKED_OFF))),
        ),
        counts=(1, 2, 6, 2),
        rows=Rows(acked=1, attempts=2),
    ),
)

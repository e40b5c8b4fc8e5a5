"""The systems that are explored: data, no behaviour. Each is correct; the broken ones are in `scenarios.oracle`."""

from dataclasses import replace

from scenarios.catalogue.dispatch import parts as dispatch
from scenarios.catalogue.parts import QUESTION, client, dispatcher, producer, receiver, relay
from scenarios.explore.model import Allowed, Reader, Role, Subject
from scenarios.explore.readers import read_journals, read_sqlite
from scenarios.model import SQLITE, Program

KEYS = ("first", "second")
OTHER_QUESTION = '{"question":"And what does it say now?"}'
PLANTED = client("planted", '{"question":"Who counts?"}')
ONE_EFFECT = Allowed()
# Without keys every attempt may be applied, and a fault may cost one attempt more.
AT_LEAST_ONE = Allowed(each_fault=1)
# Who asks before it sends again is spared the faults, not what the network doubles.
ONE_UNLESS_DOUBLED = Allowed(each_copy=1)

RECEIVER_OWNS = ("arrival", "arrivals", "answer", "effect", "effects", "key", "keys", "query")
DISPATCHER_OWNS = ("attempt", "attempts", "outcome", "inquiry", "receipt", "receipts", "history", "send")
TIME = ("--now", "{now}")
# A held response would be waited for in earnest otherwise.
IMPATIENT = ("--timeout-seconds", "0.5")


def _named(program: Program, name: str) -> Program:
    return replace(program, process=name)


PRODUCERS = (
    Role(_named(producer(KEYS[0], QUESTION), "producer"), once=True, owns=("intention", "intentions"), stoppable=False),
    Role(_named(producer(KEYS[1], OTHER_QUESTION), "second_producer"), once=True, stoppable=False),
)


def journal(
    name: str, receiver_program: Program, sender: Program, allowed: Allowed, *, read: Reader = read_journals
) -> Subject:
    """Two intentions in journals, sent by `sender` to `receiver_program`."""
    return Subject(
        name=name,
        roles=(
            *PRODUCERS,
            Role(receiver_program, server=True, owns=RECEIVER_OWNS),
            Role(sender, owns=DISPATCHER_OWNS),
        ),
        read=read,
        operations=KEYS,
        plant=PLANTED,
        allowed=allowed,
    )


def outbox(kind: str, allowed: Allowed) -> Subject:
    """A dispatch in SQLite, sent by scans."""
    return Subject(
        name=f"dispatch/{kind}",
        roles=(
            Role(dispatch.timed(dispatch.enqueue(*dispatch.DEDUP)), once=True, owns=("dispatch.enqueue",)),
            Role(receiver(kind), server=True, owns=RECEIVER_OWNS),
            Role(dispatch.timed(dispatch.scan()), owns=("dispatch.claim", "dispatch.send", "dispatch.outcome")),
        ),
        read=read_sqlite,
        operations=(dispatch.ONE,),
        plant=PLANTED,
        allowed=allowed,
        store=SQLITE,
    )


def wired(subject: Subject) -> Subject:
    """The same with a relay between the sender and the receiver."""
    roles = []
    for role in subject.roles:
        through = tuple(each.replace("{receiver.port}", "{relay.port}") for each in role.program.arguments)
        if role.server:
            roles += [role, Role(relay(), server=True)]
        elif through != role.program.arguments:
            roles.append(replace(role, program=replace(role.program, arguments=(*through, *IMPATIENT))))
        else:
            roles.append(role)
    return replace(subject, roles=tuple(roles))


RECONCILE = ("--policy", "reconcile")
SUBJECTS: tuple[Subject, ...] = (
    journal("journal/keyed", receiver("keyed"), dispatcher(*TIME), ONE_EFFECT),
    journal("journal/unkeyed", receiver("unkeyed"), dispatcher(*TIME), AT_LEAST_ONE),
    journal("journal/capacity", receiver("capacity", "--capacity", "3"), dispatcher(*TIME), ONE_EFFECT),
    journal("journal/status-query", receiver("status-query"), dispatcher(*TIME, *RECONCILE), ONE_UNLESS_DOUBLED),
    outbox("keyed", ONE_EFFECT),
    outbox("unkeyed", AT_LEAST_ONE),
)

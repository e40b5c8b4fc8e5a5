"""The systems that are explored: data, no behaviour. Each is correct; the broken ones are in `scenarios.oracle`."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from outbox.dispatch.edges import STATUSES
from scenarios.catalogue.dispatch import parts as dispatch
from scenarios.catalogue.parts import QUESTION, client, dispatcher, producer, receiver, relay
from scenarios.explore.model import Allowed, Reader, Role, Subject
from scenarios.explore.readers import read_database, read_journals
from scenarios.model import Program

KEYS = ("first", "second")
OTHER_QUESTION = '{"question":"And what does it say now?"}'
PLANTED = client("planted", '{"question":"Who counts?"}')
ONE_EFFECT = Allowed()
# Without keys every attempt may be applied, and a fault may cost one attempt more.
AT_LEAST_ONE = Allowed(each_fault=1)
# Who asks before it sends again is spared the faults, not what the network doubles.
ONE_UNLESS_DOUBLED = Allowed(each_copy=1)

RECEIVER_OWNS = ("arrival", "arrivals", "answer", "effect", "effects")
DISPATCHER_OWNS = ("attempt", "attempts", "outcome", "receipt", "receipts", "history", "send")
# Only who asks before it sends again has these, and only who can be asked.
ASKED_OWNS, ASKING_OWNS = ("query",), ("inquiry",)
TIME = ("--now", "{now}")
# A held response would be waited for in earnest otherwise.
IMPATIENT = ("--timeout-seconds", "1.5")


def _named(program: Program, name: str) -> Program:
    return replace(program, process=name)


PRODUCERS = (
    Role(_named(producer(KEYS[0], QUESTION), "producer"), once=True, owns=("intention", "intentions"), stoppable=False),
    Role(_named(producer(KEYS[1], OTHER_QUESTION), "second_producer"), once=True, stoppable=False),
)


def journal(
    name: str,
    receiver_program: Program,
    sender: Program,
    allowed: Allowed,
    *,
    read: Reader = read_journals,
    asks: bool = False,
) -> Subject:
    """Two intentions in journals, sent by `sender` to `receiver_program`; `asks`: whether it asks about what it is not told."""
    return Subject(
        name=name,
        roles=(
            *PRODUCERS,
            Role(receiver_program, server=True, owns=(*RECEIVER_OWNS, *(ASKED_OWNS if asks else ()))),
            Role(sender, owns=(*DISPATCHER_OWNS, *(ASKING_OWNS if asks else ()))),
        ),
        read=read,
        operations=KEYS,
        plant=PLANTED,
        allowed=allowed,
    )


ENQUEUE = dispatch.timed(dispatch.enqueue(*dispatch.DEDUP))
SCAN = Role(
    dispatch.timed(dispatch.scan()),
    owns=("dispatch.claim", "dispatch.send", "dispatch.outcome"),
    lease_seconds=dispatch.LEASE_SECONDS,
)


def outbox(name: str, enqueue: Program, roles: Sequence[Role], allowed: Allowed = ONE_EFFECT) -> Subject:
    """A dispatch in a database, produced once; then `roles`."""
    return Subject(
        name=name,
        roles=(Role(enqueue, once=True, owns=("dispatch.enqueue",)), *roles),
        read=read_database,
        operations=(dispatch.ONE,),
        plant=PLANTED,
        allowed=allowed,
    )


def serving(kind: str, *options: str) -> Role:
    """A receiver of this kind."""
    return Role(receiver(kind, *options), server=True, owns=RECEIVER_OWNS)


def operating(command: str, *arguments: str, name: str = "operator", done: frozenset[int] = frozenset({0})) -> Role:
    """An act on the outbox's own command line. `done`: also the codes that say that there is nothing to do."""
    program = replace(dispatch.operator(command, *arguments, at=0, name=name))
    at = program.arguments.index("--now") + 1
    program = replace(program, arguments=(*program.arguments[:at], "{now}"))
    return Role(program, done=done, owns=(f"dispatch.{command}",), stoppable=False)


REFUSED = frozenset({0, 2})
_ACK = operating("ack", dispatch.ONE, dispatch.TOKEN, name="consumer", done=REFUSED)
CONSUMER = replace(
    _ACK,
    program=Program(
        "consumer", "scenarios.explore.consumer", ("receiver/effects.jsonl", dispatch.ONE, *_ACK.program.arguments)
    ),
)
# Nobody listens when it runs first: the only attempt fails, and the dispatch is a dead letter.
FAILING_SCAN = replace(SCAN, program=replace(SCAN.program, process="first_scan"), once=True, owns=())
ONE_ATTEMPT = dispatch.timed(dispatch.enqueue(*dispatch.DEDUP, "--max-attempts", "1"))


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
    journal("journal/status-query", receiver("status-query"), dispatcher(*TIME, *RECONCILE), ONE_UNLESS_DOUBLED, asks=True),
    outbox("dispatch/keyed", ENQUEUE, (serving("keyed"), SCAN)),
    outbox("dispatch/unkeyed", ENQUEUE, (serving("unkeyed"), SCAN), AT_LEAST_ONE),
    outbox(
        "dispatch-ack/keyed",
        dispatch.timed(dispatch.enqueue(*dispatch.DEDUP, *dispatch.ACK)),
        (serving("keyed"), SCAN, CONSUMER),
    ),
    replace(
        outbox(
            "dispatch-operator/keyed",
            ONE_ATTEMPT,
            (
                FAILING_SCAN,
                operating("retry", dispatch.ONE, done=REFUSED),
                serving("keyed"),
                SCAN,
                # A purge frees the deduplication key: not before the producer is sure not to repeat itself.
                replace(
                    operating("purge", "--status", "delivered", "--older-than-seconds", "3000", name="purger"), after="producer"
                ),
            ),
        ),
        # Here operators go on until there is nothing left to look after.
        read=partial(read_database, unfinished=STATUSES),
    ),
)

"""What the oracle's subjects are made of: the smallest systems in which a mistake shows, one operation where one is enough."""

from collections.abc import Sequence

from scenarios.catalogue.dispatch import parts as dispatch
from scenarios.catalogue.parts import QUESTION, dispatcher, producer, receiver
from scenarios.explore.model import Allowed, Role, Subject
from scenarios.explore.readers import read_database, read_journals
from scenarios.explore.subjects import DISPATCHER_OWNS, KEYS, PLANTED, RECEIVER_OWNS, TIME
from scenarios.model import Program

RECEIVERS, DISPATCHERS, SCANS, OPERATORS = (
    f"scenarios.oracle.{name}" for name in ("receivers", "dispatchers", "scans", "operators")
)
KEYED, UNKEYED = receiver("keyed"), receiver("unkeyed")
CLOCK_FILE = "clock"
CLOCK = Role(Program("clock", OPERATORS, ("clock", *TIME, CLOCK_FILE)), stoppable=False)
SCAN_OWNS = ("dispatch.claim", "dispatch.send", "dispatch.outcome", "recorded", "selected")
SHORT_ROUNDS = 130  # a backoff is over in the next round, a day is not
LANE = ("--lane", "orders")


def prefixed(name: str) -> str:
    """The name of an oracle's subject."""
    return f"oracle/{name}"


def bad_receiver(variant: str, *options: str) -> Program:
    """A receiver of `scenarios.oracle.kinds`."""
    return Program("receiver", RECEIVERS, (variant, "--dir", "receiver", "--port", "{receiver.port}", *options))


def bad_sender(variant: str) -> Program:
    """A sender of `scenarios.oracle.dispatchers`."""
    url = "http://127.0.0.1:{receiver.port}"
    return Program("dispatcher", DISPATCHERS, (variant, "--dir", "outbox", "--receiver", url, *TIME))


def policy(name: str) -> Program:
    """The real dispatcher with one of its mistaken policies."""
    return dispatcher(*TIME, "--policy", name)


RIGHT_SENDER = bad_sender("correct")


def journal(
    name: str,
    sender: Program = RIGHT_SENDER,
    to: Program = KEYED,
    *,
    body: str = QUESTION,
    before: Sequence[Role] = (),
    allowed: Allowed = Allowed(),  # noqa: B008 - a frozen value
) -> Subject:
    """One intention in a journal, sent by `sender` to the receiver `to`."""
    return Subject(
        name=prefixed(name),
        roles=(
            *before,
            Role(producer(KEYS[0], body), once=True, owns=("intention", "intentions"), stoppable=False),
            Role(to, server=True, owns=(*RECEIVER_OWNS, "begun", "completed", "progress", "failure", "failures")),
            Role(sender, owns=(*DISPATCHER_OWNS, "pid", "lookup", "newline")),
        ),
        read=read_journals,
        operations=KEYS[:1],
        plant=PLANTED,
        allowed=allowed,
    )


def bad_scan(variant: str, *options: str) -> Program:
    """A scan with the books of a variant."""
    arguments = (variant, "--db", "{db}", *TIME, "--receiver", f"{dispatch.HOST}={{receiver.port}}", *options)
    return Program("scheduler", SCANS, arguments)


RIGHT_SCAN = bad_scan("plain")


def operator(name: str, command: str, *options: str) -> Program:
    """A program of `scenarios.oracle.operators` on the database."""
    return Program(name, OPERATORS, (command, "--db", "{db}", *TIME, *options))


def enqueuers(*options: str, ids: Sequence[str] = (dispatch.ONE,)) -> tuple[Role, ...]:
    """A producer for each dispatch; enqueueing again is harmless."""
    names = ("producer", "second_producer", "third_producer")
    return tuple(
        Role(
            dispatch.timed(dispatch.enqueue("--dedup-key", f"order-{each[-1]}", *options, ids=(each,), name=name)),
            once=True,
            owns=("dispatch.enqueue",) if name == names[0] else (),
        )
        for name, each in zip(names, ids, strict=False)
    )


def outbox(
    name: str,
    scan: Program = RIGHT_SCAN,
    *,
    producers: Sequence[Role] | None = None,
    to: Program = KEYED,
    before: Sequence[Role] = (),
    after: Sequence[Role] = (),
    operations: tuple[str, ...] = (dispatch.ONE,),
    allowed: Allowed = Allowed(),  # noqa: B008 - a frozen value
    round_seconds: int = 4000,
) -> Subject:
    """Dispatches in SQLite, sent by `scan`; `before` and `after` it other programs run in each round."""
    return Subject(
        name=prefixed(name),
        roles=(
            *(before if CLOCK in before else ()),
            *(enqueuers(ids=operations) if producers is None else producers),
            Role(to, server=True, owns=RECEIVER_OWNS),
            *(role for role in before if role != CLOCK),
            Role(scan, owns=SCAN_OWNS, lease_seconds=dispatch.LEASE_SECONDS),
            *after,
        ),
        read=read_database,
        operations=operations,
        plant=PLANTED,
        allowed=allowed,
        round_seconds=round_seconds,
    )

"""The mistakes around a dispatch outbox in a database. Data, as beside it."""

from scenarios.catalogue.dispatch import parts as dispatch
from scenarios.explore.model import Allowed, Role, Subject
from scenarios.explore.subjects import CONSUMER
from scenarios.explore.verdicts import DUPLICATE, LOST, PHANTOM, STUCK
from scenarios.model import Program
from scenarios.oracle import scans
from scenarios.oracle.parts import CLOCK, CLOCK_FILE, LANE, SHORT_ROUNDS, bad_receiver, bad_scan, enqueuers, operator, outbox
from scenarios.oracle.variant import BOTH, PAUSES, POINTS, WIRE, Variant

PROGRAMS = (scans,)  # imported for its declarations
ONE, TWO, THREE = dispatch.ONE, dispatch.TWO, dispatch.THREE
FEW = ("--max-attempts", "3")
LAST = ("--max-attempts", "1")
MAY_DIE = Allowed(may_end=("dead_letter",))
MAY_EXPIRE = Allowed(may_end=("expired",))
WEST, EAST = ("--zone", "EST5"), ("--zone", "PKT-5")
DEADLINE = (
    Role(
        operator("producer", "enqueue", "--to", dispatch.ROUTE, "--expires-in", "600", ONE),
        once=True,
        owns=("dispatch.enqueue",),
    ),
)
PURGED = ("purge", "--older-than", "3600")
ACKED = ("ack", "--receiver-dir", "receiver", ONE)
ASKS_ACK = enqueuers(*dispatch.ACK, "--max-attempts", "2")


def _laned(name: str, books: str) -> Subject:
    return outbox(name, bad_scan(books), producers=enqueuers(*LANE, ids=(ONE, TWO)), operations=(ONE, TWO))


def _patience(name: str, books: str) -> Subject:
    to = bad_receiver("patient", "--clock", CLOCK_FILE)
    return outbox(name, bad_scan(books), producers=enqueuers(*FEW), to=to, before=(CLOCK,), round_seconds=SHORT_ROUNDS)


def _three(name: str, books: str) -> Subject:
    ids = (ONE, TWO, THREE)
    return outbox(name, bad_scan(books), producers=enqueuers(*LAST, ids=ids), operations=ids, allowed=MAY_DIE)


def _limited(name: str, scan_program: Program) -> Subject:
    return outbox(name, scan_program, producers=enqueuers(*LAST), allowed=MAY_DIE)


def _zoned(name: str, books: str, *zone: str) -> Subject:
    return outbox(name, bad_scan(books, *zone), producers=enqueuers(*FEW))


SCAN = outbox("right-scan")
LIMITED = _limited("right-last-attempt", bad_scan("plain"))

SCANS = (
    Variant(
        outbox("delete-on-take", bad_scan("delete-on-take")),
        SCAN,
        (POINTS,),
        (LOST, STUCK),
        "a row is taken by deleting it",
        "F02",
    ),
    Variant(
        _limited("uncounted-attempts", bad_scan("uncounted-attempts")),
        LIMITED,
        (POINTS,),
        (PHANTOM,),
        "attempts are counted in the process",
        "F03",
    ),
    Variant(
        _limited("recorded-books", dispatch.timed(dispatch.scan(*dispatch.RECORDED))),
        _limited("right-books", dispatch.timed(dispatch.scan())),
        (POINTS,),
        (PHANTOM,),
        "the books as recorded: a last attempt that was never finished is made once more",
        "F03",
    ),
    Variant(
        outbox("bound-to-owner", bad_scan("bound-to-owner")),
        SCAN,
        (POINTS,),
        (STUCK,),
        "a claim belongs to a dead owner",
        "F14",
    ),
    Variant(
        _zoned("local-time-west", "local-time", *WEST),
        _zoned("right-time-west", "plain", *WEST),
        BOTH,
        (STUCK,),
        "due times are stamped in UTC and read as local time, five hours west",
        "F15",
    ),
    Variant(
        _zoned("local-time-east", "local-time", *EAST),
        _zoned("right-time-east", "plain", *EAST),
        (POINTS,),
        (LOST,),
        "the same, five hours east: all attempts are burnt at once",
        "F15",
    ),
    Variant(
        _three("stops-at-bad-item", "stops-at-bad-item"),
        _three("right-three", "plain"),
        (POINTS,),
        (STUCK,),
        "recovery stops at the first bad row",
        "F16",
    ),
    Variant(
        _laned("overtaking", "overtaking"), _laned("right-lane", "plain"), (WIRE,), (PHANTOM,), "a lane is overtaken", "F17"
    ),
    Variant(
        outbox("expiry-at-enqueue-only", bad_scan("expiry-at-enqueue-only"), producers=DEADLINE, allowed=MAY_EXPIRE),
        outbox("right-expiry", producers=DEADLINE, allowed=MAY_EXPIRE),
        BOTH,
        (PHANTOM,),
        "the deadline is looked at when it is enqueued only",
        "F18",
    ),
    Variant(
        _patience("retry-after-ignored", "retry-after-ignored"),
        _patience("right-patience", "plain"),
        (POINTS,),
        (LOST,),
        "`Retry-After` is not read, and the attempts are burnt",
        "F19",
    ),
    Variant(
        outbox("purge-in-flight", before=(Role(operator("retention", *PURGED, "--whatever-its-status")),)),
        outbox("right-purge", before=(Role(operator("retention", *PURGED), owns=("dispatch.purge",)),)),
        BOTH,
        (LOST,),
        "a purge by age deletes what is in flight",
    ),
    Variant(
        outbox(
            "late-acknowledgement",
            producers=ASKS_ACK,
            after=(Role(operator("consumer", *ACKED), owns=("dispatch.ack",)),),
            allowed=MAY_DIE,
        ),
        outbox("right-acknowledgement", producers=ASKS_ACK, after=(CONSUMER,), allowed=MAY_DIE),
        (POINTS,),
        (PHANTOM,),
        "an acknowledgement brings a dead letter to life",
    ),
    Variant(
        outbox("unguarded-claim", bad_scan("unguarded-claim")),
        outbox("right-guarded-claim", bad_scan("guarded-claim")),
        (PAUSES,),
        (DUPLICATE, PHANTOM),
        "a claim does not ask whether the row is still as it was seen",
    ),
    Variant(
        outbox("unguarded-outcome", bad_scan("unguarded-outcome")),
        SCAN,
        (PAUSES,),
        (DUPLICATE, PHANTOM),
        "an outcome is written whoever's the row is now",
        "F13",
    ),
    Variant(
        outbox("no-lease", bad_scan("no-lease")),
        SCAN,
        (PAUSES,),
        (PHANTOM,),
        "a claim keeps nobody away, not even for a moment",
        "F13",
    ),
)

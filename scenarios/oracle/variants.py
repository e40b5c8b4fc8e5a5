"""The variants: each a system with one mistake, its correct twin, the modes that claim to see it, and what they must see.

Data only. What a mistake is, and what is right instead, stands beside its code; `shows` says it in a line.
"""

from dataclasses import dataclass

from scenarios.catalogue.dispatch import parts as dispatch
from scenarios.catalogue.parts import receiver
from scenarios.explore.model import Allowed, Role, Subject
from scenarios.explore.subjects import CONSUMER
from scenarios.explore.verdicts import DUPLICATE, LOST, PHANTOM, STUCK
from scenarios.model import Program
from scenarios.oracle import dispatchers, kinds, scans
from scenarios.oracle.parts import (
    CLOCK,
    CLOCK_FILE,
    LANE,
    SHORT_ROUNDS,
    UNKEYED,
    bad_receiver,
    bad_scan,
    bad_sender,
    enqueuers,
    journal,
    operator,
    outbox,
    policy,
)

POINTS, WIRE, PAUSES = "points", "wire", "pauses"
BOTH = (POINTS, WIRE)
PROGRAMS = (dispatchers, kinds, scans)  # imported for their declarations


@dataclass(frozen=True, slots=True)
class Variant:
    """A mistake to be caught. `modes` claim to see it, all together as exactly these `kinds`; `field_case` as in
    docs/field-cases.md, where it is one."""

    subject: Subject
    twin: Subject
    modes: tuple[str, ...]
    kinds: tuple[str, ...]
    shows: str
    field_case: str | None = None

    @property
    def name(self) -> str:
        """The subject's name without its beginning."""
        return self.subject.name.rpartition("/")[2]


TWO_MEMBERS = '{"question":"What does the counter say?","language":"en"}'
SENDER = journal("right-sender")
SPLIT = journal("right-split-line", bad_sender("split-line"))
BODY = journal("right-two-members", body=TWO_MEMBERS)
LOCKED = journal("right-locked", to=UNKEYED)
WARMING = journal("right-warming", to=bad_receiver("warming"))
FORGETFUL = ("--clock", CLOCK_FILE, "--retention-seconds")
REMEMBERS = journal("right-retention", to=receiver("forgetful", *FORGETFUL, "86400"), before=(CLOCK,))

SENDERS = (
    Variant(
        journal("mark-first", policy("mark-before-send")),
        SENDER,
        BOTH,
        (LOST,),
        "the receipt is written before the send",
        "F01",
    ),
    Variant(
        journal("early-receipt", bad_sender("early-receipt")),
        SENDER,
        BOTH,
        (LOST,),
        "the receipt is written when the send has begun, before a response is read",
        "F01",
    ),
    Variant(
        journal("key-per-attempt", policy("key-per-attempt")),
        SENDER,
        BOTH,
        (DUPLICATE,),
        "every attempt has a key of its own",
        "F05",
    ),
    Variant(
        journal("key-replaced", bad_sender("key-of-its-own")),
        SENDER,
        BOTH,
        (DUPLICATE,),
        "the transport replaces the key",
        "F05",
    ),
    Variant(
        journal("body-rebuilt", policy("rebuild-body-per-attempt"), body=TWO_MEMBERS),
        BODY,
        BOTH,
        (STUCK,),
        "the body is serialised again at each attempt, its members in another order",
        "F11",
    ),
    Variant(
        journal("torn-tail", bad_sender("torn-tail")),
        SENDER,
        (POINTS,),
        (LOST, STUCK),
        "records are appended to a torn tail",
        "F21",
    ),
    Variant(
        journal("glued-line", bad_sender("glued-line")),
        SPLIT,
        (POINTS,),
        (LOST, STUCK),
        "a record is appended to one that lacks its newline",
        "F22",
    ),
    Variant(journal("pid-lock", bad_sender("pid-lock")), SENDER, (POINTS,), (STUCK,), "a file with a pid is the lock", "F24"),
    Variant(
        journal("hidden-resend", bad_sender("hidden-resend")),
        SENDER,
        (WIRE,),
        (PHANTOM,),
        "the HTTP library sends again by itself",
        "F04",
    ),
    Variant(journal("any-status", bad_sender("any-status")), SENDER, (WIRE,), (LOST, PHANTOM), "any response is a success"),
    Variant(
        journal("redirect-is-success", bad_sender("below-400")),
        SENDER,
        (WIRE,),
        (LOST, PHANTOM),
        "a redirect that nobody followed is a success",
        "F12",
    ),
    Variant(
        journal("short-response", bad_sender("short-response")),
        SENDER,
        (WIRE,),
        (PHANTOM,),
        "a response that was cut off is a result",
    ),
    Variant(
        journal("look-up-outside-the-lock", bad_sender("look-up-outside-the-lock"), UNKEYED),
        LOCKED,
        (PAUSES,),
        (DUPLICATE,),
        "what has no receipt is looked up before the lock is taken",
        "F09",
    ),
)

RECEIVERS = (
    Variant(
        journal("effect-then-key", to=receiver("effect-then-key")),
        SENDER,
        (POINTS,),
        (DUPLICATE,),
        "first the effect, then the key",
    ),
    Variant(
        journal("key-then-effect", to=receiver("key-then-effect")),
        SENDER,
        (POINTS,),
        (LOST, PHANTOM),
        "first the key, then the effect",
        "F06",
    ),
    Variant(
        journal("volatile-registry", to=receiver("volatile-registry")), SENDER, (POINTS,), (DUPLICATE,), "keys live in memory"
    ),
    Variant(
        journal("forgets-too-soon", to=receiver("forgetful", *FORGETFUL, "60"), before=(CLOCK,)),
        REMEMBERS,
        BOTH,
        (DUPLICATE,),
        "keys are forgotten before the last retry comes",
    ),
    Variant(
        journal("stored-error", to=bad_receiver("stored-error")),
        WARMING,
        (POINTS,),
        (STUCK,),
        "a 503 before any effect is stored as the key's result",
        "F10",
    ),
    Variant(
        journal("stuck-in-progress", to=bad_receiver("stuck-in-progress")),
        SENDER,
        (POINTS,),
        (STUCK,),
        "a key stays in progress when its receiver dies",
        "F07",
    ),
    Variant(
        journal("progress-expires", to=bad_receiver("expiring-progress", "--clock", CLOCK_FILE), before=(CLOCK,)),
        REMEMBERS,
        (POINTS,),
        (DUPLICATE,),
        "a key in progress expires, though its effect may be there",
        "F08",
    ),
    Variant(
        journal("error-text", to=bad_receiver("error-text")),
        SENDER,
        BOTH,
        (STUCK,),
        "a duplicate is recognised by the text of an error",
        "F20",
    ),
)

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
        outbox("delete-on-take", bad_scan("delete-on-take")), SCAN, (POINTS,), (LOST,), "a row is taken by deleting it", "F02"
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
        outbox("bound-to-owner", bad_scan("bound-to-owner")), SCAN, BOTH[:1], (STUCK,), "a claim belongs to a dead owner", "F14"
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
)

VARIANTS = (*SENDERS, *RECEIVERS, *SCANS)


def subjects() -> tuple[Subject, ...]:
    """All variants' subjects and their twins, each once."""
    found = {each.name: each for variant in VARIANTS for each in (variant.subject, variant.twin)}
    return tuple(found.values())

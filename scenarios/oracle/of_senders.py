"""The mistakes of senders that keep journals. Data; what each is, and what is right instead, stands beside its code."""

from scenarios.explore.verdicts import DUPLICATE, LOST, PHANTOM, STUCK, UNDECLARED
from scenarios.oracle import dispatchers
from scenarios.oracle.parts import UNKEYED, bad_sender, journal, policy
from scenarios.oracle.variant import BOTH, LINES, PAUSES, POINTS, SYSCALLS, WIRE, Variant

PROGRAMS = (dispatchers,)  # imported for its declarations
# More of them than there are rounds, so that no attempt has the first one's order again.
MANY_MEMBERS = '{"question":"What does the counter say?","language":"en","urgent":false,"copies":1,"from":"a reader"}'
SENDER = journal("right-sender")
SPLIT = journal("right-split-line", bad_sender("split-line"))
BODY = journal("right-many-members", body=MANY_MEMBERS)
LOCKED = journal("right-locked", to=UNKEYED)
NAMED = journal("right-named-sender", bad_sender("replaced-name"))
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
        (*BOTH, LINES),
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
        journal("body-rebuilt", policy("rebuild-body-per-attempt"), body=MANY_MEMBERS),
        BODY,
        BOTH,
        (PHANTOM, STUCK),
        "the body is serialised again at each attempt, its members in another order",
        "F11",
    ),
    Variant(
        journal("torn-tail", bad_sender("torn-tail")),
        SENDER,
        (POINTS,),
        (LOST, PHANTOM, STUCK),
        "records are appended to a torn tail",
        "F21",
    ),
    Variant(
        journal("glued-line", bad_sender("glued-line")),
        SPLIT,
        (POINTS,),
        (LOST, PHANTOM, STUCK),
        "a record is appended to one that lacks its newline",
        "F22",
    ),
    Variant(
        journal("rewritten-name", bad_sender("rewritten-name")),
        NAMED,
        (LINES,),
        (DUPLICATE,),
        "the file with the name that begins each key is emptied and written anew in place",
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
        journal("redirect-followed", bad_sender("redirect-followed")),
        SENDER,
        (WIRE,),
        (PHANTOM,),
        "a redirect is followed, and the key is lost on the way",
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
    Variant(
        journal("sync-error-ignored", bad_sender("sync-error-ignored")),
        SENDER,
        (SYSCALLS,),
        (LOST,),
        "an error of fsync is ignored",
    ),
    Variant(
        journal("sync-retried", bad_sender("sync-retried")),
        SENDER,
        (SYSCALLS,),
        (LOST,),
        "an fsync that failed is made again and believed",
    ),
    Variant(
        journal("short-write-ignored", bad_sender("short-write-ignored")),
        SENDER,
        (SYSCALLS,),
        (LOST, PHANTOM),
        "what was written short is taken for whole",
    ),
    Variant(
        journal("refusal-untold", bad_sender("refusal-untold")),
        SENDER,
        (SYSCALLS,),
        (UNDECLARED,),
        "an error of the machine ends in a traceback",
    ),
)

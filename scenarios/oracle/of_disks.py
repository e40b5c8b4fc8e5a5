"""The mistakes that only the loss of power shows. Data; what each is, and what is right instead, stands beside its code."""

from scenarios.explore.verdicts import LOST, PHANTOM
from scenarios.oracle import disks
from scenarios.oracle.of_senders import SENDER
from scenarios.oracle.parts import bad_receiver, bad_scan, bad_sender, journal, outbox
from scenarios.oracle.variant import POWER, Variant

PROGRAMS = (disks,)  # imported for its declarations
REPLACED = journal("right-replaced", bad_sender("replaced"))
SCAN = outbox("right-synced-scan")

DISKS = (
    Variant(journal("never-synced", bad_sender("never-synced")), SENDER, (POWER,), (LOST, PHANTOM), "records are not synced"),
    Variant(
        journal("nameless-yet", bad_sender("nameless-yet")),
        SENDER,
        (POWER,),
        (LOST, PHANTOM),
        "files are synced, and the directory in which they were made is not",
    ),
    Variant(
        journal("renamed-first", bad_sender("renamed-first")),
        REPLACED,
        (POWER,),
        (LOST, PHANTOM),
        "a file is renamed over another one before its content is synced",
    ),
    Variant(
        journal("name-forgotten", bad_sender("name-forgotten")),
        REPLACED,
        (POWER,),
        (LOST, PHANTOM),
        "a file is replaced by a rename, and its directory is not synced",
        "F23",
    ),
    Variant(
        journal("answers-first", to=bad_receiver("answers-first")),
        SENDER,
        (POWER,),
        (LOST, PHANTOM),
        "an effect is answered before it is synced",
    ),
    Variant(
        outbox("commit-without-sync", bad_scan("commit-without-sync")),
        SCAN,
        (POWER,),
        (LOST, PHANTOM),
        "claims are committed without a sync",
    ),
)

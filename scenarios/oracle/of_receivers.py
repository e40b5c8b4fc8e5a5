"""The mistakes of receivers. Data; those that `receivers` ships as counterexamples are taken as they are."""

from scenarios.catalogue.parts import receiver
from scenarios.explore.verdicts import DUPLICATE, LOST, PHANTOM, STUCK
from scenarios.oracle import kinds
from scenarios.oracle.of_senders import SENDER
from scenarios.oracle.parts import CLOCK, CLOCK_FILE, bad_receiver, journal
from scenarios.oracle.variant import BOTH, LINES, POINTS, Variant

PROGRAMS = (kinds,)  # imported for its declarations
WARMING = journal("right-warming", to=bad_receiver("warming"))
FORGETFUL = ("--clock", CLOCK_FILE, "--retention-seconds")
REMEMBERS = journal("right-retention", to=receiver("forgetful", *FORGETFUL, "86400"), before=(CLOCK,))

RECEIVERS = (
    Variant(
        journal("effect-then-key", to=receiver("effect-then-key")),
        SENDER,
        (POINTS, LINES),
        (DUPLICATE,),
        "first the effect, then the key",
    ),
    Variant(
        journal("key-then-effect", to=receiver("key-then-effect")),
        SENDER,
        (POINTS, LINES),
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

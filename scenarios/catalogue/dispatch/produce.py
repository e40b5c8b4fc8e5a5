"""P1 and P2: a producer that dies around its commit, and one that produces again."""

from scenarios.catalogue.dispatch.parts import DEDUP, TWO, dies, enqueue, scan, scenario, served
from scenarios.catalogue.parts import KEYED
from scenarios.model import POSTGRES, Await, AwaitPaused, Begin, Export, Resume, Rows, Run

NOTHING = Rows()
PENDING = Rows(pending=1)
DELIVERED = Rows(delivered=1, attempts=1)

SCENARIOS = (
    scenario(
        "producer_dies_before_commit",
        "P1: the producer dies before its commit, and produces again",
        "export `after_the_death` holds no row and no transition: the two are written together or not at all",
        served(
            KEYED,
            dies(enqueue(*DEDUP), "dispatch.enqueue.written#1"),
            Export("after_the_death", NOTHING),
            Run(scan()),
            Run(enqueue(*DEDUP)),
            Run(scan()),
        ),
        counts=(1, 1, 3, 1),
        rows=DELIVERED,
    ),
    scenario(
        "producer_dies_after_commit",
        "P1: the producer dies after its commit; nobody produces again",
        "the row is pending in export `after_the_death`, and a scan that knows nothing of the producer delivers it",
        served(KEYED, dies(enqueue(), "dispatch.enqueue.committed#1"), Export("after_the_death", PENDING), Run(scan())),
        counts=(1, 1, 3, 1),
        rows=DELIVERED,
    ),
    scenario(
        "producer_repeats_after_commit",
        "P1, P2: the producer dies after its commit and produces again, with a deduplication key",
        "the second run prints the id of the first row, and writes nothing",
        served(
            KEYED,
            dies(enqueue(*DEDUP), "dispatch.enqueue.committed#1"),
            Run(enqueue(*DEDUP, ids=(TWO,))),
            Run(scan()),
        ),
        counts=(1, 1, 3, 1),
        rows=DELIVERED,
    ),
    scenario(
        "repeated_with_key",
        "P2: produced twice with a deduplication key; the first meaning of a key stays",
        "one row, with the body of the first",
        served(
            KEYED,
            Run(enqueue("--body", '{"order":7}', *DEDUP)),
            Run(enqueue("--body", '{"order":8}', *DEDUP, ids=(TWO,))),
            Run(scan()),
        ),
        counts=(1, 1, 3, 1),
        rows=DELIVERED,
    ),
    scenario(
        "repeated_without_key",
        "P2: produced twice without a deduplication key",
        "two rows with one body: to the outbox, and to a keyed receiver, they are two operations",
        served(KEYED, Run(enqueue()), Run(enqueue(ids=(TWO,))), Run(scan())),
        counts=(2, 2, 6, 2),
        rows=Rows(delivered=2, attempts=2),
        counterexample=True,
    ),
    scenario(
        "key_is_taken_meanwhile",
        "P2: both producers have looked for the key and not found it when the first one commits",
        "the insert of the second one finds the key taken; it prints the id of the one row, and no error of the database",
        served(
            KEYED,
            Begin(enqueue(*DEDUP), pause_at="dispatch.enqueue.looked#1"),
            AwaitPaused("producer"),
            Run(enqueue(*DEDUP, ids=(TWO,), name="other_producer")),
            Resume("producer"),
            Await("producer", exit_code=0),
            Run(scan()),
        ),
        counts=(1, 1, 3, 1),
        rows=DELIVERED,
        store=POSTGRES,
    ),
    scenario(
        "producers_race_for_a_key",
        "P2: two producers with one deduplication key, the first one in the middle of its transaction",
        "both print the id of the one row: whoever lost the race is told who won it",
        served(
            KEYED,
            Begin(enqueue(*DEDUP, ids=(TWO,), name="other_producer"), pause_at="dispatch.enqueue.before#1"),
            AwaitPaused("other_producer"),
            Begin(enqueue(*DEDUP), pause_at="dispatch.enqueue.written#1"),
            AwaitPaused("producer"),
            Resume("other_producer"),
            Resume("producer"),
            Await("producer", exit_code=0),
            Await("other_producer", exit_code=0),
            Run(scan()),
        ),
        counts=(1, 1, 3, 1),
        rows=DELIVERED,
    ),
)

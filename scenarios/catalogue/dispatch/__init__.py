"""Section dispatch: the durable dispatch outbox (DESIGN section 6), crashed, with its clock given.

A module a question of the record (ADR-0059, P1 to P6), and the windows that the record lists beside what closes them.
"""

from scenarios.catalogue.dispatch import (
    acknowledgement,
    bookkeeping,
    claims,
    databases,
    operators,
    points,
    produce,
    revival,
    schedule,
)

INTRODUCTION = (
    "A producer commits a row, a scheduler claims it, sends it and writes down what came of it. Receipts are the successes "
    "that are in the books. Whatever dies, the books stay consistent; whether a second send has a second effect is "
    "still decided at the receiver."
)

SCENARIOS = (
    *produce.SCENARIOS,
    *claims.SCENARIOS,
    *schedule.SCENARIOS,
    *bookkeeping.SCENARIOS,
    *acknowledgement.SCENARIOS,
    *operators.SCENARIOS,
    *databases.SCENARIOS,
    *revival.SCENARIOS,
    *points.SCENARIOS,
)

"""What the section `wire` must come to: counts are effects, receipts, history records, arrivals.

A request that is cut in its headers, or that the relay answers itself without sending it on, never arrives: one arrival in
all. One that is cut in its body arrives and does nothing; one whose response is lost has done everything: two arrivals. Nobody
dies. The first pass does not know (12), but where it was told to come again (10) or the network sent the request twice (0).
"""

from __future__ import annotations

from audit.expectations.words import CUT_OFF, Expectation, Expected, dispatcher, producer, receiver, relay

SERVERS = [receiver(), relay(), producer()]
RESENT = [*SERVERS, dispatcher(code=CUT_OFF), dispatcher(2)]
SENT_ONCE = [*SERVERS, dispatcher()]
WAITED = [*SERVERS, dispatcher(code=10), dispatcher(2, code=10), dispatcher(3)]

ROWS: tuple[tuple[str, int, int, list[Expected]], ...] = (
    # scenario, effects, arrivals, processes
    ("request_cut_before", 1, 1, RESENT),
    ("request_cut_at_byte", 1, 1, RESENT),
    ("request_cut_in_headers", 1, 1, RESENT),
    ("request_cut_after_headers", 1, 2, RESENT),
    ("request_cut_in_body", 1, 2, RESENT),
    ("request_then_silence", 1, 2, RESENT),
    ("request_reset", 1, 2, RESENT),
    ("response_cut_before", 1, 2, RESENT),
    ("response_cut_at_byte", 1, 2, RESENT),
    ("response_cut_after_headers", 1, 2, RESENT),
    ("response_cut_in_body", 1, 2, RESENT),
    ("response_reset", 1, 2, RESENT),
    ("response_cut_unkeyed", 2, 2, RESENT),
    ("response_delayed", 1, 2, RESENT),
    ("success_unreadable", 1, 2, RESENT),
    ("success_oversized", 1, 2, RESENT),
    ("redirect_not_followed", 1, 1, RESENT),
    ("request_duplicated", 1, 2, SENT_ONCE),
    ("request_duplicated_unkeyed", 2, 2, SENT_ONCE),
    ("retry_after_seconds", 1, 1, WAITED),
    ("retry_after_date", 1, 1, WAITED),
)
SCENARIOS = tuple(
    Expectation(name, (effects, 1, 1, arrivals), processes, counterexample=effects == 2)
    for name, effects, arrivals, processes in ROWS
)

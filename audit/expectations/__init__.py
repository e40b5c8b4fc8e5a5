"""The audit's own table of what must come out, kept apart from the catalogue that it is held against.

One module a section (that of `dispatch` has some behind it), read only when a scenario of that section is audited. `PROTOCOLS`
pins the hash of each protocol version: a changed catalogue is a new version and a new line here. The tables are data: no check
asks for a scenario's name.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.expectations.words import Expectation

PROTOCOLS: dict[int, str] = {
    3: "369d0a992dc626fa11649583bf6f6bf191804f1486dfb58d3e9f429c14554f9a",
}
SECTIONS = ("ledger", "delivery", "history", "identity", "unknown", "wire", "dispatch", "points")
SQLITE, POSTGRES = "sqlite", "postgres"
STORES = (SQLITE, POSTGRES)
"""The databases on which a study can be run."""
ONLY_ON: dict[str, str] = {
    "dispatch/key_is_taken_meanwhile": POSTGRES,
    "dispatch/scan_meets_an_open_claim": POSTGRES,
    "dispatch/ack_meets_an_open_outcome": POSTGRES,
    "dispatch/server_dies_in_claim": POSTGRES,
    "dispatch/server_dies_after_claim": POSTGRES,
    "dispatch/server_dies_in_outcome": POSTGRES,
    "dispatch/disk_full_at_enqueue": SQLITE,
    "dispatch/disk_full_at_claim": SQLITE,
    "dispatch/disk_full_at_outcome": SQLITE,
}
"""Scenarios that one database alone can run: two writers at a time, a server that is killed, a file that cannot grow. All
others run on any."""


def expected_in(section: str) -> dict[str, Expectation]:
    """What a section must come to, by `section/name`; empty for a section that the audit does not know."""
    if section not in SECTIONS:
        return {}
    name = f"{__name__}.{section}"
    module = __import__(name, fromlist=["SCENARIOS"])
    return {f"{section}/{expectation.name}": expectation for expectation in module.SCENARIOS}

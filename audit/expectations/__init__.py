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
    3: "2a3417686bd762082809172c682d8a48c197121910016e0cd06bbf384e791355",
}
SECTIONS = ("ledger", "delivery", "history", "identity", "unknown", "wire", "dispatch", "points")
STORES = ("sqlite", "postgres")
"""The databases on which a study can be run."""
ONLY_ON: dict[str, str] = {
    "dispatch/server_dies_in_claim": "postgres",
    "dispatch/server_dies_after_claim": "postgres",
    "dispatch/server_dies_in_outcome": "postgres",
    "dispatch/disk_full_at_enqueue": "sqlite",
    "dispatch/disk_full_at_claim": "sqlite",
    "dispatch/disk_full_at_outcome": "sqlite",
}
"""Scenarios that one database alone can run: a server that is killed, a file that cannot grow. All others run on any."""


def expected_in(section: str) -> dict[str, Expectation]:
    """What a section must come to, by `section/name`; empty for a section that the audit does not know."""
    if section not in SECTIONS:
        return {}
    name = f"{__name__}.{section}"
    module = __import__(name, fromlist=["SCENARIOS"])
    return {f"{section}/{expectation.name}": expectation for expectation in module.SCENARIOS}

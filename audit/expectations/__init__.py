"""The audit's own table of what must come out, kept apart from the catalogue that it is held against.

One module a section, read only when a scenario of that section is audited. `PROTOCOLS` pins the hash of each protocol
version: a changed catalogue is a new version and a new line here. The tables are data: no check asks for a scenario's name.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.expectations.words import Expectation

PROTOCOLS: dict[int, str] = {
    2: "219d4303d9a82845d69898fe0a7cf8d8117e6504de77c857ba70c8f00fbc7b82",
}
SECTIONS = ("ledger", "delivery", "history", "identity", "unknown", "wire", "points")


def expected_in(section: str) -> dict[str, Expectation]:
    """What a section must come to, by `section/name`; empty for a section that the audit does not know."""
    if section not in SECTIONS:
        return {}
    name = f"{__name__}.{section}"
    module = __import__(name, fromlist=["SCENARIOS"])
    return {f"{section}/{expectation.name}": expectation for expectation in module.SCENARIOS}

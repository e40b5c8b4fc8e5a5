"""The audit's own table of what must come out, kept apart from the catalogue that it is held against.

One module a section; this one gathers them. `PROTOCOLS` pins the hash of each protocol version: a changed catalogue
is a new version and a new line here. The tables are data: no check asks for a scenario's name.
"""

from __future__ import annotations

from audit.expectations.delivery import DELIVERY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.expectations.words import Expectation

PROTOCOLS: dict[int, str] = {
    1: "5f030a55d232215567f5adb2f712c3cb691209ec26330306dcaf3243b9935721",
}

EXPECTATIONS: dict[str, Expectation] = {expectation.name: expectation for expectation in (*DELIVERY,)}

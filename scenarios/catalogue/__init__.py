"""The frozen protocol: every declared scenario, section by section, in the order of the tables.

A change of any scenario is a new protocol: raise `PROTOCOL_VERSION`, say in CHANGELOG what changed, and archive the evidence
again. The audit knows the hash of each version and refuses any other.
"""

from collections.abc import Mapping

from scenarios.catalogue import delivery
from scenarios.model import Scenario

PROTOCOL_VERSION = 1

SECTIONS: Mapping[str, str] = {
    "delivery": delivery.INTRODUCTION,
}

SCENARIOS: tuple[Scenario, ...] = (*delivery.SCENARIOS,)

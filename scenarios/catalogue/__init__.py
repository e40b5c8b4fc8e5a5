"""The frozen protocol: every declared scenario, section by section, in the order of the tables.

A change of any scenario is a new protocol: raise `PROTOCOL_VERSION`, say in CHANGELOG what changed, and archive the evidence
again. The audit knows the hash of each version and refuses any other.
"""

from collections.abc import Mapping

from scenarios.catalogue import delivery, dispatch, history, identity, ledger, points, unknown, wire
from scenarios.model import Scenario

PROTOCOL_VERSION = 3

# Each section's introduction, by name.
SECTIONS: Mapping[str, str] = {
    "ledger": ledger.INTRODUCTION,
    "delivery": delivery.INTRODUCTION,
    "history": history.INTRODUCTION,
    "identity": identity.INTRODUCTION,
    "unknown": unknown.INTRODUCTION,
    "wire": wire.INTRODUCTION,
    "dispatch": dispatch.INTRODUCTION,
    "points": points.INTRODUCTION,
}

SCENARIOS: tuple[Scenario, ...] = (
    *ledger.SCENARIOS,
    *delivery.SCENARIOS,
    *history.SCENARIOS,
    *identity.SCENARIOS,
    *unknown.SCENARIOS,
    *wire.SCENARIOS,
    *dispatch.SCENARIOS,
    *points.SCENARIOS,
)

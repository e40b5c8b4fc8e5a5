"""All variants, and the systems that they and their twins are."""

from scenarios.explore.model import Subject
from scenarios.oracle.of_disks import DISKS
from scenarios.oracle.of_receivers import RECEIVERS
from scenarios.oracle.of_scans import SCANS
from scenarios.oracle.of_senders import SENDERS
from scenarios.oracle.variant import Variant

VARIANTS: tuple[Variant, ...] = (*SENDERS, *RECEIVERS, *SCANS, *DISKS)


def subjects() -> tuple[Subject, ...]:
    """All variants' subjects and their twins, each once."""
    found = {each.name: each for variant in VARIANTS for each in (variant.subject, variant.twin)}
    return tuple(found.values())

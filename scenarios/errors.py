"""Errors of the harness itself, one class for each owner of the fault; see `outbox.errors` for the common base.

What the system under study does wrong is no exception: it is a problem in the scenario's result, and the others still run.
"""

from outbox.errors import Halt23Error


class Interrupted(Halt23Error):
    """The run was stopped before its end. What is in the output directory is no evidence."""

    exit_code = 3


class EvidenceIncomplete(Halt23Error):
    """The machine did not let the evidence be written to its end, for instance because the disk is full."""

    exit_code = 3


class HarnessBug(Halt23Error):
    """The harness failed at its own work, so nothing is known of what it was to try. Remedy: report it, with the message."""

    exit_code = 3

"""The unkeyed receiver: every arrival is an operation of its own.

Whatever `Idempotency-Key` comes is ignored, as by most services in the world: each request gets a fresh identity and is
applied. Its identities count arrivals instead of being random, so that the evidence is the same in every run.
"""

from receivers.arrivals import Answer, Arrival
from receivers.ledger import Ledger


def serve(ledger: Ledger, arrival: Arrival) -> Answer:
    """Apply one request whose body has been read. Raises MachineRefused where the effect could not be made durable."""
    return ledger.apply(f"effect-{len(ledger) + 1}", arrival, key=None).answer("applied")

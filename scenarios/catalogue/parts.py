"""The programs that scenarios are made of, with their directories and ports."""

from scenarios.model import Program

RECEIVER_URL = "http://127.0.0.1:{receiver.port}"
ROUTE = "/operations"


def receiver(kind: str) -> Program:
    """A receiver of this kind, on files in `receiver/`."""
    return Program("receiver", "receivers", (kind, "--dir", "receiver", "--port", "{receiver.port}"))


def producer(key: str, body: str) -> Program:
    """Persists one intention in `outbox/`."""
    return Program("producer", "outbox.producer", ("--dir", "outbox", "--key", key, "--route", ROUTE, "--body", body))


def dispatcher() -> Program:
    """One pass over `outbox/`."""
    return Program("dispatcher", "outbox.dispatcher", ("--dir", "outbox", "--receiver", RECEIVER_URL))


def client(key: str, body: str) -> Program:
    """Somebody else's sender, recorded in `client/`."""
    arguments = ("--dir", "client", "--receiver", RECEIVER_URL, "--key", key, "--route", ROUTE, "--body", body)
    return Program("client", "scenarios.client", arguments)

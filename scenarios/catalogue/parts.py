"""The programs that scenarios are made of, with their directories and ports, and the sequences that many scenarios share."""

from scenarios.model import Program, Run, Start, Step, Stop

ROUTE = "/operations"
QUESTION = '{"question":"What does the counter say?"}'
OTHER_QUESTION = '{"question":"What did the counter say before?"}'
AFTER_THE_RESPONSE = "send.response#1"


def receiver(kind: str, *options: str) -> Program:
    """A receiver of this kind, on files in `receiver/`."""
    return Program("receiver", "receivers", (kind, "--dir", "receiver", "--port", "{receiver.port}", *options))


def producer(key: str, body: str = QUESTION) -> Program:
    """Persists one intention in `outbox/`."""
    return Program("producer", "outbox.producer", ("--dir", "outbox", "--key", key, "--route", ROUTE, "--body", body))


def dispatcher(*options: str, name: str = "dispatcher", to: str = "receiver") -> Program:
    """One pass over `outbox/`, sending to the receiver, or to a relay in front of it."""
    url = f"http://127.0.0.1:{{{to}.port}}"
    return Program(name, "outbox.dispatcher", ("--dir", "outbox", "--receiver", url, *options))


def client(key: str, body: str = QUESTION, *, name: str = "client") -> Program:
    """Somebody else's sender, recorded in a folder of its name."""
    url = "http://127.0.0.1:{receiver.port}"
    return Program(name, "scenarios.client", ("--dir", name, "--receiver", url, "--key", key, "--route", ROUTE, "--body", body))


def relay(*faults: str) -> Program:
    """The relay in front of the receiver, which does `faults` (`CONNECTION:NAME[:PLACE]`)."""
    chosen = tuple(part for fault in faults for part in ("--fault", fault))
    upstream = "http://127.0.0.1:{receiver.port}"
    return Program("relay", "scenarios.relay", ("--dir", "relay", "--port", "{relay.port}", "--upstream", upstream, *chosen))


KEYED = receiver("keyed")
UNKEYED = receiver("unkeyed")
STATUS_QUERY = receiver("status-query")


def crash_and_recovery(
    key: str, to: Program, *, halt_at: str = AFTER_THE_RESPONSE, options: tuple[str, ...] = ()
) -> tuple[Step, ...]:
    """One intention; the dispatcher halts at `halt_at`; a second pass recovers."""
    return (
        Start(to),
        Run(producer(key)),
        Run(dispatcher(*options), halt_at=halt_at, exit_code=23),
        Run(dispatcher(*options)),
        Stop("receiver"),
    )

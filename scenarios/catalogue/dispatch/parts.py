"""The programs of section dispatch, and the moments at which they run. All times are seconds on the scenario's own clock."""

from scenarios.model import Counts, Export, Program, Rows, Run, Scenario, Start, Step, Stop

HOST = "receiver.localhost"
ROUTE = f"http://{HOST}/operations"
# For the notify command: no URL, so it goes by the template.
BY_COMMAND = "/operations"
NOWHERE = f"http://{HOST}/nowhere"
ENQUEUED_AT, LEASE_SECONDS, FIRST_BACKOFF_SECONDS = 1000, 15, 60
LEASE_OVER = ENQUEUED_AT + LEASE_SECONDS
BACKED_OFF = ENQUEUED_AT + FIRST_BACKOFF_SECONDS
DEDUP = ("--dedup-key", "order-7")
TOKEN = "f" * 32
ACK = ("--ack-token", TOKEN)
RECORDED = ("--books", "recorded")
# Who is stopped in a transaction would be waited for otherwise.
IMPATIENT_AT_LOCKS = ("--busy-timeout-seconds", "0.3")
HALTED, REFUSED, MACHINE_REFUSED, CHANGED_MEANWHILE = 23, 2, 16, 1

CLAIMED = "dispatch.claim.committed#1"
BEFORE_SEND = "dispatch.send.before#1"
AFTER_SEND = "dispatch.send.response#1"


def identity(number: int) -> str:
    """The id of the scenario's dispatch `number`."""
    return f"{number:032x}"


ONE, TWO, THREE = identity(1), identity(2), identity(3)


def _program(name: str, command: str, *options: str) -> Program:
    return Program(name, "scenarios.dispatch", (command, "--db", "{db}", *options))


def enqueue(
    *options: str, ids: tuple[str, ...] = (ONE,), at: int = ENQUEUED_AT, to: str = ROUTE, name: str = "producer"
) -> Program:
    """Enqueues a dispatch under each of `ids`."""
    return _program(name, "enqueue", "--now", str(at), "--to", to, *options, *ids)


def scan(*options: str, at: int = ENQUEUED_AT, name: str = "scheduler") -> Program:
    """One scan, all of it at one moment."""
    return _program(name, "scan", "--now", str(at), "--receiver", f"{HOST}={{receiver.port}}", *options)


def scan_by_clock(*options: str, name: str = "scheduler") -> Program:
    """One scan by the file `clock`."""
    return _program(name, "scan", "--clock", "clock", "--receiver", f"{HOST}={{receiver.port}}", *options)


def scan_by_command(*options: str, at: int = ENQUEUED_AT, name: str = "scheduler") -> Program:
    """One scan whose sends are made by the notify command."""
    return _program(name, "scan", "--now", str(at), "--courier", "http://127.0.0.1:{receiver.port}", *options)


def revive(seats: dict[str, str], *, epoch: int, at: int) -> Program:
    """The heartbeat to each seat, with the id that its ping gets."""
    options = ("--now", str(at), "--reset-epoch", str(epoch))
    return _program("producer", "revive", *options, *(f"{seat}={each}" for seat, each in seats.items()))


def operator(command: str, *arguments: str, at: int, name: str = "operator") -> Program:
    """The outbox's own command line."""
    return Program(name, "outbox.dispatch", ("--db", "{db}", command, *arguments, "--now", str(at)))


def scenario(
    name: str,
    shows: str,
    look_at: str,
    steps: tuple[Step, ...],
    *,
    counts: tuple[int, int, int, int],
    rows: Rows,
    counterexample: bool = False,
    store: str | None = None,
) -> Scenario:
    """A scenario of this section. At its end there are `counts` effects, receipts, transitions and arrivals, and `rows`."""
    ending = (*steps, Export("end", rows))
    return Scenario("dispatch", name, shows, look_at, ending, Counts(*counts), counterexample, store)


def served(receiver: Program, *steps: Step) -> tuple[Step, ...]:
    """The steps, while a receiver is there from the beginning to the end."""
    return (Start(receiver), *steps, Stop("receiver"))


def dies(program: Program, point: str) -> Run:
    """A run that is halted at the point."""
    return Run(program, exit_code=HALTED, halt_at=point)


def timed(program: Program) -> Program:
    """The program at the time of the round in which it runs, for an exploration."""
    at = program.arguments.index("--now") + 1
    arguments = (*program.arguments[:at], "{now}", *program.arguments[at + 1 :])
    return Program(program.process, program.module, (*arguments, *IMPATIENT_AT_LOCKS))

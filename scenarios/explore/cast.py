"""Who plays in the histories of a subject: its programs for so many operations, the points of each, and what may then be.

A subject of one or two producers, a receiver and one sender is cast with as many producers as a history has operations. Where
more programs belong together (an acknowledging consumer, operators) it stays as it is, for these look after one operation.
"""

from collections.abc import Sequence
from dataclasses import replace

from outbox import faults
from scenarios.catalogue.dispatch import parts as dispatch
from scenarios.explore.histories import Named
from scenarios.explore.model import RELAY, Case, Cut, Death, Fault, Role, Subject
from scenarios.explore.subjects import SUBJECTS, wired

KEYS = ("first", "second", "third", "fourth", "fifth", "sixth")
NAMES = ("producer", *(f"{key}_producer" for key in KEYS[1:]))
# In a long history the usual bound would end what is still to be done.
ENOUGH_ATTEMPTS = "1000"
JOURNAL_PRODUCER, DISPATCH_PRODUCER = "outbox.producer", "scenarios.dispatch"


def multiplies(subject: Subject) -> bool:
    """Whether the subject can be cast for any number of operations."""
    others = [role for role in subject.roles if not role.once and not role.server]
    producers = [role for role in subject.roles if role.once]
    return len(others) == 1 and bool(producers) and all(_produces(role) for role in producers)


def _produces(role: Role) -> bool:
    program = role.program
    if program.module == DISPATCH_PRODUCER:
        return program.arguments[0] == "enqueue" and dispatch.ONE in program.arguments and "--dedup-key" in program.arguments
    return program.module == JOURNAL_PRODUCER


def cast(subject: Subject, operations: int) -> Subject:
    """The subject for so many operations, or as it is."""
    if not multiplies(subject):
        return subject
    first = next(role for role in subject.roles if role.once)
    producers = tuple(_producer(first, number) for number in range(operations))
    keys = tuple(
        dispatch.identity(number + 1) if first.program.module == DISPATCH_PRODUCER else KEYS[number]
        for number in range(operations)
    )
    return replace(subject, roles=(*producers, *(role for role in subject.roles if not role.once)), operations=keys)


def _producer(role: Role, number: int) -> Role:
    """The producer of operation `number` (from 0): its own name, identity and body."""
    body = f'{{"question":"What does the counter say to number {number + 1}?","language":"en","urgent":false}}'
    arguments = list(role.program.arguments)
    if role.program.module == JOURNAL_PRODUCER:
        _put(arguments, "--key", KEYS[number])
        _put(arguments, "--body", body)
    else:
        _put(arguments, "--dedup-key", f"order-{number + 1}")
        arguments[arguments.index(dispatch.ONE)] = dispatch.identity(number + 1)
        _put(arguments, "--body", body)
        _put(arguments, "--max-attempts", ENOUGH_ATTEMPTS)
    program = replace(role.program, process=NAMES[number], arguments=tuple(arguments))
    # Whoever overtook it would wait for its lock in earnest.
    return replace(role, program=program, stoppable=False, owns=role.owns if number == 0 else ())


def _put(arguments: list[str], option: str, value: str) -> None:
    if option in arguments:
        arguments[arguments.index(option) + 1] = value
    else:
        arguments += [option, value]


def points(subject: Subject, process: str) -> list[str]:
    """The points that `process` may reach, sorted: those that its program owns in this subject, of those that any shipped one
    owns. What else is declared depends on what else is loaded, and a seed must not."""
    role = subject.role(process)
    kind = (role.program.module, role.program.arguments[0])
    same = [each.process for each in subject.roles if (each.program.module, each.program.arguments[0]) == kind]
    owners = {process, *(same if not role.owns else ())}
    shipped = [point for point in faults.declared() if any(each.owner(point) for each in SUBJECTS)]
    return sorted(point for point in shipped if subject.owner(point) in owners)


def server(subject: Subject) -> Role:
    """The receiver."""
    return next(role for role in subject.roles if role.server and role.process != RELAY)


def runnable(subject: Subject) -> Sequence[Role]:
    """The programs that run to their end."""
    return [role for role in subject.roles if not role.server]


def judged(subject: Subject, named: Named) -> Case:
    """The case whose invariants a history is held against: cast, and with the faults that strike something in progress.

    They are counted: a receiver without keys may have an effect more for each. What befalls the receiver between two steps
    costs nothing, for nobody is waiting for it then.
    """
    history = named.history
    whole = cast(subject, history.operations)
    if history.wire:
        whole = wired(whole)
    struck: list[Fault] = [Cut(fault, connection) for connection, fault in history.wire]
    for step in history.every_step():
        if step.strike is not None:
            process = step.process or server(whole).process
            struck.append(Death(whole.role(process).process, step.strike.point, step.strike.occurrence))
        elif step.process is not None:
            whole.role(step.process)
    return Case(whole, (tuple(struck),), history=named)

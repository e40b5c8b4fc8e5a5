"""The command transport: an argv template, never a shell (ADR-0059, D3).

An element of the template that is exactly `{payload}` or `{deliver_to}` becomes that text; nothing else is replaced, so that no
character of a route or payload means anything to anybody on the way. Without `{payload}` the payload goes to standard input.
Exit code zero is success; it says that the command was content, not that a consumer has anything.

The command gets ten seconds. Then its whole process group is killed and reaped, so a shell script's children end as well. It
learns its attempt from the environment: HALT23_DISPATCH_ID, which is the same in every attempt, and HALT23_ATTEMPT.
"""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process, SubprocessStreamProtocol
from collections.abc import Sequence
from pathlib import Path

from outbox.dispatch.claim import NOTIFY_TIMEOUT_SECONDS, Claim
from outbox.dispatch.errors import BadValue
from outbox.dispatch.settle import SENT, SendResult, failed

PAYLOAD = "{payload}"
DELIVER_TO = "{deliver_to}"
ID_VARIABLE = "HALT23_DISPATCH_ID"
ATTEMPT_VARIABLE = "HALT23_ATTEMPT"
NO_TEMPLATE = failed("no notify template is configured ([dispatch] notify_template in halt23.toml)", definite=True)
# Of what a command prints this much is kept; the rest is read and forgotten, so that it never blocks and memory stays flat.
KEPT_OUTPUT_BYTES = 64 * 1024
# A child of the command may hold its output open after it has ended; the rest of the output is not worth more than this.
REST_OF_OUTPUT_SECONDS = 0.2


def check_template(template: Sequence[str]) -> None:
    """Raises BadValue for a template that would not do what it looks like.

    That is: an element that only contains a token (it would be passed as it stands), NUL characters, or an empty program name.
    """
    if isinstance(template, str) or not template or not all(isinstance(each, str) for each in template):
        raise BadValue(f"the notify template is {template!r}; expected a list of texts, the program first")
    if not template[0] or template[0] in (PAYLOAD, DELIVER_TO):
        raise BadValue(f"the notify template begins with {template[0]!r}; the program's name stands there")
    for element in template:
        if "\0" in element:
            raise BadValue(f"the notify template's {element!r} holds a NUL character")
        partial = next((token for token in (PAYLOAD, DELIVER_TO) if token in element and token != element), None)
        if partial is not None:
            raise BadValue(
                f"the notify template's {element!r} holds {partial} beside other text; only a whole element is replaced, "
                f"so give {partial} as an element of its own"
            )


async def run_command(
    template: Sequence[str], claim: Claim, *, timeout_seconds: float = NOTIFY_TIMEOUT_SECONDS, directory: Path | None = None
) -> SendResult:
    """Run the template's command for `claim`, in `directory`, and wait for its end. Never raises for what the command does."""
    values = {PAYLOAD: claim.payload, DELIVER_TO: claim.deliver_to}
    argv = [values.get(element, element) for element in template]
    on_stdin = PAYLOAD not in template
    loop = asyncio.get_running_loop()
    try:
        transport, watch = await loop.subprocess_exec(
            lambda: _Watch(loop),
            *argv,
            stdin=PIPE if on_stdin else DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            cwd=directory,
            env={**os.environ, ID_VARIABLE: claim.id, ATTEMPT_VARIABLE: str(claim.attempt)},
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return failed(f"{argv[0]} cannot be started: {error}", definite=True)
    process = Process(transport, watch, loop)
    stderr = ""
    try:
        async with asyncio.timeout(timeout_seconds):
            stderr = await _converse(process, watch.exited, claim.payload.encode() if on_stdin else None)
    except TimeoutError:
        if process.returncode is None:
            return failed(f"timeout: {argv[0]} did not end within {timeout_seconds:g} seconds and was killed", definite=False)
        # It had ended in time; only its output was still held open.
    finally:
        await _reap(process, watch.exited)
    if process.returncode == 0:
        return SENT
    return failed(stderr.strip() or f"exit {process.returncode}", definite=False)


class _Watch(SubprocessStreamProtocol):
    """Tells of the command's end at once. `Process.wait` also waits for its pipes, in some releases of Python: for ever where
    another process holds them open, or where nobody reads them any more."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=KEPT_OUTPUT_BYTES, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        self.exited.set()
        super().process_exited()


async def _converse(process: Process, exited: asyncio.Event, stdin: bytes | None) -> str:
    """Feed the command, read what it prints, and wait for its end; what it said on standard error."""
    assert process.stdout is not None
    assert process.stderr is not None
    told = bytearray()
    readers = [asyncio.create_task(_drain(process.stderr, told)), asyncio.create_task(_drain(process.stdout, bytearray()))]
    feeder = asyncio.create_task(_feed(process, stdin))
    try:
        await exited.wait()
        await asyncio.wait(readers, timeout=REST_OF_OUTPUT_SECONDS)
    finally:
        for task in (*readers, feeder):
            task.cancel()
        await asyncio.gather(*readers, feeder, return_exceptions=True)
    return told.decode("utf-8", "replace").replace("\0", "\ufffd")


async def _drain(stream: asyncio.StreamReader, kept: bytearray) -> None:
    while chunk := await stream.read(KEPT_OUTPUT_BYTES):
        kept += chunk[: KEPT_OUTPUT_BYTES - len(kept)]


async def _feed(process: Process, stdin: bytes | None) -> None:
    if stdin is None or process.stdin is None:
        return
    with contextlib.suppress(ConnectionError, BrokenPipeError):  # a command need not read what it is given
        process.stdin.write(stdin)
        await process.stdin.drain()
    process.stdin.close()


async def _reap(process: Process, exited: asyncio.Event) -> None:
    """Kill what is left of the command's group if the command itself has not ended, and close its pipes."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.shield(exited.wait())
    process._transport.close()  # type: ignore[attr-defined]  # no public way closes pipes that a grandchild holds open

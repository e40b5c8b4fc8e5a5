"""Ctrl-C, SIGTERM and a lost terminal: they end a run in order, whatever it is doing."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def stoppable() -> Iterator[Callable[[], str | None]]:
    """While this lasts, the stopping signals cancel the current task, once; yields a function that names the signal."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    received: list[str] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def stop(number: signal.Signals) -> None:
        received.append(number.name)
        if len(received) == 1 and task is not None:
            task.cancel()

    # Who started us with a signal ignored (nohup) wants it to stay so.
    heeded = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    for number in heeded:
        loop.add_signal_handler(number, stop, number)
    try:
        yield lambda: received[0] if received else None
    finally:
        for number in heeded:
            loop.remove_signal_handler(number)

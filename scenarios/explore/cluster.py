"""`--dask ADDRESS`: a campaign's cases on a Dask cluster, by its `concurrent.futures` interface.

The scheduler and all workers are on this machine, run this checkout and see the campaign's directory under the same path:
there files come back that are kept. All of that is asked for before anything is played. A worker that dies is the scheduler's
to replace: it gives the case to another one, which plays it in a folder of its own. A scheduler that dies ends the campaign,
for nobody knows any more what the workers do. Nothing here starts or ends a cluster.
"""

import asyncio
import contextlib
import importlib.util
import ipaddress
import logging
import secrets
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from outbox.errors import BadInput
from scenarios.explore.spread import How, Spread, begin
from scenarios.explore.workers import ATTEMPTS, hello, sources_digest

INSTALL = "--dask: distributed is not installed; install halt23[dask], in a checkout: .venv/bin/pip install -e '.[dask]'"
ANSWER_SECONDS = 20
SHARED = "shared"
# The library would try for ever to find a scheduler again.
WATCH_SECONDS = 0.5
RUNNING = "running"


def check(address: str) -> None:
    """Raises BadInput for an address that is not to be asked or where nobody answers, and where the library is not there."""
    text = loopback(address)
    if importlib.util.find_spec("distributed") is None:
        raise BadInput(INSTALL)
    parts = urlsplit(text)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 0), ANSWER_SECONDS).close()
    except OSError as error:
        raise BadInput(f"--dask {address}: no scheduler answers there: {error}") from error


def loopback(address: str) -> str:
    """The scheduler's address as Dask takes it. Raises BadInput for one that is not on this machine."""
    text = address if "://" in address else f"tcp://{address}"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise BadInput(f"--dask {address}: it is no address: {error}") from error
    if parts.scheme != "tcp" or not port or parts.path or parts.query:
        raise BadInput(f"--dask {address}: expected 127.0.0.1:PORT, or tcp://127.0.0.1:PORT")
    if not _is_loopback(host):
        raise BadInput(
            f"--dask {address}: {host} is not this machine's loopback; cases are played on this machine only for now"
        )
    return text


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextlib.asynccontextmanager
async def cluster(address: str, directory: Path, spawn: str, modules: tuple[str, ...]) -> AsyncIterator[Spread]:
    """The workers of the scheduler at `address`, each with as many cases at once as it has threads. Raises BadInput where they
    cannot play this campaign."""
    from distributed import Client  # noqa: PLC0415 - an extra that most runs do without
    from distributed.client import ClosedClientError  # noqa: PLC0415 - as above

    text = loopback(address)
    check(address)  # the library would try again and again
    begin(directory)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what it complains of is told here, in one line
    try:
        client = await asyncio.to_thread(Client, text, timeout=ANSWER_SECONDS, set_as_default=False)
    except OSError as error:
        raise BadInput(f"--dask {address}: no scheduler answers there: {error}") from error
    try:
        threads = await asyncio.to_thread(_ask, client, address, directory)
        executor = client.get_executor(pure=False)  # type: ignore[no-untyped-call]
        spread = Spread(executor, directory, How(spawn, modules, max(threads)), sum(threads))
        watching = asyncio.create_task(_watch(client, spread, address))
        try:
            yield spread
        finally:
            watching.cancel()
            with contextlib.suppress(ClosedClientError, OSError):  # nobody is there who could be told
                await asyncio.to_thread(executor.shutdown, wait=False)
            spread.close()
    finally:
        await asyncio.to_thread(client.close, ANSWER_SECONDS)


async def _watch(client: Any, spread: Spread, address: str) -> None:
    """Say so when the connection to the scheduler is lost."""
    while client.status == RUNNING:  # noqa: ASYNC110 - the library tells nobody
        await asyncio.sleep(WATCH_SECONDS)
    spread.gone.set_result(f"the scheduler at {address} has ended, or does not answer any more")


def _ask(client: Any, address: str, directory: Path) -> list[int]:
    """The threads of each worker, when all of them are as they must be."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    if not workers:
        raise BadInput(f"--dask {address}: the scheduler has no worker; start one with dask worker {address}")
    for name in workers:
        if not _is_loopback(urlsplit(name).hostname or ""):
            raise BadInput(f"--dask {address}: its worker {name} is not on this machine; cases are played here only for now")
    shared, word = directory / ATTEMPTS / SHARED, secrets.token_hex(8)
    shared.write_text(word, "ascii")
    try:
        told = client.run(hello, str(shared), on_error="return")
    finally:
        shared.unlink()
    own = sources_digest()
    for name, said in told.items():
        if isinstance(said, BaseException):
            raise BadInput(
                f"--dask {address}: the worker {name} cannot play cases ({type(said).__name__}: {said}); start it in this "
                "checkout, with the interpreter of this one"
            )
        if said["sources"] != own:
            raise BadInput(
                f"--dask {address}: the worker {name} runs other sources, in {said['root']}; start it in this checkout, or "
                "anew if the sources have changed"
            )
        if said["shared"] != word:
            raise BadInput(
                f"--dask {address}: the worker {name} does not see {directory}; it must be a directory that all share"
            )
    return [int(worker["nthreads"]) for worker in workers.values()]

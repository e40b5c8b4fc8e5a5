"""The private PostgreSQL server of the harness, where there can be one.

The harness's own module imports the driver at once; here its absence is something to tell, not an error.
"""

import contextlib
import importlib
import importlib.util
from collections.abc import Iterator
from typing import Protocol, cast

DRIVER_MISSING = "psycopg is not installed: pip install -e '.[bench]'"


class Server(Protocol):
    """A running server."""

    def new_database(self) -> str:
        """The URL of an empty database."""


def missing() -> str | None:
    """What to install before there can be a server; None if there can."""
    if importlib.util.find_spec("psycopg") is None:
        return DRIVER_MISSING
    postgres = importlib.import_module("scenarios.engine.postgres")
    return None if postgres.programs() is not None else str(postgres.MISSING)


@contextlib.contextmanager
def server() -> Iterator[Server]:
    """A server that syncs its commits, until the block ends."""
    postgres = importlib.import_module("scenarios.engine.postgres")
    with postgres.PostgresServer(fsync="on") as started:
        yield cast("Server", started)

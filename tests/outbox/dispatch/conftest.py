"""An open outbox on each of the two databases, and servers to send to."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from outbox.dispatch import StateDB
from scenarios.engine import postgres
from scenarios.engine.postgres import PostgresServer
from scenarios.engine.supervisor import PRELOADED
from tests.support import ProcessBox

DATABASES = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One private server for all tests that do not kill it."""
    if postgres.programs() is None:
        pytest.skip(postgres.MISSING)
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def box() -> Iterator[ProcessBox]:
    """A box whose children find the outbox loaded."""
    with ProcessBox(preloaded=(*PRELOADED, "tests.outbox.dispatch.programs", "outbox.dispatch.__main__")) as opened:
        yield opened


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a new, empty database; each test that asks for it runs on both kinds."""
    if request.param == "sqlite":
        return str(tmp_path / "dispatch.db")
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.new_database()


@pytest.fixture
async def db(url: str) -> AsyncIterator[StateDB]:
    """The outbox at `url`, open."""
    async with StateDB(url) as opened:
        yield opened

"""Where a database is: a file or a URL, turned into the one form that the rest works with. Nothing is opened here."""

import os
import re
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from outbox.errors import BadInput, MachineRefused

SQLITE = "sqlite"
POSTGRESQL = "postgresql"
_SCHEME = re.compile(r"[a-z][a-z0-9+]*:", re.ASCII | re.IGNORECASE)
_EXPECTED = "give a file for SQLite, or postgresql://USER@HOST/NAME"


def address(path_or_url: object) -> URL:
    """The URL of a database. Raises BadInput for what is neither a file nor a URL of a database that is known here."""
    given = os.fspath(path_or_url) if isinstance(path_or_url, os.PathLike) else path_or_url
    if not isinstance(given, str):
        raise BadInput(f"the database is {type(path_or_url).__name__}; {_EXPECTED}")
    if not given or "\0" in given or "%00" in given:
        raise BadInput(f"{without_password(given)!r} is no database: {_EXPECTED}")
    try:
        given.encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"{given!r} is no name that a system takes: {error.reason}") from error
    if not _SCHEME.match(given):
        return URL.create("sqlite+aiosqlite", database=str(Path(given).absolute()))
    try:
        url = make_url(given)
    except (ArgumentError, ValueError) as error:
        raise BadInput(f"{without_password(given)!r} is no URL of a database: {_EXPECTED}") from error
    return _known(url, given)


def _known(url: URL, given: str) -> URL:
    match url.drivername:
        case "sqlite" | "sqlite+aiosqlite" if url.database and url.database != ":memory:":
            if url.query:
                raise BadInput(
                    f"{without_password(given)!r}: options behind a `?` are not taken for SQLite; give the file alone"
                )
            return url.set(drivername="sqlite+aiosqlite", database=str(Path(url.database).absolute()))
        case "postgres" | "postgresql" | "postgresql+psycopg":
            return url.set(drivername="postgresql+psycopg")
        case "sqlite" | "sqlite+aiosqlite":
            raise BadInput("a database in memory outlives no process; give a file")
    raise BadInput(f"{without_password(given)!r}: {url.drivername} is not supported; {_EXPECTED}")


def shown(url: URL) -> str:
    """How a database is named in messages: without password, and without the query, where libpq takes one as well."""
    if url.get_backend_name() == SQLITE:
        return url.database or ""
    return url.set(query={}).render_as_string(hide_password=True)


def without_password(url: str) -> str:
    """The same for a text that may be no URL at all."""
    return re.sub(r"^([a-z0-9+]*:(?://)?[^:/@]*):.*@", r"\1:***@", url.partition("?")[0], flags=re.IGNORECASE | re.DOTALL)


def check_file(path: Path, *, create: bool) -> None:
    """Raises BadInput or MachineRefused where no SQLite database can be opened at `path`, or made."""
    if path.is_dir():
        raise BadInput(f"{path} is a directory; give the file of a database")
    if path.exists() and not path.is_file():
        raise BadInput(f"{path} is not a regular file")
    if not path.exists():
        if not create:
            raise BadInput(f"there is no database {path}; a producer, or `run`, creates it")
        if not path.parent.is_dir():
            raise BadInput(f"there is no directory {path.parent} for the database {path.name}")
        if not os.access(path.parent, os.W_OK):
            raise MachineRefused(f"{path.parent} cannot be written to, so {path.name} cannot be created there")

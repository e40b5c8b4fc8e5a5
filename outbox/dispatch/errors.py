"""The errors of the dispatch outbox: each is one of `outbox.errors`' few kinds, named for what the caller can tell apart.

Bad input is also the built-in exception that the record names (ValueError, LookupError), so that a caller who knows only the
record catches it. `translated` turns what a database says into these kinds by its error code, never by the text of its message,
which differs between releases and languages.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from outbox.errors import BadInput, DamagedJournal, LockHeld, MachineRefused


class BadValue(BadInput, ValueError):
    """A value that the outbox cannot use. Nothing was changed. Remedy: named in the message."""


class IllegalEdge(BadValue):
    """A change of status that the closed graph of edges does not hold. Nothing was changed."""


class NoSuchDispatch(BadInput, LookupError):
    """No row has this id. Nothing was changed. Remedy: `ls` lists the ids."""


class StoreLocked(LockHeld):
    """Another process kept the database locked for longer than the busy timeout. Nothing was changed. Remedy: try again."""


class StoreLost(MachineRefused):
    """The connection to the database broke or was refused. What was not committed is not there; what was is.

    Remedy: bring the database back and do it again; every operation here can be repeated.
    """


class DamagedStore(DamagedJournal):
    """The file is no database, or not one that can be read any more. It is left as it is.

    Remedy: keep a copy, find out what changed it, and restore the file from a backup.
    """


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Raise what a database said during `doing` as one of the classes above.

    Codes: https://www.sqlite.org/rescode.html and appendix A of PostgreSQL's manual. What is none of these is a bug of ours
    and stays as it is.
    """
    try:
        yield
    except PoolTimeout as error:
        raise StoreLocked(f"{doing}: no connection to the database became free: {error}") from error
    except DBAPIError as error:
        told = _kind(error, doing)
        if told is None:
            raise
        raise told from error


_SQLITE_LOCKED = frozenset({5, 6})
_SQLITE_DAMAGED = frozenset({11, 26})
_SQLITE_REFUSED = {3: "no permission", 8: "it is read-only", 10: "reading or writing it failed", 14: "it cannot be opened"}
_SQLITE_FULL = 13


def _kind(error: DBAPIError, doing: str) -> Exception | None:
    code = getattr(error.orig, "sqlite_errorcode", None)
    state = getattr(error.orig, "sqlstate", None)
    if code is not None:
        return _of_sqlite(code & 0xFF, error, doing)
    if type(error.orig).__module__.startswith("psycopg") or state is not None:
        return _of_postgresql(state, error, doing)
    return None


def _of_sqlite(code: int, error: DBAPIError, doing: str) -> Exception | None:
    if code in _SQLITE_LOCKED:
        return StoreLocked(f"{doing}: the database is locked by another connection; try again ({error.orig})")
    if code in _SQLITE_DAMAGED:
        return DamagedStore(f"{doing}: the file is damaged or is no database; it was left as it is ({error.orig})")
    if code == _SQLITE_FULL:
        return MachineRefused(f"{doing}: the disk is full; nothing was changed. Make room and do it again", disk_full=True)
    if code in _SQLITE_REFUSED:
        return MachineRefused(f"{doing}: the database was refused: {_SQLITE_REFUSED[code]} ({error.orig})")
    return None


_POSTGRESQL_GOING = ("08", "57P01", "57P02", "57P03", "57P05")
_POSTGRESQL_LOCKED = ("55P03", "40001", "40P01")
_POSTGRESQL_FULL = ("53100",)
_POSTGRESQL_REFUSED = ("53", "58", "28000", "28P01", "3D000", "42501", "25006")
_POSTGRESQL_DAMAGED = ("XX",)


def _of_postgresql(state: str | None, error: DBAPIError, doing: str) -> Exception | None:
    text = str(error.orig).strip()
    # psycopg gives no code where the server said nothing: the connection could not be made, or it broke.
    silent = state is None and isinstance(error, OperationalError | InterfaceError)
    code = state or ""
    if silent or error.connection_invalidated or code.startswith(_POSTGRESQL_GOING):
        return StoreLost(f"{doing}: the database cannot be reached, or the connection broke ({text})")
    if code.startswith(_POSTGRESQL_LOCKED):
        return StoreLocked(f"{doing}: another transaction holds the rows; try again ({text})")
    if code.startswith(_POSTGRESQL_FULL + _POSTGRESQL_REFUSED):
        return MachineRefused(f"{doing}: the database refused ({text})", disk_full=code in _POSTGRESQL_FULL)
    if code.startswith(_POSTGRESQL_DAMAGED):
        return DamagedStore(f"{doing}: the database says that its files are damaged ({text})")
    return None

"""How often a receiver has really acted: asked of the receiver itself, of its database, or of a command.

Nothing is concluded from responses here. A count that cannot be had is no finding but a mistake of the target file, or a target
that is no target: `Uncounted`, with what was tried and what came back.
"""

import asyncio
import json
import re
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from scenarios.engine.supervisor import Supervisor
from scenarios.targets.model import Effects, fill, fill_all, query
from scenarios.targets.receiver_http import Address, Request, exchange, shown
from scenarios.targets.receiver_process import end, launch

COMMAND_SECONDS = 20.0
LOCKED_SECONDS = 5.0
_NUMBER = re.compile(r"\s*(\d{1,18})\s*")


class Uncounted(Exception):
    """The effects cannot be counted; the text says why."""


class Counter:
    """Counts the effects of one receiver that listens at `address`; `values` fill the placeholders."""

    def __init__(self, effects: Effects, address: Address, values: Mapping[str, str], supervisor: Supervisor) -> None:
        self._effects, self._address, self._values, self._supervisor = effects, address, values, supervisor

    async def count(self) -> int:
        """How many there are now. Raises Uncounted."""
        ask: Callable[[], Awaitable[int]] = self._of_command
        if self._effects.url is not None:
            ask = self._of_url
        elif self._effects.sql is not None:
            ask = self._of_sql
        return await ask()

    async def _of_url(self) -> int:
        assert self._effects.url is not None
        path = self._effects.url
        found = await exchange(self._address, Request("GET", self._address.base + path, (("Accept", "application/json"),), b""))
        if not found.success:
            raise Uncounted(f"effects.url: GET {path} answered {found.told()}")
        try:
            data = json.loads(found.body)
        except (ValueError, RecursionError):
            raise Uncounted(f"effects.url: GET {path} answered no JSON: {shown(found.body)[:200]!r}") from None
        try:
            value = pointed(data, self._effects.pointer)
        except LookupError as error:
            where = f"effects.pointer {self._effects.pointer!r}: {error.args[0]}"
            raise Uncounted(f"{where} in what GET {path} answered: {shown(found.body)[:200]}") from None
        if isinstance(value, list | dict):
            return len(value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        raise Uncounted(f"effects.pointer {self._effects.pointer!r}: expected a number or a list, found {value!r}")

    async def _of_sql(self) -> int:
        asked = query(self._effects.sql or "")
        assert asked is not None
        file = Path(self._values["dir"], fill(asked.file, self._values))
        return await asyncio.to_thread(_selected, file, fill(asked.sql, self._values))

    async def _of_command(self) -> int:
        command = fill_all(self._effects.command or (), self._values)
        child = await self._supervisor.start(launch(command, Path(self._values["dir"]), {}))
        try:
            ending = await child.wait(COMMAND_SECONDS)
        except TimeoutError:
            await end(self._supervisor, child)
            raise Uncounted(f"effects.command: it did not end within {COMMAND_SECONDS:g} s and was killed") from None
        number = _NUMBER.fullmatch(child.stdout.text())
        if ending.exit_code != 0 or number is None:
            said = (child.stderr.text() or child.stdout.text()).strip()[-300:]
            raise Uncounted(f"effects.command: expected a number and exit code 0, got {ending} and {said!r}")
        return int(number[1])


def pointed(data: Any, pointer: str) -> Any:
    """What a JSON pointer names. Raises LookupError, with the part that is not there."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(data, dict) and name in data:
            data = data[name]
        elif isinstance(data, list) and name.isdecimal() and int(name) < len(data):
            data = data[int(name)]
        else:
            raise LookupError(f"there is no {name!r}")
    return data


def _selected(file: Path, sql: str) -> int:
    if not file.is_file():
        raise Uncounted(f"effects.sql: there is no file {file}")
    try:
        rows = _rows(file, sql, "ro")
    except sqlite3.OperationalError:
        # A journal that a death left behind is rolled back by whoever opens the file for writing, as the target itself would.
        try:
            rows = _rows(file, sql, "rw")
        except sqlite3.Error as error:
            raise Uncounted(f"effects.sql: {file}: {error}") from None
    except sqlite3.Error as error:
        raise Uncounted(f"effects.sql: {file}: {error}") from None
    if len(rows) == 1 and len(rows[0]) == 1 and isinstance(rows[0][0], int) and rows[0][0] >= 0:
        return int(rows[0][0])
    raise Uncounted(f"effects.sql: expected one number, found {rows[:3]!r}")


def _rows(file: Path, sql: str, mode: str) -> list[tuple[Any, ...]]:
    uri = f"file:{quote(str(file))}?mode={mode}"
    with closing(sqlite3.connect(uri, uri=True, timeout=LOCKED_SECONDS)) as database:
        database.execute("pragma query_only = 1")
        return database.execute(sql).fetchmany(4)

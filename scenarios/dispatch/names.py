"""Names of receivers in place of their ports: `http://receiver.localhost/operations` is the same text in every run.

A route is part of what is stored and sent, so a port in it would make each run's bytes different. The resolver here knows the
names that it is given, and no other; the addresses are this machine's.
"""

import socket
from collections.abc import Mapping

from aiohttp.abc import AbstractResolver, ResolveResult

from outbox.errors import BadInput

LOOPBACK = "127.0.0.1"


def names(given: list[str]) -> dict[str, int]:
    """The ports by host of a list of `HOST=PORT`. Raises BadInput for another form."""
    found = {}
    for each in given:
        name, mark, port = each.partition("=")
        if not (name and mark and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise BadInput(f"--receiver {each!r}: expected HOST=PORT")
        found[name] = int(port)
    return found


class Names(AbstractResolver):
    """Finds the given names on this machine."""

    def __init__(self, ports: Mapping[str, int]) -> None:
        self._ports = ports

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        """As aiohttp asks for it. Raises OSError for a name that was not given."""
        if host not in self._ports:
            raise OSError(f"the scenario names no {host}")
        known = self._ports[host]
        return [ResolveResult(hostname=host, host=LOOPBACK, port=known, family=socket.AF_INET, proto=0, flags=0)]

    async def close(self) -> None:
        """Nothing is held."""

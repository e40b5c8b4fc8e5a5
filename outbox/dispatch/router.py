"""Which transport a dispatch takes: a route that is a URL goes by HTTP, any other by the notify template."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp.abc import AbstractResolver

from outbox.dispatch.claim import NOTIFY_TIMEOUT_SECONDS, Claim
from outbox.dispatch.command import NO_TEMPLATE, check_template, run_command
from outbox.dispatch.http import is_url, post_dispatch
from outbox.dispatch.settle import SendResult
from outbox.transport import Limits, new_session


@dataclass(frozen=True, slots=True)
class RouterOptions:
    """Bound of one send in seconds, hosts other than this machine that may be sent to, where commands run, and who finds the
    addresses of hosts (None: the machine)."""

    timeout_seconds: float = NOTIFY_TIMEOUT_SECONDS
    allow_hosts: Collection[str] = ()
    directory: Path | None = None
    resolver: AbstractResolver | None = None


class Router:
    """Sends claims, for as long as it is entered. HTTP connections are kept and used again within that time."""

    def __init__(
        self, template: Sequence[str] | None, options: RouterOptions, connections: int, clock: Callable[[], float]
    ) -> None:
        if template is not None:
            check_template(template)
        self._template, self._options, self._clock = template, options, clock
        self._limits = Limits(
            connect_timeout_seconds=min(Limits().connect_timeout_seconds, options.timeout_seconds),
            timeout_seconds=options.timeout_seconds,
        )
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def send(self, claim: Claim) -> SendResult:
        """Make one attempt. Never raises for what the other side does."""
        if is_url(claim.deliver_to):
            return await post_dispatch(
                self._pooled(), claim, limits=self._limits, allow_hosts=self._options.allow_hosts, now=self._clock()
            )
        if self._template is None:
            return NO_TEMPLATE
        return await run_command(
            self._template, claim, timeout_seconds=self._options.timeout_seconds, directory=self._options.directory
        )

    def _pooled(self) -> aiohttp.ClientSession:
        if self._session is None:  # a scan without HTTP routes opens none
            self._session = new_session(self._limits, self._connections, self._options.resolver)
        return self._session

"""Whose turn it is at a receiver: which of the requests in flight goes on, and is answered, next.

A request that has nothing to wait for is answered before anything else is logged. Others wait for their work, which lasts until
enough requests have come, or for the request before them under their key. Those who waited go on in the order in which they
came, first the ones whose work is done, then the ones behind their keys. What they are answered is the business of `serve`.
"""

from __future__ import annotations

WORK, KEY = "its work", "its key"


class Turns:
    """The requests in flight of one incarnation, by the id of their arrival."""

    __slots__ = ("_behind", "_ready", "_working", "due")

    def __init__(self) -> None:
        self.due: str | None = None
        self._working: dict[str, None] = {}
        self._behind: dict[str | None, dict[str, None]] = {}
        self._ready: dict[str, None] = {}

    def came(self, name: str, key: str | None, waits_for: str) -> None:
        """A request has come; `waits_for` is empty where it goes on at once."""
        if waits_for == WORK:
            self._working[name] = None
        elif waits_for == KEY:
            self._behind.setdefault(key, {})[name] = None
        else:
            self.due = name

    def worked(self) -> None:
        """Enough have come: all work is done."""
        self._ready.update(self._working)
        self._working.clear()

    def before(self, name: str | None) -> str | None:
        """Who must be answered before `name` is, or, for None, before anything else is logged."""
        if self.due is not None:
            return self.due if self.due != name else None
        first = next(iter(self._ready), None)
        return first if name is not None and first != name else None

    def answered(self, name: str, key: str | None) -> None:
        """A request was answered; who waited for its key goes on."""
        if self.due == name:
            self.due = None
        behind = self._behind.pop(key, {})
        for waiting in (self._working, self._ready, behind):
            waiting.pop(name, None)
        self._ready.update(behind)

    def order(self) -> list[str]:
        """Everybody whose turn it is, in order."""
        return [name for name in (self.due, *self._ready) if name is not None]

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
        self._working: list[str] = []
        self._behind: dict[str, list[str]] = {}
        self._ready: list[str] = []

    def came(self, name: str, key: str | None, waits_for: str) -> None:
        """A request has come; `waits_for` is empty where it goes on at once."""
        if waits_for == WORK:
            self._working.append(name)
        elif waits_for == KEY:
            self._behind.setdefault(key or "", []).append(name)
        else:
            self.due = name

    def worked(self) -> None:
        """Enough have come: all work is done."""
        self._ready.extend(self._working)
        self._working.clear()

    def before(self, name: str | None) -> str | None:
        """Who must be answered before `name` is, or, for None, before anything else is logged."""
        if self.due is not None:
            return self.due if self.due != name else None
        return self._ready[0] if name is not None and self._ready and self._ready[0] != name else None

    def answered(self, name: str, key: str | None) -> None:
        """A request was answered; who waited for its key goes on."""
        if self.due == name:
            self.due = None
        for waiting in (self._working, self._ready, *self._behind.values()):
            if name in waiting:
                waiting.remove(name)
        self._ready.extend(self._behind.pop(key or "", []))

    def order(self) -> list[str]:
        """Everybody whose turn it is, in order."""
        return [name for name in (self.due, *self._ready) if name is not None]

"""What the command line prints: tables and sentences for people, or JSON. Results go to standard output, all else to standard
error.

A route, a body or an error may hold anything; characters that a terminal would obey are shown as escapes.
"""

import io
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from outbox.dispatch.settings import DispatchSettings
from outbox.dispatch.store import StateDB
from outbox.errors import say

SHOWN_ERROR_CHARACTERS = 60
WIDTH_OF_A_PIPE = 240


def rows(found: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """A list of dispatches."""
    if as_json:
        _tell(_json([dict(each) for each in found], indent=1))
        return
    if not found:
        _tell("no dispatches")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("id", "status", "attempt", "kind", "deliver_to", "next attempt (UTC)", "last error"):
        table.add_column(name, no_wrap=name in ("id", "status", "attempt", "next attempt (UTC)"))
    for each in found:
        due = _time(each["next_attempt_at"]) if each["status"] in ("pending", "delivering") else ""
        cells = (
            each["id"],
            each["status"],
            f"{each['attempt']} of {each['max_attempts']}",
            each["kind"],
            each["deliver_to"],
            due,
            _error(each, SHOWN_ERROR_CHARACTERS),
        )
        table.add_row(*(Text(harmless(cell)) for cell in cells))
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    console = Console(file=sys.stdout or io.StringIO(), width=None if on_terminal else WIDTH_OF_A_PIPE)
    with console.capture() as told:
        console.print(table)
    _tell(told.get().removesuffix("\n"))


def row(found: Mapping[str, Any] | None, history: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """One dispatch, or what is left of a purged one, with its history."""
    if as_json:
        shown = {"dispatch": None if found is None else dict(found), "history": [dict(each) for each in history]}
        _tell(_json(shown, indent=1))
        return
    if found is None:
        _tell("the row was purged; its history:")
    for name, value in (found or {}).items():
        if name == "last_error":
            _tell(f"{name:22}{_error(found or {}, None) or '-'}")
        elif name not in ("last_error_is_current", "last_error_attempt"):
            _tell(f"{name:22}{_value(name, value)}")
    for each in history:
        move = f"{each['previous_status'] or '-'} -> {each['status']}"
        line = f"{_time(each['created_at'])}  {move:26}{each['reason_code']:36}{each['source']} {each['actor']}: "
        _tell(harmless(line + each["reason_summary"]))


def answer(done: bool, sentence: str, *, as_json: bool) -> None:
    """What became of an act on one row."""
    if as_json:
        _tell(_json({"done": done, "message": sentence}))
    else:
        say(_encodable(harmless(sentence)), sys.stdout if done else sys.stderr)


def purged(counts: Mapping[str, int], *, dry_run: bool, as_json: bool) -> None:
    """What a purge of many rows deleted, or would have."""
    if as_json:
        _tell(json.dumps({"dry_run": dry_run, "purged": dict(counts)}))
        return
    told = ", ".join(f"{count} {status}" for status, count in counts.items()) or "nothing"
    _tell(f"would purge: {told}" if dry_run else f"purged: {told}")


def scan(counts: Mapping[str, int], *, as_json: bool) -> None:
    """The counters of a scan."""
    told = json.dumps(dict(counts)) if as_json else ", ".join(f"{name} {count}" for name, count in counts.items())
    _tell(told)


def store(db: StateDB, settings: DispatchSettings, *, once: bool) -> None:
    """On standard error: which database is used, and how, and what the destination is said to promise."""
    info = db.info
    mode = f", journal mode {info.journal_mode}" if info.journal_mode else ""
    say(f"dispatch: {db.name}: {info.engine} {info.version} ({info.package}){mode}", sys.stderr)
    if db.warning:
        say(f"dispatch: {db.warning}", sys.stderr)
    promise = settings.destination
    twice = "applies a dispatch id once" if promise.deduplicates else "may apply a dispatch twice"
    template = list(settings.notify_template) if settings.notify_template else "none, so only URLs can be sent to"
    say(f"dispatch: notify template: {template}; success means {promise.success_means}; the destination {twice}", sys.stderr)
    if not once:
        say(f"dispatch: a scan every {settings.tick_seconds:g} seconds, {settings.concurrency} sends at once", sys.stderr)


def _error(each: Mapping[str, Any], limit: int | None) -> str:
    error = each["last_error"]
    if error is None:
        return ""
    told = harmless(error if limit is None or len(error) <= limit else f"{error[:limit]}… ({len(error)} characters)")
    if each["last_error_is_current"]:
        return told
    return f"(of attempt {each['last_error_attempt']}, not the latest) {told}"


def _value(name: str, value: Any) -> str:
    if name.endswith("_at") and value is not None:
        return f"{value} ({_time(value)})"
    if isinstance(value, dict):
        return harmless(json.dumps(value, ensure_ascii=False))
    return "-" if value is None else harmless(str(value))


def _time(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g} s"


def _tell(text: str) -> None:
    say(_encodable(text), sys.stdout)


def _encodable(text: str) -> str:
    """`text` with escapes for the characters that standard output's encoding lacks."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _json(value: Any, indent: int | None = None) -> str:
    """JSON in ASCII: every terminal has its characters and obeys none of them, and it reads as the very text again."""
    return json.dumps(value, indent=indent).replace("\x7f", "\\u007f")


def harmless(text: str) -> str:
    """`text` with everything escaped that is no printable character."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)

"""Settings: the table `[dispatch]` of `halt23.toml` in the project's directory, as frozen values.

    [dispatch]
    notify_template = ["notify", "{deliver_to}", "{payload}"]
    concurrency = 64
    tick_seconds = 30

    [dispatch.destination]        # what the destination promises (docs/dispatch.md, "The destination")
    success_means = "stored"      # or "accepted": it was taken, and may still be lost
    deduplicates = true           # a second send of one dispatch id has no second effect

    [dispatch.retention]          # without this table nothing is ever deleted
    delivered_seconds = 604800

`load` refuses what it does not know, with the name of the key. `resolve_notify_template` is the record's lenient reading:
whatever is not a non-empty list of texts counts as no template, so that a bad file fails sends and not the scheduler.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outbox.dispatch.command import DELIVER_TO, check_template
from outbox.dispatch.errors import BadValue
from outbox.dispatch.retention import RetentionPolicy
from outbox.errors import BadInput

FILE_NAME = "halt23.toml"
TICK_SECONDS = 30.0
CONCURRENCY = 64
MAX_CONCURRENCY = 4096

ACCEPTED = "accepted"
STORED = "stored"


@dataclass(frozen=True, slots=True)
class Destination:
    """What the operator says that the destination promises; nobody here can prove it.

    `success_means`: ACCEPTED (the adapter reported success, a consumer may never see it) or STORED (success is reported only
    after the destination's own durable write). `deduplicates`: it applies one dispatch id once. `fixed`: the template names no
    route, all dispatches go to one place.
    """

    success_means: str = ACCEPTED
    deduplicates: bool = False
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class DispatchSettings:
    """All settings of a scheduler, checked."""

    notify_template: tuple[str, ...] | None = None
    tick_seconds: float = TICK_SECONDS
    concurrency: int = CONCURRENCY
    jitter_fraction: float = 0.0
    allow_hosts: tuple[str, ...] = ()
    destination: Destination = field(default_factory=Destination)
    retention: RetentionPolicy | None = None

    def __post_init__(self) -> None:
        if self.notify_template is not None:
            check_template(self.notify_template)
            _check_route_is_named(self.notify_template, self.destination)


def _check_route_is_named(template: tuple[str, ...], destination: Destination) -> None:
    if DELIVER_TO not in template and not destination.fixed:
        raise BadValue(
            f"the notify template {list(template)} nowhere names {DELIVER_TO}, so every route would go to the same "
            "place; add the element, or say so with [dispatch.destination] fixed = true"
        )


def resolve_notify_template(project_dir: str | Path | None = None) -> list[str] | None:
    """The template of the project's settings (`project_dir`, or the current directory), or None if there is no usable one."""
    try:
        template = _read(_file(project_dir)).get("notify_template")
    except BadInput:
        return None
    if not isinstance(template, list) or not template or not all(isinstance(each, str) for each in template):
        return None
    return template


def load(project_dir: str | Path | None = None) -> DispatchSettings:
    """The settings of the project's directory; the defaults if it has no settings file.

    Raises BadInput for a file that cannot be read and BadValue for a key or value that cannot be used.
    """
    path = _file(project_dir)
    if not path.exists():
        return DispatchSettings()
    try:
        return _settings(_read(path))
    except BadValue as error:
        raise BadValue(f"{path}: {error}") from error


def _file(project_dir: str | Path | None) -> Path:
    return Path.cwd() / FILE_NAME if project_dir is None else Path(project_dir) / FILE_NAME


def _read(path: Path) -> Mapping[str, Any]:
    try:
        table = tomllib.loads(path.read_text("utf-8")).get("dispatch", {})
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read: {error}") from error
    if not isinstance(table, dict):
        raise BadInput(f"{path}: dispatch is not a table; begin it with [dispatch]")
    return table


def _settings(table: Mapping[str, Any]) -> DispatchSettings:
    _known(table, _READERS, "[dispatch]")
    return DispatchSettings(**{name: _READERS[name](name, value) for name, value in table.items()})


def _known(table: Mapping[str, Any], names: Mapping[str, object], where: str) -> None:
    unknown = next((name for name in table if name not in names), None)
    if unknown is not None:
        raise BadValue(f"{where} has no setting {unknown!r}; it has: {', '.join(sorted(names))}")


def _template(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise BadValue(f"{name} is {value!r}; expected a list of texts, the program first")
    check_template(value)
    return tuple(value)


def _hosts(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise BadValue(f'{name} is {value!r}; expected a list of host names, or ["*"]')
    return tuple(value)


def _number(low: float, high: float) -> Callable[[str, object], float]:
    def read(name: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise BadValue(f"{name} is {value!r}; expected a number from {low:g} to {high:g}")
        return float(value)

    return read


def _whole(low: int, high: int) -> Callable[[str, object], int]:
    def read(name: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise BadValue(f"{name} is {value!r}; expected a whole number from {low} to {high}")
        return value

    return read


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise BadValue(f"{name} is {value!r}; expected true or false")
    return value


def _one_of(*words: str) -> Callable[[str, object], str]:
    def read(name: str, value: object) -> str:
        if value not in words:
            raise BadValue(f"{name} is {value!r}; expected one of: {', '.join(words)}")
        return str(value)

    return read


def _table(make: Callable[..., Any], readers: Mapping[str, Callable[[str, object], Any]]) -> Callable[[str, object], Any]:
    def read(name: str, value: object) -> Any:
        if not isinstance(value, dict):
            raise BadValue(f"{name} is {value!r}; expected a table, [dispatch.{name}]")
        _known(value, readers, f"[dispatch.{name}]")
        return make(**{key: readers[key](f"{name}.{key}", each) for key, each in value.items()})

    return read


_AGE = _number(0, 1e10)
_READERS: Mapping[str, Callable[[str, object], Any]] = {
    "notify_template": _template,
    "tick_seconds": _number(0.01, 86_400),
    "concurrency": _whole(1, MAX_CONCURRENCY),
    "jitter_fraction": _number(0, 1),
    "allow_hosts": _hosts,
    "destination": _table(Destination, {"success_means": _one_of(ACCEPTED, STORED), "deduplicates": _flag, "fixed": _flag}),
    "retention": _table(
        RetentionPolicy,
        {
            "delivered_seconds": _AGE,
            "acked_seconds": _AGE,
            "dead_letter_seconds": _AGE,
            "expired_seconds": _AGE,
            "batch_rows": _whole(1, 10_000),
            "remove_history": _flag,
        },
    ),
}

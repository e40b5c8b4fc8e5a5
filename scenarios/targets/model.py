"""What a target file says, as frozen values; and how its placeholders are filled.

A target is a worker (commands that take a job, deliver it by HTTP, and end), or a receiver (a server on loopback that is sent
operations), or both. Commands are argv lists: nothing is ever given to a shell. Reading and refusing a file is `file`'s work.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

Command = tuple[str, ...]
AT_MOST_ONCE, AT_LEAST_ONCE, APPLIED_ONCE = "at-most-once", "at-least-once", "applied-once-with-keys"
CLAIMS = (AT_MOST_ONCE, AT_LEAST_ONCE, APPLIED_ONCE)
POSTGRES, REDIS = "postgres", "redis"
IDLE, SIGNAL = "idle", "signal"
# Every placeholder, and what stands in its place.
PLACEHOLDERS: Mapping[str, str] = {
    "python": "the interpreter",
    "target": "the folder of the target file",
    "dir": "the case's own folder, also the working directory",
    "job": "the name of a job",
    "url": "where a job is to be POSTed",
    "port": "where a receiver is to listen",
    "operation": "the name of an operation",
    "key": "the key of an operation",
    "postgres_url": "the private PostgreSQL server, as a libpq URL",
    "redis_url": "the private Redis server",
}
EVERYWHERE = ("python", "target", "dir", "postgres_url", "redis_url")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
# Read by pydantic: a field that is not declared is refused.
_STRICT: Mapping[str, Any] = {"extra": "forbid"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """What the target is made of: for the track record, and to know whether it can run here."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT
    name: str
    version: str
    install: str
    imports: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    guarantee: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """The commands of a worker. `pending`, if given, counts the jobs that are still stored: a command that prints a number, or
    `sqlite:FILE:SELECT`. A job is waited for `watch_seconds` after the restart before it is called stuck."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT
    enqueue: Command
    work: Command
    setup: Command | None = None
    recover: Command | None = None
    ends: Literal["idle", "signal"] = "idle"
    packages: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    pending: str | Command | None = None
    watch_seconds: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One request. The key goes into `key_header`, or, where `key_field` is given, to that JSON pointer of the body."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT
    path: str
    method: Literal["POST", "PUT", "PATCH"] = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    other_body: str | None = None
    key_header: str = "Idempotency-Key"
    key_field: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """How effects are counted: exactly one of `url` (with a JSON pointer to a number or a list), `sql`, and `command`."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT
    url: str | None = None
    pointer: str = ""
    sql: str | None = None
    command: Command | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailOnce:
    """What is added to a request whose handler shall fail the first time, before its effect."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a receiver declares of itself. Statuses are numbers as text; `in_flight` may also be `wait`, `missing_key` also
    `accept`, `other_body` also `replay`."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT
    missing_key: str | None = None
    other_body: str | None = None
    in_flight: str | None = None
    retention_seconds: float | None = None
    clock: str | None = None  # an environment variable that names a file with the time in seconds
    key_max_length: int | None = None
    case_sensitive: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiver:
    """A server: `command` starts it, or it runs already at `url`."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT
    operation: Operation
    effects: Effects
    command: Command | None = None
    url: str | None = None
    ready: str | None = None
    ready_seconds: float = 20.0
    packages: tuple[str, ...] = ()
    fail_once: FailOnce | None = None
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """A target file as it stands."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT
    name: str
    about: str = ""
    services: tuple[Literal["postgres", "redis"], ...] = ()
    claims: Literal["at-most-once", "at-least-once", "applied-once-with-keys"] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    package: Package | None = None
    worker: Worker | None = None
    receiver: Receiver | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """A target file, and where it lies."""

    file: Path
    contents: Contents

    @property
    def name(self) -> str:
        """Its name."""
        return self.contents.name

    @property
    def folder(self) -> Path:
        """What `{target}` stands for."""
        return self.file.parent


@dataclass(frozen=True, slots=True)
class Query:
    """A question to a SQLite file whose answer is one number."""

    file: str
    sql: str


def placeholders(text: str) -> frozenset[str]:
    """The names in braces. Braces around anything but a name (JSON) are text."""
    return frozenset(_PLACEHOLDER.findall(text))


def fill(text: str, values: Mapping[str, str]) -> str:
    """`text` with its placeholders filled. Raises KeyError for one that has no value."""
    return _PLACEHOLDER.sub(lambda match: values[match[1]], text)


def fill_all(command: Sequence[str], values: Mapping[str, str]) -> Command:
    """Each argument of a command filled."""
    return tuple(fill(each, values) for each in command)


def query(text: str) -> Query | None:
    """`sqlite:FILE:SELECT …` taken apart; None for another form."""
    kind, _, rest = text.partition(":")
    file, _, sql = rest.partition(":")
    return Query(file, sql.strip()) if kind == "sqlite" and file and sql.strip() else None

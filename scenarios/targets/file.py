"""Reads a target file: TOML, checked field by field, and refused with its line, its field and what may stand there.

The shape is that of the values in `model`, which pydantic checks; what the shape cannot say (which placeholders go where, what
excludes what) is checked here. Nothing is started and nothing is looked for on the machine.
"""

import dataclasses
import ipaddress
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError
from yarl import URL

from outbox.errors import BadInput
from scenarios.targets import model
from scenarios.targets.model import Contents, Receiver, Target, Worker

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_STATUS = re.compile(r"[1-5]\d\d")
_LONGEST_SECONDS = 3600.0
# Not waited for, but declared: keys are kept for days.
_LONGEST_RETENTION_SECONDS = 10 * 365 * 86400.0
Path_ = tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong with one field."""

    where: Path_
    what: str


def read(file: Path) -> Target:
    """Read a target file. Raises BadInput, with a line for each mistake."""
    try:
        text = file.read_text("utf-8")
        data = tomllib.loads(text)
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{file}: it is no TOML: {error}") from error
    try:
        contents = TypeAdapter(Contents).validate_python(data)
    except ValidationError as error:
        raise _refused(file, text, _joined(_told(each) for each in error.errors(include_url=False))) from None
    mistakes = list(_mistakes(contents))
    if mistakes:
        raise _refused(file, text, mistakes)
    return Target(file.resolve(), contents)


def _refused(file: Path, text: str, mistakes: Sequence[Mistake]) -> BadInput:
    return BadInput("\n".join(f"{file}:{line_of(text, each.where)}: {'.'.join(each.where)}: {each.what}" for each in mistakes))


def line_of(text: str, where: Path_) -> int:
    """The line (from 1) where a field stands; that of its nearest table where it does not."""
    table: Path_ = ()
    found, depth = 1, -1
    for number, line in enumerate(text.splitlines(), 1):
        header = re.fullmatch(r"\s*\[\s*([\w.\- ]+?)\s*\]\s*(#.*)?", line)
        if header:
            table = tuple(part.strip() for part in header[1].split("."))
        key = re.match(r"\s*([\w.\-]+)\s*=", line)
        here = (*table, *key[1].split(".")) if key else table if header else None
        if here is not None and here == where[: len(here)] and len(here) > depth:
            found, depth = number, len(here)
    return found


def _joined(mistakes: Iterable[Mistake]) -> list[Mistake]:
    """One mistake for each field: where a field may be one of two things, pydantic tells why it is neither."""
    whats: dict[Path_, list[str]] = {}
    for each in mistakes:
        whats.setdefault(each.where, []).append(each.what)
    return [Mistake(where, "; ".join(dict.fromkeys(each))) for where, each in whats.items()]


def _told(error: Any) -> Mistake:
    """One of pydantic's errors in our words."""
    where = tuple(str(part) for part in error["loc"] if not _is_a_choice(part))
    kind, context = error["type"], error.get("ctx", {})
    if kind in ("unexpected_keyword_argument", "extra_forbidden"):
        return Mistake(where, f"there is no such field; there are {', '.join(_fields(where[:-1]))}")
    if kind in ("missing", "missing_argument", "missing_keyword_only_argument"):
        return Mistake(where, "it is missing")
    if kind == "literal_error":
        return Mistake(where, f"{error['input']!r}: expected {context['expected']}")
    return Mistake(where, f"{error['input']!r}: {error['msg'][:1].lower()}{error['msg'][1:]}")


def _is_a_choice(part: str | int) -> bool:
    # pydantic names the member of a union that it tried, in the place of a field.
    return isinstance(part, str) and re.search(r"[\[(]|^(str|tuple)$", part) is not None


def _fields(where: Path_) -> list[str]:
    kind: Any = Contents
    for part in where:
        hints = get_type_hints(kind)
        if part not in hints:
            return []
        kind = next((each for each in getattr(hints[part], "__args__", (hints[part],)) if dataclasses.is_dataclass(each)), None)
        if kind is None:
            return []
    return [each.name for each in dataclasses.fields(kind)]


def _mistakes(contents: Contents) -> Iterator[Mistake]:
    if not _NAME.fullmatch(contents.name):
        yield Mistake(("name",), f"{contents.name!r}: expected lower-case letters, digits and -, at most 64")
    if contents.worker is None and contents.receiver is None:
        yield Mistake((), "it describes nothing: add a table [worker] or [receiver]")
    if contents.claims is not None and contents.worker is None:
        yield Mistake(("claims",), "only a worker makes this claim; what a receiver declares stands in [receiver.policy]")
    everywhere = tuple(name for name in model.EVERYWHERE if _is_served(name, contents.services))
    for name, value in contents.environment.items():
        yield from _filled(("environment", name), value, (*everywhere, "url", "port"))
    if contents.worker is not None:
        yield from _of_worker(contents.worker, everywhere, contents.environment)
    if contents.receiver is not None:
        yield from _of_receiver(contents.receiver, everywhere)


def _is_served(placeholder: str, services: Sequence[str]) -> bool:
    service, _, suffix = placeholder.rpartition("_")
    return suffix != "url" or service in services


def _filled(where: Path_, text: str, allowed: Sequence[str]) -> Iterator[Mistake]:
    for name in sorted(model.placeholders(text) - set(allowed)):
        more = ""
        if name in ("postgres_url", "redis_url"):
            more = f'; for that one add services = ["{name.removesuffix("_url")}"]'
        elif name in model.PLACEHOLDERS:
            more = f"; {{{name}}} ({model.PLACEHOLDERS[name]}) has no value there"
        yield Mistake(where, f"{{{name}}}: expected one of {' '.join(f'{{{each}}}' for each in sorted(allowed))}{more}")


def _command(where: Path_, command: Sequence[str] | None, allowed: Sequence[str]) -> Iterator[Mistake]:
    if command is None:
        return
    if not command or not command[0]:
        yield Mistake(where, 'it is empty; expected a list such as ["{python}", "{target}/program.py"]')
    for argument in command:
        if "\0" in argument:
            yield Mistake(where, f"{argument!r}: an argument cannot hold a zero byte")
        yield from _filled(where, argument, allowed)


def _of_worker(worker: Worker, everywhere: Sequence[str], environment: Mapping[str, str]) -> Iterator[Mistake]:
    allowed = (*everywhere, "url")
    for name in ("setup", "work", "recover"):
        yield from _command(("worker", name), getattr(worker, name), allowed)
    yield from _command(("worker", "enqueue"), worker.enqueue, (*allowed, "job"))
    if not any("job" in model.placeholders(each) for each in worker.enqueue):
        yield Mistake(("worker", "enqueue"), "it must contain {job}: two jobs are told apart by their names")
    if not any("url" in model.placeholders(each) for each in (*worker.enqueue, *worker.work, *environment.values())):
        yield Mistake(("worker", "work"), "{url} is nowhere: give it to enqueue, to work or to the environment")
    yield from _counted(("worker", "pending"), worker.pending, everywhere)
    yield from _seconds(("worker", "watch_seconds"), worker.watch_seconds)
    for name in worker.packages:
        if not all(part.isidentifier() for part in name.split(".")):
            yield Mistake(("worker", "packages"), f"{name!r}: expected the name of a Python package")


def _seconds(where: Path_, value: float | None, longest: float = _LONGEST_SECONDS) -> Iterator[Mistake]:
    if value is not None and not 0 < value <= longest:
        yield Mistake(where, f"{value!r}: expected more than 0 and at most {longest:g}")


def _counted(where: Path_, given: str | Sequence[str] | None, allowed: Sequence[str]) -> Iterator[Mistake]:
    if isinstance(given, str):
        if model.query(given) is None:
            yield Mistake(where, f"{given!r}: expected sqlite:FILE:SELECT …, or a command as a list")
        yield from _filled(where, given, allowed)
    else:
        yield from _command(where, given, allowed)


def _of_receiver(receiver: Receiver, everywhere: Sequence[str]) -> Iterator[Mistake]:
    here = ("receiver",)
    yield from _command((*here, "command"), receiver.command, (*everywhere, "port"))
    if (receiver.command is None) == (receiver.url is None):
        yield Mistake(here, "expected either command, which starts it, or url, where it runs already")
    if receiver.command is not None and not any("port" in model.placeholders(each) for each in receiver.command):
        yield Mistake((*here, "command"), "it must contain {port}: nobody knows where it will listen")
    if receiver.url is not None and not is_loopback(receiver.url):
        yield Mistake((*here, "url"), f"{receiver.url!r}: expected http://127.0.0.1:PORT; nothing but loopback is ever sent to")
    if receiver.ready is not None:
        yield from _path((*here, "ready"), receiver.ready)
    yield from _seconds((*here, "ready_seconds"), receiver.ready_seconds)
    yield from _of_operation(receiver)
    yield from _of_effects(receiver, everywhere)
    yield from _of_policy(receiver)


def is_loopback(url: str) -> bool:
    """Whether this is the address of a plain HTTP server on this machine."""
    try:
        made = URL(url)
        return made.scheme == "http" and made.port is not None and ipaddress.ip_address(made.host or "").is_loopback
    except ValueError:
        return False


def _path(where: Path_, value: str) -> Iterator[Mistake]:
    if not re.fullmatch(r"/[!-~]*", value):
        yield Mistake(where, f"{value!r}: expected a path that begins with /")


def _of_operation(receiver: Receiver) -> Iterator[Mistake]:
    operation, here = receiver.operation, ("receiver", "operation")
    yield from _path((*here, "path"), operation.path.replace("{operation}", "x").replace("{key}", "x"))
    once = receiver.fail_once
    for where, text in (
        ((*here, "path"), operation.path),
        ((*here, "body"), operation.body),
        ((*here, "other_body"), operation.other_body or ""),
        *(((*here, "headers", name), value) for name, value in operation.headers.items()),
        *(((*here[:1], "fail_once", "headers", name), value) for name, value in (once.headers if once else {}).items()),
        (("receiver", "fail_once", "body"), (once.body if once else None) or ""),
    ):
        yield from _filled(where, text, ("operation", "key"))
    if operation.key_field is not None and not operation.key_field.startswith("/"):
        yield Mistake((*here, "key_field"), f"{operation.key_field!r}: expected a JSON pointer, such as /key")
    if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", operation.key_header):
        yield Mistake((*here, "key_header"), f"{operation.key_header!r}: expected the name of a header")


def _of_effects(receiver: Receiver, everywhere: Sequence[str]) -> Iterator[Mistake]:
    effects, here = receiver.effects, ("receiver", "effects")
    if sum(each is not None for each in (effects.url, effects.sql, effects.command)) != 1:
        yield Mistake(here, "expected exactly one of url, sql and command")
    if effects.url is not None:
        yield from _path((*here, "url"), effects.url)
    if effects.pointer and not (effects.url and effects.pointer.startswith("/")):
        yield Mistake((*here, "pointer"), f"{effects.pointer!r}: expected a JSON pointer, such as /count, beside a url")
    yield from _counted((*here, "sql"), effects.sql, (*everywhere, "port"))
    yield from _command((*here, "command"), effects.command, (*everywhere, "port"))


def _of_policy(receiver: Receiver) -> Iterator[Mistake]:
    policy, here = receiver.policy, ("receiver", "policy")
    for name, word in (("missing_key", "accept"), ("other_body", "replay"), ("in_flight", "wait")):
        value = getattr(policy, name)
        if value is not None and value != word and not _STATUS.fullmatch(value):
            yield Mistake((*here, name), f"{value!r}: expected an HTTP status as text, such as '409', or '{word}'")
    yield from _seconds((*here, "retention_seconds"), policy.retention_seconds, _LONGEST_RETENTION_SECONDS)
    if policy.key_max_length is not None and policy.key_max_length < 1:
        yield Mistake((*here, "key_max_length"), f"{policy.key_max_length}: expected a positive number")

"""The settings file: every key taken and refused by name, and the record's lenient reading of the template."""

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from outbox.dispatch import BadValue, DispatchSettings, RetentionPolicy, load, resolve_notify_template
from outbox.dispatch.settings import Destination
from outbox.errors import BadInput


def project(directory: Path, text: str | bytes) -> Path:
    """A project whose settings file holds this."""
    (directory / "halt23.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return directory


# Refused, with the name of what is wrong.


@pytest.mark.parametrize(
    "content",
    [b"[dispatch", b"[dispatch]\nconcurrency = ", b"\xff\xfe", b"[dispatch]\n[dispatch]\n", b"a = 1\na = 2\n", b"\0"],
)
def test_a_file_that_is_no_toml_is_refused_and_named(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(BadInput, match=r"halt23\.toml cannot be read"):
        load(project(tmp_path, content))
    assert resolve_notify_template(tmp_path) is None


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "halt23.toml").mkdir()
    with pytest.raises(BadInput, match=r"halt23\.toml cannot be read: .*Is a directory"):
        load(tmp_path)
    assert resolve_notify_template(tmp_path) is None


@pytest.mark.parametrize("value", ["1", '"x"', "[]", "[[1]]", "true"])
def test_a_dispatch_that_is_no_table_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(BadInput, match=r"dispatch is not a table; begin it with \[dispatch\]"):
        load(project(tmp_path, f"dispatch = {value}\n"))
    assert resolve_notify_template(tmp_path) is None


BAD = (
    ("tick = 1", "[dispatch] has no setting 'tick'; it has: allow_hosts, concurrency, destination,"),
    ("Concurrency = 1", "[dispatch] has no setting 'Concurrency'"),
    ("tick_seconds = 0", "tick_seconds is 0; expected a number from 0.01 to 86400"),
    ("tick_seconds = -1", "tick_seconds is -1"),
    ("tick_seconds = nan", "tick_seconds is nan"),
    ("tick_seconds = inf", "tick_seconds is inf"),
    ("tick_seconds = 86400.5", "tick_seconds is 86400.5"),
    (f"tick_seconds = 1{'0' * 400}", "tick_seconds is 1000"),
    ("tick_seconds = true", "tick_seconds is True"),
    ('tick_seconds = "30"', "tick_seconds is '30'"),
    ("tick_seconds = 12:00:00", "tick_seconds is datetime.time(12, 0)"),
    ("concurrency = 0", "concurrency is 0; expected a whole number from 1 to 4096"),
    ("concurrency = 4097", "concurrency is 4097"),
    ("concurrency = 2.0", "concurrency is 2.0"),
    ("concurrency = true", "concurrency is True"),
    ("concurrency = []", "concurrency is []"),
    ("jitter_fraction = -0.1", "jitter_fraction is -0.1; expected a number from 0 to 1"),
    ("jitter_fraction = 1.1", "jitter_fraction is 1.1"),
    ("jitter_fraction = nan", "jitter_fraction is nan"),
    ('allow_hosts = "*"', "allow_hosts is '*'; expected a list of host names"),
    ("allow_hosts = [1]", "allow_hosts is [1]"),
    ('allow_hosts = [""]', "allow_hosts is ['']"),
    ("destination = 1", "destination is 1; expected a table, [dispatch.destination]"),
    ("destination = []", "destination is []; expected a table"),
    ("[dispatch.destination]\nfix = true", "[dispatch.destination] has no setting 'fix'; it has: deduplicates, fixed,"),
    ("[dispatch.destination]\nfixed = 1", "destination.fixed is 1; expected true or false"),
    ('[dispatch.destination]\ndeduplicates = "yes"', "destination.deduplicates is 'yes'; expected true or false"),
    (
        '[dispatch.destination]\nsuccess_means = "done"',
        "destination.success_means is 'done'; expected one of: accepted, stored",
    ),
    ("[dispatch.destination]\nsuccess_means = true", "destination.success_means is True"),
    ("[dispatch.destination]\nsuccess_means = []", "destination.success_means is []"),
    ("retention = 7", "retention is 7; expected a table, [dispatch.retention]"),
    ("[dispatch.retention]\npending_seconds = 1", "[dispatch.retention] has no setting 'pending_seconds'"),
    ("[dispatch.retention]\ndelivered_seconds = -1", "retention.delivered_seconds is -1; expected a number from 0"),
    ("[dispatch.retention]\nacked_seconds = nan", "retention.acked_seconds is nan"),
    ('[dispatch.retention]\ndead_letter_seconds = "1"', "retention.dead_letter_seconds is '1'"),
    ("[dispatch.retention]\nexpired_seconds = false", "retention.expired_seconds is False"),
    ("[dispatch.retention]\nbatch_rows = 0", "retention.batch_rows is 0; expected a whole number from 1 to 10000"),
    ("[dispatch.retention]\nbatch_rows = 1.5", "retention.batch_rows is 1.5"),
    ("[dispatch.retention]\nremove_history = 0", "retention.remove_history is 0; expected true or false"),
)


@pytest.mark.parametrize(("line", "told"), BAD, ids=[line for line, _told in BAD])
def test_a_key_or_value_that_cannot_be_used_is_refused_by_its_name_and_the_files(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(BadValue) as caught:
        load(project(tmp_path, f"[dispatch]\n{line}\n"))
    assert told in str(caught.value)
    assert str(tmp_path / "halt23.toml") in str(caught.value)
    assert caught.value.exit_code == 2


BAD_TEMPLATES = (
    ('"notify {deliver_to}"', "expected a list of texts, the program first"),
    ("{}", "expected a list of texts"),
    ("7", "expected a list of texts"),
    ("[]", "expected a list of texts"),
    ('["notify", 7, "{deliver_to}"]', "expected a list of texts"),
    ('["", "{deliver_to}"]', "begins with ''; the program's name stands there"),
    ('["{deliver_to}"]', "begins with '{deliver_to}'"),
    ('["{payload}", "{deliver_to}"]', "begins with '{payload}'"),
    ('["notify", "--to={deliver_to}"]', "'--to={deliver_to}' holds {deliver_to} beside other text"),
    ('["notify", "{deliver_to}", "{payload} "]', "'{payload} ' holds {payload} beside other text"),
    ('["notify", "{deliver_to}{payload}"]', "beside other text; only a whole element is replaced"),
    ('["notify{payload}", "{deliver_to}"]', "beside other text"),
    ('["notify", "{deliver_to}", "a\\u0000b"]', "holds a NUL character"),
    ('["notify", "{payload}"]', "nowhere names {deliver_to}"),
    ('["notify"]', "nowhere names {deliver_to}"),
    ('["notify", "{Deliver_To}"]', "nowhere names {deliver_to}"),
    ('["notify", "{payload}"]\n[dispatch.destination]\nfixed = false', "nowhere names {deliver_to}"),
)


@pytest.mark.parametrize(("template", "told"), BAD_TEMPLATES)
def test_a_template_that_would_not_do_what_it_looks_like_is_refused(tmp_path: Path, template: str, told: str) -> None:
    with pytest.raises(BadValue) as caught:
        load(project(tmp_path, f"[dispatch]\nnotify_template = {template}\n"))
    assert told in str(caught.value)


def test_settings_made_by_hand_are_held_to_the_same_template() -> None:
    for template in ((), ("",), ("notify", "x{payload}"), ("notify",)):
        with pytest.raises(BadValue):
            DispatchSettings(notify_template=template)
    fixed = DispatchSettings(notify_template=("notify",), destination=Destination(fixed=True))
    assert fixed.notify_template == ("notify",)


# Taken.


def test_without_a_file_the_defaults_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load()
    assert settings == load(tmp_path) == load(str(tmp_path / "nowhere")) == DispatchSettings()
    assert (settings.notify_template, settings.tick_seconds, settings.concurrency) == (None, 30.0, 64)
    assert (settings.jitter_fraction, settings.allow_hosts, settings.retention) == (0.0, (), None)
    assert settings.destination == Destination("accepted", deduplicates=False, fixed=False)
    with pytest.raises(FrozenInstanceError):
        settings.concurrency = 1  # type: ignore[misc]


@pytest.mark.parametrize("content", ["", "[dispatch]\n", "[other]\nconcurrency = 0\n", "title = 'x'\n"])
def test_a_file_that_says_nothing_of_dispatch_gives_the_defaults(tmp_path: Path, content: str) -> None:
    assert load(project(tmp_path, content)) == DispatchSettings()


def test_every_setting_is_read(tmp_path: Path) -> None:
    settings = load(
        project(
            tmp_path,
            """
            [dispatch]
            notify_template = ["notify", "{deliver_to}", "{payload}", "grün"]
            tick_seconds = 0.01
            concurrency = 4096
            jitter_fraction = 1
            allow_hosts = ["example.org", "*"]

            [dispatch.destination]
            success_means = "stored"
            deduplicates = true
            fixed = true

            [dispatch.retention]
            delivered_seconds = 1
            acked_seconds = 2.5
            dead_letter_seconds = 0
            expired_seconds = 1e10
            batch_rows = 10_000
            remove_history = true
            """,
        )
    )
    assert settings == DispatchSettings(
        notify_template=("notify", "{deliver_to}", "{payload}", "grün"),
        tick_seconds=0.01,
        concurrency=4096,
        jitter_fraction=1.0,
        allow_hosts=("example.org", "*"),
        destination=Destination("stored", deduplicates=True, fixed=True),
        retention=RetentionPolicy(1.0, 2.5, 0.0, 1e10, 10_000, remove_history=True),
    )


def test_an_empty_retention_table_is_the_policy_as_it_comes(tmp_path: Path) -> None:
    assert load(project(tmp_path, "[dispatch.retention]\n")).retention == RetentionPolicy()


def test_a_destination_that_is_fixed_needs_no_route_in_the_template(tmp_path: Path) -> None:
    content = '[dispatch]\nnotify_template = ["notify"]\n[dispatch.destination]\nfixed = true\n'
    assert load(project(tmp_path, content)).notify_template == ("notify",)


# The lenient reading.


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[dispatch]\n",
        "[dispatch]\nnotify_template = []\n",
        '[dispatch]\nnotify_template = "notify"\n',
        "[dispatch]\nnotify_template = 7\n",
        "[dispatch]\nnotify_template = true\n",
        '[dispatch]\nnotify_template = {program = "notify"}\n',
        '[dispatch]\nnotify_template = ["notify", 7]\n',
        '[dispatch]\nnotify_template = ["notify", ["x"]]\n',
        'notify_template = ["notify"]\n',
        '[Dispatch]\nnotify_template = ["notify"]\n',
    ],
)
def test_what_is_no_list_of_texts_counts_as_no_template(tmp_path: Path, content: str) -> None:
    assert resolve_notify_template(project(tmp_path, content)) is None


def test_without_a_file_there_is_no_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolve_notify_template() is None
    assert resolve_notify_template(tmp_path / "nowhere") is None


@pytest.mark.parametrize("kind", [str, Path, None])
def test_the_template_is_found_in_the_given_or_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    # A setting that is wrong elsewhere in the file does not take the template away.
    project(tmp_path, '[dispatch]\nconcurrency = 0\nnotify_template = ["notify", "{deliver_to}", "{payload}"]\n')
    if kind is None:
        monkeypatch.chdir(tmp_path)
    given = None if kind is None else kind(tmp_path)
    assert resolve_notify_template(given) == ["notify", "{deliver_to}", "{payload}"]

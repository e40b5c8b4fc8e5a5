"""Target files: what is refused, where, and in which words; and what a good one is read as."""

from pathlib import Path

import pytest

from outbox.errors import BadInput
from scenarios.targets import file, model

WORKER = """name = "small"
[worker]
enqueue = ["{python}", "{target}/worker.py", "enqueue", "{job}"]
work = ["{python}", "{target}/worker.py", "work", "{url}"]
"""
RECEIVER = """name = "small"
[receiver]
command = ["{python}", "{target}/app.py", "{port}"]
[receiver.operation]
path = "/operations"
body = '{"operation": "{operation}", "lines": [{"amount": 5}]}'
[receiver.effects]
url = "/effects"
pointer = "/count"
"""


def refused(folder: Path, text: str) -> str:
    """The message with which a file of this text is refused, without the name of its folder."""
    path = folder / "t.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(BadInput) as caught:
        file.read(path)
    assert caught.value.exit_code == 2
    return str(caught.value).replace(f"{folder}/", "")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("colour = 1", "t.toml:5: worker.colour: there is no such field; there are enqueue, work, setup, recover, ends,"),
        ("work = []", "t.toml: it is no TOML"),
        ('recover = ["{pythn}"]', "t.toml:5: worker.recover: {pythn}: expected one of {dir} {python} {target} {url}"),
        ('recover = ["{job}"]', "{job} (the name of a job) has no value there"),
        (
            'setup = ["{redis_url}"]',
            '{redis_url}: expected one of {dir} {python} {target} {url}; for that one add services = ["redis"]',
        ),
        ("setup = []", 't.toml:5: worker.setup: it is empty; expected a list such as ["{python}", "{target}/program.py"]'),
        ('ends = "never"', "t.toml:5: worker.ends: 'never': expected 'idle' or 'signal'"),
        ("watch_seconds = 0", "t.toml:5: worker.watch_seconds: 0.0: expected more than 0 and at most 3600"),
        ('watch_seconds = "long"', "t.toml:5: worker.watch_seconds: 'long': input should be a valid number"),
        ('pending = "queue.db"', "t.toml:5: worker.pending: 'queue.db': expected sqlite:FILE:SELECT …, or a command as a list"),
        ("pending = 3", "t.toml:5: worker.pending: 3: input should be a valid string; 3: input should be a valid tuple"),
        ('packages = ["a-b"]', "t.toml:5: worker.packages: 'a-b': expected the name of a Python package"),
        (
            '[claims]\nx = "y"',
            "t.toml:5: claims: {'x': 'y'}: expected 'at-most-once', 'at-least-once' or 'applied-once-with-keys'",
        ),
    ],
)
def test_a_worker_with_a_mistake_is_refused_with_line_field_and_what_may_stand_there(
    tmp_path: Path, line: str, said: str
) -> None:
    assert said in refused(tmp_path, f"{WORKER}{line}\n")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{job}", "job", "t.toml:3: worker.enqueue: it must contain {job}"),
        ("{url}", "url", "t.toml:4: worker.work: {url} is nowhere"),
        ('name = "small"', 'name = "Not Small"', "t.toml:1: name: 'Not Small': expected lower-case letters"),
        ("[worker]", "[wroker]", "t.toml:2: wroker: there is no such field; there are name, about, services,"),
        ("enqueue", "enqeue", "t.toml:2: worker.enqueue: it is missing"),
    ],
)
def test_a_worker_that_lacks_something_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert said in refused(tmp_path, WORKER.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('command = ["{python}", "{target}/app.py", "{port}"]', "", "t.toml:2: receiver: expected either command"),
        ('"{port}"', '"80"', "t.toml:3: receiver.command: it must contain {port}"),
        ("[receiver.operation]", 'url = "http://10.0.0.1:80"\n[receiver.operation]', "nothing but loopback is ever sent to"),
        (
            "[receiver.operation]",
            'url = "http://localhost.example:80"\n[receiver.operation]',
            "nothing but loopback is ever sent to",
        ),
        ('path = "/operations"', 'path = "operations"', "t.toml:5: receiver.operation.path: 'operations': expected a path"),
        ("{operation}", "{operatoin}", "t.toml:6: receiver.operation.body: {operatoin}: expected one of {key} {operation}"),
        ('url = "/effects"', "", "t.toml:7: receiver.effects: expected exactly one of url, sql and command"),
        ('"/count"', '"count"', "t.toml:9: receiver.effects.pointer: 'count': expected a JSON pointer"),
        (
            "[receiver.effects]",
            '[receiver.policy]\nin_flight = "maybe"\n[receiver.effects]',
            "t.toml:8: receiver.policy.in_flight: 'maybe'",
        ),
    ],
)
def test_a_receiver_with_a_mistake_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert said in refused(tmp_path, RECEIVER.replace(old, new))


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    said = refused(tmp_path, WORKER.replace("{job}", "{jbo}") + "watch_seconds = -1\n")
    assert [line.split(": ")[0] for line in said.splitlines()] == ["t.toml:3", "t.toml:3", "t.toml:5"]


def test_a_file_that_is_not_there_or_no_toml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none\.toml: No such file"):
        file.read(tmp_path / "none.toml")
    assert "it is no TOML" in refused(tmp_path, "name = ")
    assert "add a table [worker] or [receiver]" in refused(tmp_path, 'name = "empty"\n')


def test_a_good_file_is_read_as_it_stands_and_its_placeholders_are_filled(tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    path.write_text(RECEIVER + WORKER.partition("\n")[2], "utf-8")
    target = file.read(path)
    assert target.folder == tmp_path
    assert target.contents.worker is not None
    assert target.contents.receiver is not None
    assert target.contents.worker.work == ("{python}", "{target}/worker.py", "work", "{url}")
    body = model.fill(target.contents.receiver.operation.body, {"operation": "one"})
    assert body == '{"operation": "one", "lines": [{"amount": 5}]}'
    assert model.query("sqlite:{dir}/q.db:select count(*) from t where a = ':'") == model.Query(
        "{dir}/q.db", "select count(*) from t where a = ':'"
    )

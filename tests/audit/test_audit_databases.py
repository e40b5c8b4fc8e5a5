"""The databases of a run: what their placeholder may stand for, within a scenario and over all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from audit import databases, protocol
from audit.case import Case
from audit.files import Tree
from audit.findings import Findings
from tests.audit import forge

SERVER = "postgresql://postgres@127.0.0.1:54321"
KILLS = [{"do": "kill_database"}]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(str(tmp_path), Findings())


def scenario(tree: Tree, name: str, *urls: str, steps: list[dict[str, Any]] | None = None) -> Case:
    """A scenario of which each process was given one of the databases."""
    processes = [
        {"process": "scheduler", "incarnation": number, "command": [], "substitutions": {"db": url, "receiver.port": "40001"}}
        for number, url in enumerate(urls, 1)
    ]
    return Case({"section": "dispatch", "name": name, "steps": steps or []}, None, processes, tree)


def told(tree: Tree, store: str, *cases: Case) -> list[str]:
    """What is found beyond what the fixture itself leaves."""
    before = len(tree.findings.items)
    databases.check(list(cases), store, tree.findings.about("processes.json"))
    return [str(finding) for finding in tree.findings.items[before:]]


def test_a_file_in_each_folder_on_sqlite(tree: Tree) -> None:
    assert told(tree, "sqlite", *[scenario(tree, name, "state/dispatch.db", "state/dispatch.db") for name in "ab"]) == []


def test_one_server_for_all_on_postgresql_and_one_for_who_kills_it(tree: Tree) -> None:
    shared = [scenario(tree, "a", f"{SERVER}/halt23_2"), scenario(tree, "b", f"{SERVER}/halt23_1", f"{SERVER}/halt23_1")]
    own = scenario(tree, "c", "postgresql://postgres@127.0.0.1:54322/halt23_1", steps=KILLS)
    assert told(tree, "postgres", *shared, own) == []


def test_a_scenario_without_a_database_has_nothing_to_hold(tree: Tree) -> None:
    assert told(tree, "postgres", scenario(tree, "a")) == []


@pytest.mark.parametrize(
    ("store", "url"),
    [
        ("sqlite", "dispatch.db"),
        ("sqlite", "/tmp/state/dispatch.db"),
        ("sqlite", f"{SERVER}/halt23_1"),
        ("postgres", "state/dispatch.db"),
        ("postgres", "postgresql://postgres@127.0.0.1:80/halt23_1"),
        ("postgres", "postgresql://postgres@127.0.0.1:65536/halt23_1"),
        ("postgres", "postgresql://postgres@127.0.0.1:054321/halt23_1"),
        ("postgres", "postgresql://postgres@10.0.0.1:54321/halt23_1"),
        ("postgres", "postgresql://postgres@127.0.0.1:54321/halt23_0"),
        ("postgres", "postgresql://postgres@127.0.0.1:54321/halt23_"),
        ("postgres", "postgresql://postgres@127.0.0.1:54321/other_1"),
        ("postgres", "postgresql://postgres:secret@127.0.0.1:54321/halt23_1"),
        ("postgres", ""),
    ],
)
def test_another_database_is_refused(store: str, url: str, tree: Tree) -> None:
    (found,) = told(tree, store, scenario(tree, "a", url))
    assert found.startswith("dispatch/a: processes.json scheduler (incarnation 1).substitutions: give the database ")


def test_a_scenario_keeps_its_database(tree: Tree) -> None:
    (found,) = told(tree, "postgres", scenario(tree, "a", f"{SERVER}/halt23_1", f"{SERVER}/halt23_2"))
    assert f"before it was '{SERVER}/halt23_1'" in found


def test_no_receiver_has_the_port_of_the_server(tree: Tree) -> None:
    (found,) = told(tree, "postgres", scenario(tree, "a", "postgresql://postgres@127.0.0.1:40001/halt23_1"))
    assert "the port 40001, which a receiver has" in found


def test_no_two_scenarios_share_a_database(tree: Tree) -> None:
    found = told(tree, "postgres", *[scenario(tree, name, f"{SERVER}/halt23_1") for name in "ab"])
    assert found == ["processes.json: substitutions: number the databases of the server at 54321 ['1', '1']"]


def test_no_number_is_left_out(tree: Tree) -> None:
    (found,) = told(tree, "postgres", scenario(tree, "a", f"{SERVER}/halt23_10"), scenario(tree, "b", f"{SERVER}/halt23_9"))
    assert "['9', '10']" in found


def test_all_share_one_server(tree: Tree) -> None:
    other = scenario(tree, "b", "postgresql://postgres@127.0.0.1:54399/halt23_1")
    (found,) = told(tree, "postgres", scenario(tree, "a", f"{SERVER}/halt23_1"), other)
    assert "name servers at the ports ['54321', '54399'] for scenarios that share one" in found


def test_nobody_kills_a_server_that_others_use(tree: Tree) -> None:
    killer = scenario(tree, "b", f"{SERVER}/halt23_2", steps=KILLS)
    found = told(tree, "postgres", scenario(tree, "a", f"{SERVER}/halt23_1"), killer)
    assert [each.partition(": ")[2] for each in found] == [
        "processes.json substitutions: is database 2 of a server that this scenario alone has",
        "substitutions: dispatch/b, which kills its server, shares the one at 54321 with others",
    ]


SERVER_FACTS = {"version": "15.14 (Debian 15.14-0)", "fsync": "on", "synchronous_commit": "on"}


@pytest.mark.parametrize(
    ("store", "server", "words"),
    [
        ("sqlite", None, []),
        (
            "sqlite",
            SERVER_FACTS,
            ["run.postgres: is {'version': '15.14 (Debian 15.14-0)', 'fsync': 'on', 'synchronous_commit'"],
        ),
        ("postgres", SERVER_FACTS, []),
        ("postgres", None, ["run.postgres: is None, expected an object"]),
        ("postgres", {**SERVER_FACTS, "fsync": "off"}, ["run.postgres.fsync: is 'off', expected 'on'"]),
        ("postgres", {**SERVER_FACTS, "fsync": True}, ["run.postgres.fsync: is True, expected 'on'"]),
        (
            "postgres",
            {**SERVER_FACTS, "synchronous_commit": "local"},
            ["run.postgres.synchronous_commit: is 'local', expected 'on'"],
        ),
        ("postgres", {**SERVER_FACTS, "version": ""}, ["run.postgres.version: is '', expected a"]),
        ("postgres", {"fsync": "on", "synchronous_commit": "on"}, ["run.postgres.version: the member is missing"]),
    ],
)
def test_a_run_says_of_a_server_whether_it_writes_through(store: str, server: object, words: list[str]) -> None:
    said: list[str] = []
    facts = {**forge.Archive([]).run, "postgres": server}
    protocol.hold_run(facts, store, lambda place, sentence: said.append(f"{place}: {sentence}"))
    assert len(said) == len(words)
    assert all(each.startswith(wanted) for each, wanted in zip(said, words, strict=True)), said

"""The five delivery scenarios as the forger's own catalogue: what the protocol of its archives says."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from tests.audit.forge import COUNTED

BODY, OTHER = "Add one to the counter.", "Add two to the counter."


def start(kind: str) -> dict[str, Any]:
    arguments = [kind, "--dir", "receiver", "--port", "{receiver.port}"]
    program = {"process": "receiver", "module": "receivers", "arguments": arguments}
    return {"do": "start", "halt_at": None, "pause_at": None, **program}


def run(process: str, module: str, arguments: list[str], exit_code: int, halt_at: str | None = None) -> dict[str, Any]:
    program = {"process": process, "module": module, "arguments": arguments}
    return {"do": "run", "exit_code": exit_code, "halt_at": halt_at, **program}


def request(key: str, body: str) -> list[str]:
    return ["--key", key, "--route", "/operations", "--body", body]


def produce(key: str) -> dict[str, Any]:
    return run("producer", "outbox.producer", ["--dir", "outbox", *request(key, BODY)], 0)


def dispatch(exit_code: int = 0, halt_at: str | None = None) -> dict[str, Any]:
    arguments = ["--dir", "outbox", "--receiver", "http://127.0.0.1:{receiver.port}"]
    return run("dispatcher", "outbox.dispatcher", arguments, exit_code, halt_at)


def bare_client(key: str) -> dict[str, Any]:
    arguments = ["--dir", "client", "--receiver", "http://127.0.0.1:{receiver.port}", *request(key, OTHER)]
    return run("client", "scenarios.client", arguments, 0)


STOP, KILL = {"do": "stop", "process": "receiver"}, {"do": "kill", "process": "receiver"}
NOTHING = dict.fromkeys(COUNTED, 0)
CHECK = {"do": "check", "name": "after_refusal", "counts": NOTHING}
TALLY = (
    "intentions", "already_delivered", "delivered", "unavailable", "conflict", "refused", "unknown", "waiting", "not_attempted",
    "history_added",
)  # fmt: skip
HALT = "send.response#1"


def plan(name: str, counts: tuple[int, int, int, int], steps: list[dict[str, Any]], wrong: bool = False) -> dict[str, Any]:
    expected = dict(zip(COUNTED, counts, strict=True))
    told = {"shows": f"What {name} shows.", "look_at": f"Where {name} shows it.", "counterexample": wrong, "store": None}
    return {"section": "delivery", "name": name, **told, "steps": steps, "expected": expected}


def catalogue() -> list[dict[str, Any]]:
    def crash(kind: str, key: str, *between: dict[str, Any]) -> list[dict[str, Any]]:
        return [start(kind), produce(key), dispatch(23, HALT), *between, dispatch(), STOP]

    refused = [start("keyed"), STOP, produce("receiver_unavailable-1"), dispatch(10), CHECK, start("keyed"), dispatch(), STOP]
    conflict = [start("keyed"), bare_client("key_conflict-1"), produce("key_conflict-1"), dispatch(11), STOP]
    restarted = crash("keyed", "keyed_receiver_restart-1", KILL, start("keyed"))
    return deepcopy(
        [
            plan("keyed_delivery", (1, 1, 1, 2), crash("keyed", "keyed_delivery-1")),
            plan("unkeyed_delivery", (2, 1, 1, 2), crash("unkeyed", "unkeyed_delivery-1"), wrong=True),
            plan("keyed_receiver_restart", (1, 1, 1, 2), restarted),
            plan("receiver_unavailable", (1, 1, 1, 1), refused),
            plan("key_conflict", (1, 0, 0, 2), conflict),
        ]
    )

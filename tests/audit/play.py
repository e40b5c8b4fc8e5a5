"""A small model of producer, dispatcher, client and receiver that plays a catalogue's scenarios into an archive.

It follows `evidence/README.md` alone and shares no code with the harness or with the audit.
"""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

from tests.audit.catalogue import TALLY, catalogue
from tests.audit.forge import COUNTED, Archive, Record, compact, payload, sha


class Play:
    """One scenario, played step by step into an archive."""

    def __init__(self, archive: Archive, scenario: dict[str, Any], clock: float) -> None:
        self.archive = archive
        self.plan = scenario
        self.name = f"{scenario['section']}/{scenario['name']}"
        self.folder = f"scenarios/{self.name}/"
        self.port = str(40000 + len(archive.processes))
        self.clock = clock
        self.begun: dict[str, int] = {}
        self.up: dict[str, dict[str, Any]] = {}
        self.kind = "keyed"

    def journal(self, path: str) -> list[Record]:
        return self.archive.journals.setdefault(f"{self.folder}{path}.jsonl", [])

    def append(self, path: str, kind: str, identifier: str, **data: Any) -> dict[str, Any]:
        self.journal(path).append({"type": kind, "id": identifier, "data": data})
        return data

    def play(self) -> None:
        checks = []
        for number, step in enumerate(self.plan["steps"], 1):
            self.clock += 0.01
            if step["do"] == "check":
                checks.append(self.check(step))
            elif step["do"] in ("start", "run"):
                self.launch(number, step)
            else:
                process = self.up.pop(step["process"])
                process["ended_seconds"] = round(self.clock, 6)
        counts = self.counts(self.folder)
        entry = {"scenario": self.name, **{name: self.plan[name] for name in ("shows", "look_at", "counterexample")}}
        entry |= {"expected": deepcopy(self.plan["expected"]), "counts": counts, "checks": checks, "exports": []}
        self.archive.results["scenarios"].append({**entry, "problems": [], "verdict": "PASS"})

    def counts(self, folder: str) -> dict[str, int]:
        found = dict.fromkeys(COUNTED, 0)
        for path, records in self.archive.journals.items():
            if path.startswith(folder) and (folder != self.folder or "/checkpoints/" not in path):
                name = Path(path).stem
                if name in found:
                    found[name] += sum(record["type"] == name.removesuffix("s") for record in records)
        return found

    def check(self, step: dict[str, Any]) -> dict[str, Any]:
        copies = f"{self.folder}checkpoints/{step['name']}/"
        for path in [p for p in self.archive.journals if p.startswith(self.folder) and "/checkpoints/" not in p]:
            self.archive.journals[copies + path.removeprefix(self.folder)] = deepcopy(self.archive.journals[path])
        return {"name": step["name"], "expected": deepcopy(step["counts"]), "counts": self.counts(copies)}

    def launch(self, number: int, step: dict[str, Any]) -> None:
        name, halt_at = step["process"], step["halt_at"]
        self.begun[name] = self.begun.get(name, 0) + 1
        later = [after["do"] for after in self.plan["steps"][number:] if after.get("process") == name]
        ends = later[0] if step["do"] == "start" else ""
        code = None if ends == "kill" else step.get("exit_code", 0)
        signal = "SIGKILL" if ends == "kill" else None
        point, _, occurrence = (halt_at or "").partition("#")
        arguments = dict(zip(step["arguments"], step["arguments"][1:], strict=False))
        command = ["python", "-m", step["module"], *step["arguments"]]
        process = {
            "scenario": self.name, "process": name, "incarnation": self.begun[name], "step": number, "command": command,
            "substitutions": {"receiver.port": self.port} if "{receiver.port}" in " ".join(command) else {},
            "environment": {"HALT_AT": halt_at} if halt_at else {},
            "fault": {"point": point, "occurrence": int(occurrence)} if halt_at else None, "pause": None,
            "expected_exit": {"code": code, "signal": signal}, "exit_code": code, "signal": signal,
            "ended_by": ends or "itself", "stdout": "", "ready": f"READY 127.0.0.1:{self.port}" if ends else None,
            "stderr": f"halt(23) at {halt_at}\n" if halt_at else "", "pid": 5000 + len(self.archive.processes),
            "started_seconds": round(self.clock, 6), "ended_seconds": round(self.clock + 0.005, 6),
            "resources": {"user_cpu_seconds": 0.01, "system_cpu_seconds": 0.0, "max_rss_bytes": 1000000},
        }  # fmt: skip
        self.archive.processes.append(process)
        if step["module"] == "receivers":
            self.kind = step["arguments"][0]
            self.up[name] = process
            self.journal("receiver/effects")
            self.journal("receiver/arrivals")
        elif step["module"] == "outbox.producer":
            process["stdout"] = self.produce(arguments)
        elif step["module"] == "outbox.dispatcher":
            process["stdout"] = self.dispatch(bool(halt_at))
        else:
            self.client(arguments)

    def produce(self, arguments: dict[str, str]) -> str:
        body = arguments["--body"].encode()
        key = arguments["--key"]
        told = {"key": key, "route": arguments["--route"], "body": payload(body), "fingerprint": sha(body)}
        self.append("outbox/intentions", "intention", key, **told)
        return json.dumps({"intention": key, "created": True}) + "\n"

    def dispatch(self, halts: bool) -> str:
        self.archive.extra[f"{self.folder}outbox/dispatcher.lock"] = b""
        attempts, receipts = self.journal("outbox/attempts"), self.journal("outbox/receipts")
        self.journal("outbox/history")
        tally = dict.fromkeys(TALLY, 0)
        for intention in self.journal("outbox/intentions"):
            tally["intentions"] += 1
            key, told = intention["id"], intention["data"]
            if any(receipt["id"] == key for receipt in receipts):
                tally["already_delivered"] += 1
                continue
            number = 1 + sum(a["type"] == "attempt" and a["data"]["intention"] == key for a in attempts)
            identity = {"intention": key, "number": number}
            self.append("outbox/attempts", "attempt", f"{key}#{number}", **identity, key=key, fingerprint=told["fingerprint"])
            if not self.up:
                refused = {"outcome": "did_not_happen", "reason": "connection_refused", "status": None, "not_before": None}
                self.append("outbox/attempts", "outcome", f"{key}#{number}", **identity, **refused)
                tally["unavailable"] += 1
                continue
            status, replayed, result = self.arrive(key, str(number), told)
            if halts:
                return ""
            if status == 409:
                conflict = {"outcome": "did_not_happen", "reason": "conflict", "status": 409, "not_before": None}
                self.append("outbox/attempts", "outcome", f"{key}#{number}", **identity, **conflict)
                tally["conflict"] += 1
                continue
            claims = {"intention": key, "key": key, "attempt": number, "fingerprint": told["fingerprint"], "status": status}
            claims["via"] = "response"
            self.append("outbox/receipts", "receipt", key, **claims, replayed=replayed, result=payload(result))
            tally["delivered"] += 1
            self.append("outbox/history", "history", key, question=told["body"], answer=payload(result))
            tally["history_added"] += 1
        return json.dumps(tally) + "\n"

    def arrive(self, key: str, attempt: str | None, told: dict[str, Any]) -> tuple[int, bool, bytes]:
        arrivals, effects = self.journal("receiver/arrivals"), self.journal("receiver/effects")
        name = f"arrival-{1 + sum(a['type'] == 'arrival' for a in arrivals)}"
        body = told["body"]["content"].encode()
        seen = {"method": "POST", "route": told["route"], "key": key, "attempt": attempt}
        seen["sender"] = "client" if attempt is None else None
        self.append("receiver/arrivals", "arrival", name, **seen, fingerprint=sha(body), body_bytes=len(body))
        held = next((e for e in effects if self.kind == "keyed" and e["id"] == key), None)
        if held and held["data"]["fingerprint"] != sha(body):
            told = {"error": "body_differs", "message": "this key was used with another body; nothing was done"}
            answer = {"outcome": "conflict", "reason": "body_differs", "status": 409, "effect": None}
            self.append("receiver/arrivals", "answer", name, **answer, result_sha256=sha(compact(told).encode()))
            return 409, False, b""
        if held is None:
            number = len(effects) + 1
            result = f'{{"answer":"The counter is now {number}.","counter":{number}}}'.encode()
            identity, bound = (key, key) if self.kind == "keyed" else (f"effect-{number}", None)
            change = {"arrival": name, "key": bound, "fingerprint": sha(body), "number": number, "status": 200}
            self.append("receiver/effects", "effect", identity, **change, result=payload(result))
            effect = effects[-1]
        else:
            effect, result = held, held["data"]["result"]["content"].encode()
        outcome = "replayed" if held else "applied"
        answer = {"outcome": outcome, "reason": None, "status": 200, "effect": effect["id"], "result_sha256": sha(result)}
        self.append("receiver/arrivals", "answer", name, **answer)
        return 200, held is not None, result

    def client(self, arguments: dict[str, str]) -> None:
        body = arguments["--body"].encode()
        key = arguments["--key"]
        told = {"key": key, "route": arguments["--route"], "body": payload(body), "fingerprint": sha(body)}
        self.append("client/requests", "request", "client", **told)
        status, replayed, result = self.arrive(key, None, told)
        self.append("client/requests", "response", "client", status=status, replayed=replayed, result=payload(result))


def study(names: list[str] | None = None) -> Archive:
    """A valid archive of the five scenarios, or of some of them."""
    archive = Archive(catalogue())
    chosen = [p for p in archive.protocol["scenarios"] if names is None or p["name"] in names]
    archive.selection = [f"delivery/{p['name']}" for p in chosen]
    for number, scenario in enumerate(chosen):
        Play(archive, scenario, float(number)).play()
    archive.finish()
    return archive

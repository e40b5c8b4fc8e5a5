"""The JSON Schemas of the evidence, and the command that writes them: `python -m tests.evidence.schemas`.

They follow evidence/README.md and share nothing with the programs or with the audit; the tests hold all of them against each
other. A journal's schema is that of one line. A schema looks at one document: sums, orders, and what records mean together
are the audit's business.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.evidence import campaigns
from tests.evidence.checks import CHECK
from tests.evidence.forms import (
    COUNT,
    FLAG,
    MOMENT,
    NAME,
    NUMBER,
    PAYLOAD,
    POSITIVE,
    SHA,
    STATUS,
    SUCCESS,
    TEXT,
    Schema,
    array,
    exact,
    integer,
    matching,
    named,
    one_of,
    or_null,
)  # fmt: skip
from tests.evidence.tables import DATABASE, EXPORT, ROW_COUNTS, STORE
from tests.evidence.together import ANSWERS, FAULT, OUTCOME, OUTCOMES, REFUSALS, SERVER_OF_STORE, UNKNOWN_OR_BOTH, VIA, ends

FOLDER = Path(__file__).resolve().parents[2] / "evidence" / "schemas"
EXPORTS = "dispatch-export"
DRAFT = "https://json-schema.org/draft/2020-12/schema"


SCENARIO = matching("[a-z0-9_]+/[a-z0-9_]+")
ROUTE = {"type": "string", "pattern": "^/"}
HALT = or_null(matching("[^#]+(#[1-9][0-9]{0,8})?"))
IDENTIFIER = matching("[ -~]{1,300}")
COUNTS = exact({name: COUNT for name in ("effects", "receipts", "history", "arrivals")})
VERDICT = one_of("PASS", "FAIL")

JOURNALS: dict[str, dict[str, tuple[str, Schema]]] = {
    "intentions": {"intention": ("", exact({"body": PAYLOAD, "fingerprint": SHA, "key": NAME, "route": ROUTE}))},
    "attempts": {
        "attempt": (".+#[1-9][0-9]*", exact({"fingerprint": SHA, "intention": NAME, "key": NAME, "number": POSITIVE})),
        "outcome": (
            ".+#[1-9][0-9]*",
            exact(
                {"intention": NAME, "not_before": or_null(NUMBER), "number": POSITIVE, **OUTCOME}, ways=OUTCOMES,
            ),
        ),
        "inquiry": (
            ".+#[1-9][0-9]*[?][1-9][0-9]*",
            exact({"answer": one_of("applied", "not_applied", "unanswerable"), "intention": NAME, "number": POSITIVE}),
        ),
    },
    "receipts": {
        "receipt": (
            "",
            exact({
                "attempt": POSITIVE, "fingerprint": SHA, "intention": NAME, "key": NAME, "replayed": FLAG,
                "result": or_null(PAYLOAD), "status": or_null(SUCCESS), "via": one_of("response", "status_query", "mark"),
            }, ways=VIA),
        ),
    },
    "history": {"history": ("", exact({"answer": PAYLOAD, "question": PAYLOAD}))},
    "effects": {
        "effect": (
            "",
            exact(
                {
                    "arrival": matching("arrival-[1-9][0-9]*"), "at_seconds": NUMBER, "fingerprint": SHA, "key": or_null(NAME),
                    "number": POSITIVE, "result": PAYLOAD, "status": SUCCESS,
                },
                left_out=("at_seconds",),
            ),
        ),
    },
    "keys": {"key": ("", exact({"effect": NAME, "fingerprint": SHA, "result": PAYLOAD, "status": SUCCESS}))},
    "arrivals": {
        "arrival": (
            "arrival-[1-9][0-9]*",
            exact({
                "attempt": or_null(TEXT), "body_bytes": or_null(COUNT), "fingerprint": or_null(SHA), "key": or_null(NAME),
                "method": NAME, "route": TEXT, "sender": or_null(TEXT),
            }),
        ),
        "answer": (
            "arrival-[1-9][0-9]*",
            exact({
                "effect": or_null(NAME), "outcome": one_of("applied", "replayed", "conflict", "refused", "failed"),
                "reason": or_null(one_of(*[reason for reasons in REFUSALS.values() for reason in reasons])),
                "result_sha256": SHA, "status": STATUS,
            }, ways=ANSWERS),
        ),
        "query": ("query-[1-9][0-9]*", exact({"answer": one_of("applied", "not_applied"), "key": NAME})),
    },
    "requests": {
        "request": ("", exact({"body": PAYLOAD, "fingerprint": SHA, "key": NAME, "route": ROUTE})),
        "response": ("", exact({"replayed": FLAG, "result": PAYLOAD, "status": SUCCESS})),
        "outcome": ("", exact(OUTCOME, ways=OUTCOMES)),
    },
    "exchanges": {
        "exchange": (
            "connection-[1-9][0-9]*",
            exact({
                "fault": matching(FAULT), "request_bytes": COUNT, "request_forwarded_bytes": COUNT, "response_bytes": COUNT,
                "response_forwarded_bytes": COUNT,
            }),
        ),
    },
    "prefixes": {"prefix": ("(0|[1-9][0-9]*)", exact({"after": COUNT, "bytes": COUNT, "kept": COUNT}))},
}  # fmt: skip
"""For each journal its types; for each type what its `id` looks like (where more can be said than of all) and its `data`."""

LAUNCH = {"process": NAME, "module": NAME, "arguments": array(TEXT), "halt_at": HALT}
RUN_STEP = {**LAUNCH, "exit_code": integer(0, 255)}
STEPS: dict[str, dict[str, Schema]] = {
    "start": {**LAUNCH, "pause_at": HALT},
    "begin": {**LAUNCH, "pause_at": HALT},
    "run": RUN_STEP,
    "together": {"runs": array(exact({"do": {"const": "run"}, **RUN_STEP}))},
    "stop": {"process": NAME},
    "kill": {"process": NAME},
    "await": {"process": NAME, "exit_code": integer(0, 255)},
    "await_paused": {"process": NAME},
    "resume": {"process": NAME},
    "write": {"path": NAME, "content": TEXT},
    "flip": {"path": NAME, "offset": COUNT},
    "move": {"path": NAME, "to": NAME},
    "check": {"name": NAME, "counts": COUNTS},
    "export": {"name": NAME, "rows": ROW_COUNTS},
    "limit_files": {"process": NAME, "max_bytes": COUNT},
    "kill_database": {},
    "start_database": {},
}
SQLITE = exact({"package": NAME, "version": NAME, "journal_mode": one_of("wal", "truncate")})
SERVER = exact({"version": NAME, "fsync": {"const": "on"}, "synchronous_commit": {"const": "on"}})
RUN = exact({
    "spawn": one_of("fork", "exec"), "jobs": POSITIVE,
    "started_at": MOMENT,
    "wall_seconds": NUMBER, "cores": POSITIVE, "python": NAME, "implementation": NAME, "platform": NAME,
    "file_system": or_null(NAME), "packages": {**named(NAME), "minProperties": 1}, "sqlite": SQLITE,
    "postgres": or_null(SERVER),
    "commit": or_null(matching("[0-9a-f]{40}")), "clean": or_null(FLAG),
}, ways=UNKNOWN_OR_BOTH)  # fmt: skip
PLAN = exact({
    "section": NAME, "name": NAME, "shows": NAME, "look_at": NAME, "counterexample": FLAG, "store": or_null(STORE),
    "steps": array({"oneOf": [exact({"do": {"const": do}, **members}) for do, members in STEPS.items()]}), "expected": COUNTS,
})  # fmt: skip
MANIFEST = exact({
    "format": {"const": "halt23.evidence"}, "format_version": {"const": 1},
    "protocol": exact({
        "version": POSITIVE, "sha256": SHA, "catalogue": array(exact({"scenario": SCENARIO, "sha256": SHA})),
        "scenarios": array(PLAN),
    }),
    "selection": exact({"scenarios": array(SCENARIO), "store": STORE, "complete": FLAG}),
    "run": RUN, "sources": named(SHA), "files": named(exact({"bytes": COUNT, "sha256": SHA})),
}, ways=SERVER_OF_STORE)  # fmt: skip
ARMED = or_null(exact({"point": NAME, "occurrence": POSITIVE}))
EXIT_CODE, SIGNAL = or_null(integer(0, 255)), or_null(matching("SIG[A-Z0-9]+"))


PROCESS = exact({
    "scenario": SCENARIO, "process": NAME, "incarnation": POSITIVE, "step": POSITIVE, "command": array(TEXT),
    "substitutions": {**named(matching("[1-9][0-9]{0,4}")), "properties": {"db": DATABASE}},
    "environment": exact({"HALT_AT": NAME, "PAUSE_AT": NAME}, left_out=("HALT_AT", "PAUSE_AT")),
    "fault": ARMED, "pause": ARMED, "expected_exit": exact({"code": EXIT_CODE, "signal": SIGNAL}, ways=ends("code")),
    "exit_code": EXIT_CODE, "signal": SIGNAL, "ended_by": one_of("itself", "stop", "kill", "harness"), "stdout": TEXT,
    "ready": or_null(matching("READY 127[.]0[.]0[.]1:[1-9][0-9]{0,4}")), "stderr": TEXT, "pid": integer(1, 2**31 - 1),
    "started_seconds": NUMBER, "ended_seconds": NUMBER,
    "resources": exact({"user_cpu_seconds": NUMBER, "system_cpu_seconds": NUMBER, "max_rss_bytes": COUNT}),
}, ways=ends("exit_code"))  # fmt: skip
PROCESSES = exact({
    "format": {"const": "halt23.processes"}, "format_version": {"const": 1}, "processes": array(PROCESS),
})  # fmt: skip
RESULT = exact({
    "scenario": SCENARIO, "shows": NAME, "look_at": NAME, "counterexample": FLAG, "expected": COUNTS, "counts": or_null(COUNTS),
    "checks": array(exact({"name": NAME, "expected": COUNTS, "counts": COUNTS})),
    "exports": array(exact({"name": NAME, "expected": ROW_COUNTS, "rows": ROW_COUNTS})), "problems": array(TEXT),
    "verdict": VERDICT,
})  # fmt: skip
RESULTS = exact({
    "format": {"const": "halt23.results"}, "format_version": {"const": 1}, "scenarios": array(RESULT),
    "totals": exact({name: COUNT for name in ("scenarios", "processes", "requests", "records")}), "verdict": VERDICT,
})  # fmt: skip


CAMPAIGN: dict[str, tuple[Schema, str]] = {
    "campaign-manifest": (campaigns.manifest(RUN), "manifest.json of a campaign"),
    "campaign-plan": (campaigns.PLAN, "plan.json of a campaign"),
    "campaign-result": (campaigns.RESULT, "One line of results.jsonl of a campaign"),
    "campaign-processes": (campaigns.processes(PROCESS), "processes.json of a case of a campaign"),
}


def line_of(journal: str) -> Schema:
    """The schema of one line of a journal."""
    types = JOURNALS[journal]
    members: dict[str, Schema] = {
        "sha256": SHA, "previous": SHA, "sequence": POSITIVE, "type": one_of(*types), "id": IDENTIFIER,
        "data": {"type": "object"},
    }  # fmt: skip
    ways = [
        {"properties": {"type": {"const": kind}, **({"id": matching(form)} if form else {}), "data": data}}
        for kind, (form, data) in types.items()
    ]
    return {**exact(members), "oneOf": ways}


def schemas() -> dict[str, Schema]:
    """Every schema by the name of its file."""
    found = {"manifest": MANIFEST, "processes": PROCESSES, "results": RESULTS}
    titles = {name: f"{name}.json of an archive" for name in found}
    found[EXPORTS], titles[EXPORTS] = EXPORT, "An export of the tables of a dispatch outbox, exports/NAME.json of a scenario"
    for name, (schema, title) in {**CAMPAIGN, **CHECK}.items():
        found[name], titles[name] = schema, title
    for journal in JOURNALS:
        found[journal] = line_of(journal)
        titles[journal] = f"One line of a journal {journal}.jsonl"
    return {
        f"{name}.schema.json": {"$schema": DRAFT, "$id": f"urn:halt23:evidence:1:{name}", "title": titles[name], **schema}
        for name, schema in found.items()
    }


def text(schema: Schema) -> str:
    """A schema as it stands in its file."""
    return json.dumps(schema, indent=1) + "\n"


def main() -> int:
    """Write every schema to evidence/schemas/."""
    FOLDER.mkdir(exist_ok=True)
    for name, schema in schemas().items():
        (FOLDER / name).write_text(text(schema), encoding="ascii", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The schemas of a campaign: its manifest, its plan, one line of its results, and its processes."""

from __future__ import annotations

from tests.evidence.forms import (
    COUNT,
    FLAG,
    NAME,
    POSITIVE,
    SHA,
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
from tests.evidence.tables import STATUSES, STORE

LINE = "[a-z0-9_]+([.][a-z0-9_]+)*:[1-9][0-9]*"
AT_POINT = "(pause(-in-lease)?:)?([a-z_]+:)?[a-z_]+([.][a-z_]+)+"
CALL = "[a-z_]+:sys:[a-z0-9_]+(=[A-Z]+)?"
POWER = "power:[0-9]+[.][1-9][0-9]*"
FAULT = f"{AT_POINT}#[1-9][0-9]*|[a-z_]+:{LINE}#[1-9][0-9]*|wire:[a-z0-9:-]+#[1-9][0-9]*|{CALL}#[1-9][0-9]*|{POWER}"
ROUND = f"(none|({FAULT})(&({FAULT}))*)"
SUBJECT_NAME = "[a-z0-9-]+/[a-z0-9-]+"
CASE = matching(f"{SUBJECT_NAME}/({ROUND}([+]{ROUND})*|random:[a-z0-9-]+)")
DECLARED = matching("[a-z_]+([.][a-z_]+)+")
POINT = matching(f"([a-z_]+([.][a-z_]+)+|{LINE})")
PLACE = matching(f"[a-z_]+([.][a-z_]+)+|{LINE}|sys:[a-z0-9_]+")
REACHED = named(named(POSITIVE))
KINDS = ("lost", "duplicate", "phantom", "stuck", "undeclared")
ROLE = exact({
    "process": NAME, "module": NAME, "arguments": array(TEXT), "server": FLAG, "once": FLAG, "done": array(integer(0, 255)),
    "owns": array(NAME), "stoppable": FLAG, "after": or_null(NAME), "lease_seconds": or_null(POSITIVE),
})  # fmt: skip
SUBJECT = exact({
    "name": matching(SUBJECT_NAME), "roles": array(ROLE), "operations": array(NAME),
    "allowed": exact({
        **{name: COUNT for name in ("least", "most", "each_fault", "each_copy")}, "may_end": array(one_of(*STATUSES)),
    }),
    "unfinished": or_null(array(one_of(*STATUSES))), "round_seconds": POSITIVE, "pause_seconds": POSITIVE,
})  # fmt: skip
PLAN = exact({
    "mode": one_of("points", "wire", "pauses", "lines", "syscalls", "power", "random"), "depth": integer(1, 3),
    "budget": or_null(POSITIVE), "keep": one_of("failed", "all"), "store": or_null(STORE), "sources": SHA,
    "subjects": array(SUBJECT), "seed": COUNT,
}, left_out=("seed",))  # fmt: skip
STRIKE = exact({"how": one_of("halt", "kill", "stop"), "at": NAME})
STEP = {
    "do": one_of("run", "serve", "kill", "clock"), "process": NAME, "fault": STRIKE, "seconds": {"type": "integer"},
}  # fmt: skip
USUAL = ("process", "fault", "seconds")
HISTORY = exact({
    "operations": integer(1, 6), "wire": array(exact({"connection": POSITIVE, "fault": NAME})),
    "steps": array(exact({**STEP, "meanwhile": array(exact(STEP, left_out=USUAL))}, left_out=(*USUAL, "meanwhile"))),
})  # fmt: skip
RESULT = exact({
    "case": CASE, "verdict": one_of("held", "violated", "unknown"), "kinds": array(one_of(*KINDS)),
    "violations": array(matching(f"({'|'.join(KINDS)}): .+")), "doubts": array(NAME),
    "deaths": array(exact({
        "process": NAME, "point": PLACE, "occurrence": POSITIVE, "round": POSITIVE, "left": TEXT, "digest": SHA,
    })),
    "counts": exact({name: COUNT for name in ("effects", "receipts", "history", "arrivals")}), "digest": SHA,
    "rounds": POSITIVE, "processes": COUNT, "history": HISTORY, "image": exact({"left": TEXT, "digest": SHA}),
    "reached": array(REACHED),
}, left_out=("history", "image", "reached"))  # fmt: skip
TOTALS = exact({
    **{name: COUNT for name in ("cases", "held", "violated", "unknown", "pruned", "processes")}, "fired": array(PLACE),
})  # fmt: skip


def manifest(run: Schema) -> Schema:
    """The schema of a campaign's manifest, with that of a run."""
    return exact({
        "format": {"const": "halt23.campaign"}, "format_version": {"const": 1}, "plan": PLAN,
        "derived": array(exact({
            "subject": matching(SUBJECT_NAME), "points": array(REACHED), "digest": SHA, "doubts": array(NAME),
            "recorded": exact({name: COUNT for name in ("calls", "images", "judged")}),
        }, left_out=("recorded",))),
        "declared": array(DECLARED), "totals": TOTALS, "verdict": one_of("PASS", "FAIL", "UNKNOWN"), "run": run,
        "sources": named(SHA), "files": named(exact({"bytes": COUNT, "sha256": SHA})),
    })  # fmt: skip


def processes(process: Schema) -> Schema:
    """The schema of `processes.json` of one case, from that of a process of a study."""
    variables = {name: NAME for name in ("HALT_AT", "HALT_AT_LINE", "PAUSE_AT", "POINTS_TO", "LINES_TO", "SYSCALL_AT")}
    members = {**process["properties"], "scenario": matching("explore/.+")}
    members["environment"] = exact(variables, left_out=tuple(variables))
    members["expected_exit"] = {"const": {"code": None, "signal": None}}
    return exact({
        "format": {"const": "halt23.processes"}, "format_version": {"const": 1},
        "processes": array({**process, "properties": members}),
    })  # fmt: skip

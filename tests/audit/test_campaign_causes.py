"""The audit states anew what has no cause: by its own code it comes to the sentences that the exploring wrote."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from audit.campaign_plan import Subject
from audit.campaign_state import MOVES, OUTBOX, RECEIVER, SENDER, States, of_tables
from audit.campaign_state import State as Stated
from audit.files import Tree
from audit.findings import Findings
from scenarios.explore.readers import read_database, read_journals
from scenarios.explore.state import OPENING, Place, State

IDENTITIES = ("a" * 32, "b" * 32)
FEW = settings(max_examples=60)
values = st.sampled_from(("1", "2", None))
fingerprints = st.sampled_from((hashlib.sha256(b"{}").hexdigest(), hashlib.sha256(b'{"n":1}').hexdigest(), "", None))
routes = st.sampled_from(("/operations", "/operations?x", None))
names = st.sampled_from((*IDENTITIES, "other", None))
KINDS: dict[str, tuple[str, dict[str, st.SearchStrategy[Any]]]] = {
    SENDER[0]: ("intention", {"body": values, "route": routes, "fingerprint": fingerprints}),
    SENDER[1]: ("attempt", {"number": values}),
    SENDER[2]: ("receipt", {"result": values}),
    SENDER[3]: ("history", {"question": values, "answer": values}),
    RECEIVER[0]: ("effect", {"key": names, "fingerprint": fingerprints, "result": values}),
    RECEIVER[1]: ("arrival", {"key": names, "fingerprint": fingerprints, "route": routes}),
}
journals = st.fixed_dictionaries({
    name: st.lists(
        st.tuples(st.sampled_from((*IDENTITIES, "other")), st.fixed_dictionaries({}, optional=members)), max_size=3
    )
    for name, (_kind, members) in KINDS.items()
})  # fmt: skip
moves = st.fixed_dictionaries({
    "entity_id": st.sampled_from(IDENTITIES),
    "previous_status": st.sampled_from((None, "pending", "delivering", "delivered", "dead_letter")),
    "status": st.sampled_from(("pending", "delivering", "delivered", "acked", "dead_letter")),
    "reason_code": st.sampled_from((
        *["dispatch.delivering.attempt"] * 3, "dispatch.delivered.transport_ok", "dispatch.acked.consumer",
        "dispatch.dead_letter.ack_timeout",
    )),
    "reason_summary": st.sampled_from((
        "attempt 1 of 1", "attempt 2 of 1", "attempt 1 of 2", "an attempt", "attempt 1 of", "attempt one of 1", "at 1 of 1",
    )),
    "source": st.sampled_from(("system", "system", "operator")),
    "metadata": st.sampled_from(('{"attempt":1}', '{"attempt":2}', "{}", "[]", "none")),
    "created_at": st.sampled_from((1.0, 5.0)),
})  # fmt: skip
rows = st.lists(
    st.fixed_dictionaries({
        "id": st.sampled_from(IDENTITIES), "payload": st.sampled_from(("{}", '{"n":1}')), "status": st.just("delivered"),
        "deliver_to": st.sampled_from(("http://host/operations", "http://host", "/operations", "http://host/operations?x#y")),
        "attempt": st.just(1), "max_attempts": st.integers(1, 2), "ack_required": st.integers(0, 1),
        "expires_at": st.sampled_from((None, 3.0)), "lane": st.none(), "lane_position": st.none(),
    }),
    max_size=2, unique_by=lambda row: row["id"],
)  # fmt: skip


def written(root: Path, found: dict[str, list[tuple[str, dict[str, Any]]]]) -> None:
    for name, records in found.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        lines = [
            json.dumps({"type": KINDS[name][0], "id": key, "data": data}, separators=(",", ":"))[1:] for key, data in records
        ]
        path.write_bytes(
            b"".join(
                OPENING + hashlib.sha256(each.encode()).hexdigest().encode() + b'",' + each.encode() + b"\n" for each in lines
            )
        )


def agree(engine: State, audit: Stated) -> None:
    assert (list(engine.uncaused), list(engine.repeated)) == (audit.uncaused, audit.repeated)
    assert (dict(engine.effects), dict(engine.receipts)) == (audit.effects, audit.receipts)
    assert list(engine.unfinished) == audit.unfinished


def stated(root: Path) -> Stated:
    subject = Subject({"name": "small/one", "operations": [], "allowed": {}, "unfinished": None}, [])
    names = [path.relative_to(root).as_posix() for path in root.rglob("*.jsonl")]
    return States(Tree(str(root), Findings())).read("", names, subject, None, lambda _place, _sentence: None)


@FEW
@given(found=journals)
def test_of_journals(found: dict[str, list[tuple[str, dict[str, Any]]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        written(Path(folder), found)
        agree(read_journals(Place(Path(folder))), stated(Path(folder)))


@FEW
@given(found=journals, rows=rows, history=st.lists(moves, max_size=6))
def test_of_tables(
    found: dict[str, list[tuple[str, dict[str, Any]]]], rows: list[dict[str, Any]], history: list[dict[str, Any]]
) -> None:
    tables = {OUTBOX: rows, MOVES: history}
    with tempfile.TemporaryDirectory() as folder:
        written(Path(folder), {name: found[name] for name in RECEIVER})
        audit, files = Stated(), stated(Path(folder)).lines
        of_tables(audit, tables, files, ["pending", "delivering"])
        agree(read_database(Place(Path(folder), tables=tables)), audit)

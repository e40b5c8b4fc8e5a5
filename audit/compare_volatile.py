"""What may differ between two archives is still of its kind on both sides: a process id is an integer, whatever it is.

Values are not compared here, only held to the shapes of the audit. Nothing is looked at but the volatile members of processes
and the manifest's `run`.
"""

from __future__ import annotations

from audit.processes import PROCESS, RESOURCES
from audit.protocol import RUN, SERVER
from audit.shapes import holds
from audit.volatile import VOLATILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.compare_files import Sides

MANIFEST, PROCESSES = "manifest.json", "processes.json"
KINDS = {name: PROCESS[name] for name in VOLATILE[PROCESSES]}


def processes(sides: Sides, documents: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Hold the volatile members of every process that both archives have a scenario for."""
    for side, document in enumerate(documents):
        records = document.get("processes")
        for record in records if type(records) is list else []:
            if type(record) is dict and type(record.get("scenario")) is str and record["scenario"] in sides.common:
                _process(sides, side, record)


def _process(sides: Sides, side: int, record: dict[str, Any]) -> None:
    there = {name: kind for name, kind in KINDS.items() if name in record}

    def note(place: str, sentence: str) -> None:
        where = f"{PROCESSES} {record.get('process')} (incarnation {record.get('incarnation')}).{place}"
        sides.add(record["scenario"], where, f"{sentence} (in {sides.name(side)})")

    good = holds({name: record[name] for name in there}, there, note, "")
    if good and "resources" in there:
        holds(record["resources"], RESOURCES, note, "resources")


def run(sides: Sides, manifests: list[dict[str, Any]]) -> None:
    """Hold the member `run` of both manifests."""
    for side, manifest in enumerate(manifests):

        def note(place: str, sentence: str, side: int = side) -> None:
            sides.add(MANIFEST, place, f"{sentence} (in {sides.name(side)})")

        if "run" in manifest and holds(manifest["run"], RUN, note, "run") and manifest["run"]["postgres"] is not None:
            holds(manifest["run"]["postgres"], SERVER, note, "run.postgres")

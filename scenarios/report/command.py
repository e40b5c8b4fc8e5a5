"""`run.py report`: the page of an archive again, and its pictures as files: SVG for slides, Mermaid text for documents.

Nothing is overwritten, and nothing is written before it is clear that everything can be. Where the page goes is told: into
the archive, unless another file is named; it is no evidence there (evidence/README.md).
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from outbox.errors import BadInput
from scenarios.errors import EvidenceIncomplete
from scenarios.report import archive as archives
from scenarios.report import diagram, mermaid, page, svg
from scenarios.report.facts import Archive, ScenarioEvidence
from scenarios.report.story import tell
from scenarios.report.words import plain


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for: the page's file, or None for none, and the folders for pictures."""

    page: Path | None
    svg: Path | None = None
    mermaid: Path | None = None


def where(archive: Path, out: Path | None, *, pictures: bool) -> Path | None:
    """Where the page goes: to `out`, or into the archive; nowhere if only pictures were asked for."""
    return out if out is not None or pictures else archive / archives.PAGE


def write(folder: Path, wanted: Wanted) -> list[str]:
    """Write what is wanted of the archive `folder`; returns a line for each thing that was written.

    Raises BadInput where something is in the way or `folder` is no finished archive, and EvidenceIncomplete where the machine
    refuses to write.
    """
    _hold_free(folder, wanted)
    archive = archives.read(folder)
    written: list[str] = []
    try:
        if wanted.page is not None:
            content = page.render(archive, wanted.page)
            wanted.page.parent.mkdir(parents=True, exist_ok=True)
            with wanted.page.open("xb") as file:
                file.write(content)
            written.append(f"{wanted.page}: {len(archive.scenarios)} scenarios, {len(content):,} bytes")
        for target, ending, draw in ((wanted.svg, "svg", _svg), (wanted.mermaid, "mmd", _mermaid)):
            if target is not None:
                written.append(_pictures(archive, target, ending, draw))
    except OSError as error:
        raise EvidenceIncomplete(f"{error.filename or folder}: cannot be written: {error.strerror or error}") from error
    return written


def _hold_free(folder: Path, wanted: Wanted) -> None:
    default = folder / archives.PAGE
    if wanted.page == default and os.path.lexists(default):
        raise BadInput(f"{default} exists, and nothing is overwritten; open it, or name another file with --out FILE")
    for option, path in (("--out", wanted.page), ("--svg", wanted.svg), ("--mermaid", wanted.mermaid)):
        if path is not None and os.path.lexists(path):
            raise BadInput(f"{option} {path}: it exists, and nothing is overwritten; name another")
        if path is not None and any(above.exists() and not above.is_dir() for above in path.parents):
            raise BadInput(f"{option} {path}: what stands above it is no directory; name another")


def _pictures(archive: Archive, target: Path, ending: str, draw: Callable[[ScenarioEvidence], str]) -> str:
    """A file for each scenario, named `section-name`, in the new folder `target`."""
    target.mkdir(parents=True)
    for number, scenario in enumerate(archive.scenarios, 1):
        name = f"{scenario.section}-{scenario.name}"
        safe = (
            name
            if name.isascii() and name.replace("-", "").replace("_", "").isalnum() and len(name) <= 200
            else f"scenario-{number}"
        )
        with (target / f"{safe}.{ending}").open("x", encoding="utf-8", errors="backslashreplace") as file:
            file.write(draw(scenario))
    return f"{target}: {len(archive.scenarios)} files *.{ending}"


def _svg(scenario: ScenarioEvidence) -> str:
    return svg.document(diagram.draw(tell(scenario)), f"{plain(scenario.name)}: {plain(scenario.shows)}")


def _mermaid(scenario: ScenarioEvidence) -> str:
    return mermaid.text(tell(scenario))

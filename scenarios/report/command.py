"""`run.py report`: the page of an archive again, and its pictures as files: SVG for slides, Mermaid text for documents.

Nothing is overwritten, and nothing is written before it is clear that everything can be. Where the page goes is told: into
the archive, unless another file is named; it is no evidence there (evidence/README.md).
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    if wanted.page is not None:
        content = page.render(archive, wanted.page)
        with _writing(wanted.page):
            wanted.page.parent.mkdir(parents=True, exist_ok=True)
            _put(wanted.page, content)
        written.append(f"{wanted.page}: {len(archive.scenarios)} scenarios, {len(content):,} bytes")
    for target, ending, draw in ((wanted.svg, "svg", _svg), (wanted.mermaid, "mmd", _mermaid)):
        if target is not None:
            with _writing(target):
                written.append(_pictures(archive, target, ending, draw))
    return written


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EvidenceIncomplete(f"{target}: cannot be written: {error.strerror or error}") from error


def _put(target: Path, content: bytes) -> None:
    """The whole file or none: what is cut off by a full disk would be in the way of the next try."""
    partial = target.with_name(f".{target.name}.partial")
    try:
        with partial.open("xb") as file:
            file.write(content)
        os.link(partial, target)  # unlike a rename, it overwrites nothing that came meanwhile
    finally:
        partial.unlink(missing_ok=True)


def _hold_free(folder: Path, wanted: Wanted) -> None:
    default = folder / archives.PAGE
    if wanted.page == default and os.path.lexists(default):
        raise BadInput(f"{default} exists, and nothing is overwritten; open it, or name another file with --out FILE")
    asked = {"--out": wanted.page, "--svg": wanted.svg, "--mermaid": wanted.mermaid}
    targets = {option: path for option, path in asked.items() if path is not None}
    for option, path in targets.items():
        if os.path.lexists(path):
            raise BadInput(f"{option} {path}: it exists, and nothing is overwritten; name another")
        if any(above.exists() and not above.is_dir() for above in path.parents):
            raise BadInput(f"{option} {path}: what stands above it is no directory; name another")
        for other, target in targets.items():
            if other != option and (target.resolve() == path.resolve() or target.resolve() in path.resolve().parents):
                raise BadInput(f"{option} {path}: {other} names the same place, or one above it; name another")


def _pictures(archive: Archive, target: Path, ending: str, draw: Callable[[ScenarioEvidence], str]) -> str:
    """A file for each scenario, named `section-name`, in the new folder `target`."""
    target.mkdir(parents=True)
    used = set[str]()
    for number, scenario in enumerate(archive.scenarios, 1):
        name = f"{scenario.section}-{scenario.name}"
        plain_name = name.isascii() and name.replace("-", "").replace("_", "").isalnum() and len(name) <= 200
        safe = name if plain_name and name not in used else f"scenario-{number}"
        used.add(safe)
        with (target / f"{safe}.{ending}").open("x", encoding="utf-8", errors="backslashreplace") as file:
            file.write(draw(scenario))
    return f"{target}: {len(archive.scenarios)} files *.{ending}"


def _svg(scenario: ScenarioEvidence) -> str:
    return svg.document(diagram.draw(tell(scenario)), f"{plain(scenario.name)}: {plain(scenario.shows)}")


def _mermaid(scenario: ScenarioEvidence) -> str:
    return mermaid.text(tell(scenario))

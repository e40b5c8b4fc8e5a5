"""`report.html`: one self-contained page of a whole run, made from its archive by a template.

What the template gets is prepared here as frozen values; every text from the evidence is made visible and bounded by `words`,
and escaped by the template. The page asks for nothing over any network: a Content-Security-Policy in it allows its own style
and its own script, by their hashes, and nothing else. It works without its script, which only filters and opens.

A page of another kind (a campaign) gets a template of its own beside this one and shares style, script and pictures.
"""

import base64
import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from scenarios.catalogue import SECTIONS
from scenarios.report import diagram, raw, svg
from scenarios.report.events import Story
from scenarios.report.facts import COUNTED, Archive, ScenarioEvidence
from scenarios.report.headline import caution_of, headline
from scenarios.report.story import tell
from scenarios.report.tables import DATABASE, JOURNALS, in_words
from scenarios.report.views import Cell, ScenarioView, SectionView, SentenceRow
from scenarios.report.words import counted, figure, plain, turns

MAX_ROWS, MAX_PROCESSES = 600, 400
_PLAIN_ID = re.compile(r"[A-Za-z0-9_/-]{1,200}")
LEGEND = (
    ("e", "an effect: the receiver's durable change, the truth that is counted; red and labelled where it is a duplicate"),
    ("r", "a durable record, on the lane of whoever wrote it"),
    ("a", "a line of the receiver's log: an arrival, a query, an answer"),
    ("X", "the injected halt: the process dies, exit code 23; or a SIGKILL"),
    ("x", "the message ends here"),
    ("t", "a torn record: half of it is in the file, or it is cut away"),
    ("p", "the process stopped itself (SIGSTOP)"),
    ("g", "it goes on (SIGCONT)"),
)
LIMITS = (
    "The death of a process is not the loss of power: what a dead process had handed to the kernel is still there afterwards.",
    "Loopback is not a network: no packet is lost, reordered or delayed unless a scenario does it on purpose.",
    "The receivers are teaching receivers. That a header is sent does not mean that a service you use honours it.",
    "Whether the files agree with each other and were not edited: that is what the audit is for.",
    "Speed. The times are those of this machine and this run.",
)


@cache
def _environment() -> Environment:
    loader = PackageLoader("scenarios.report", "templates")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    made.filters["told"] = _told
    return made


def _told(text: str) -> Markup:
    """Text between tags, kept from turning its surroundings round where it could."""
    shown = text if isinstance(text, Markup) else Markup(escape(text, quote=False))  # noqa: S704 - escaped
    return Markup(f"<bdi>{shown}</bdi>") if turns(shown) else shown  # noqa: S704 - escaped


@cache
def _assets() -> tuple[Markup, Markup, str]:
    """Style, script, and the policy that allows just these two."""
    folder = Path(__file__).parent / "templates"
    dark = f"@media screen and (prefers-color-scheme:dark){{:root{{{svg.DARK}}}}}"
    style = f":root{{{svg.LIGHT}}}{dark}\n{(folder / 'report.css').read_text(encoding='utf-8')}{svg.STYLE}"
    script = (folder / "report.js").read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; style-src 'sha256-{_sha256(style)}'; script-src 'sha256-{_sha256(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return Markup(style), Markup(script), policy  # noqa: S704 - the package's own files


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def render(archive: Archive, at: Path) -> bytes:
    """The page of `archive`, to be written to the file `at`. Never raises for what the archive holds."""
    style, script, policy = _assets()
    template = _environment().get_template("report.html.j2")
    legend = [(Markup(svg.mark(name)), text) for name, text in LEGEND]  # noqa: S704 - our own
    page = {**_page(archive, _scenarios(archive, at)), **_place(archive, at)}
    text = template.render(page=page, style=style, script=script, policy=policy, legend=legend, limits=LIMITS)
    return text.encode("utf-8", "backslashreplace")


def _page(archive: Archive, scenarios: Sequence[tuple[ScenarioEvidence, ScenarioView]]) -> Mapping[str, Any]:
    sections = [
        _section(name, number, list(members))
        for number, (name, members) in enumerate(groupby(scenarios, key=lambda pair: pair[0].section))
    ]
    shown = [each for _evidence, each in scenarios]
    front = headline(archive.verdict, shown)
    selection = "" if archive.complete else _only(evidence.path for evidence, _ in scenarios)
    part = "The whole catalogue was run." if archive.complete else "A part of the catalogue was run."
    return {
        "verdict": front.verdict,
        "title": counted(len(shown), "scenario"),
        "headline": front.words,
        "lead": part,
        "problems": [plain(each) for evidence, _ in scenarios for each in evidence.problems][:200],
        "sections": sections,
        "kinds": sorted({kind for each in shown for kind in each.kinds}),
        "verdicts": sorted({each.verdict for each in shown}),
        "cautions": any(each.caution for each in shown),
        "facts": _facts(archive),
        "run_again": f"python run.py --out again{selection}",
    }


def _place(archive: Archive, at: Path) -> Mapping[str, str]:
    """Where the archive is. A page that lies in it does not say, so that it is the same wherever the archive is moved to."""
    inside = at.resolve().parent == archive.folder.resolve()
    folder = "DIR" if inside else shlex.quote(plain(str(archive.folder)))
    return {
        "folder": "the folder that this file is in (DIR above)" if inside else plain(str(archive.folder)),
        "audit": f"python audit/audit.py {folder}",
        "compare": f"python audit/audit.py {folder} --compare again",
    }


def _only(paths: Any) -> str:
    chosen = " ".join(shlex.quote(plain(path)) for path in list(paths)[:200])
    return f" --only {chosen}" if chosen else ""


def _facts(archive: Archive) -> list[tuple[str, str]]:
    run = archive.run
    packages = run.get("packages")
    listed = ", ".join(f"{name} {version}" for name, version in packages.items()) if isinstance(packages, dict) else "?"
    commit, clean = run.get("commit"), run.get("clean")
    state = "as committed" if clean is True else "with changes that were not committed" if clean is False else "state unknown"
    facts = [
        ("Started", run.get("started_at")),
        ("Took", f"{run.get('wall_seconds')} s, {run.get('jobs')} scenarios at once, spawned by {run.get('spawn')}"),
        ("Child processes", archive.totals.get("processes")),
        ("Requests", archive.totals.get("requests")),
        ("Journal records", archive.totals.get("records")),
        ("Protocol", f"version {archive.protocol_version}, SHA-256 {archive.protocol_sha256}"),
        ("Sources", f"commit {commit}, {state}" if commit else "no commit known"),
        ("Python", f"{run.get('implementation')} {run.get('python')}"),
        ("Machine", f"{run.get('platform')}, {run.get('cores')} cores, file system {run.get('file_system')}"),
        ("SQLite", _sqlite(run.get("sqlite"))),
        ("Dispatch outbox on", {"sqlite": "SQLite", "postgres": "PostgreSQL"}.get(archive.store, archive.store or "not told")),
        ("Packages", listed),
    ]
    return [(name, plain(value, 2000)) for name, value in facts]


def _sqlite(told: object) -> str:
    """Which one an outbox in a database would use here; archives of before do not tell."""
    if not isinstance(told, dict):
        return "not told"
    return f"{told.get('version')} of {told.get('package')}, journal mode {told.get('journal_mode')}"


def _section(name: str, number: int, members: Sequence[tuple[ScenarioEvidence, ScenarioView]]) -> SectionView:
    processes = sum(len(evidence.processes) for evidence, _ in members)
    requests = sum(evidence.counts.arrivals for evidence, _ in members if evidence.counts)
    counter = sum(each.counterexample for _, each in members)
    totals = (
        f"{counted(len(members), 'scenario')}, counterexamples among them: {counter}; "
        f"{counted(processes, 'child process', 'child processes')}, {counted(requests, 'request')}."
    )
    shown = plain(name, 80)
    scenarios = tuple(each for _, each in members)
    columns = DATABASE if any(evidence.has_tables for evidence, _ in members) else JOURNALS
    introduction = SECTIONS.get(name, "")
    return SectionView(f"section-{number}", shown, shown.capitalize(), introduction, columns, scenarios, totals)


def _scenarios(archive: Archive, at: Path) -> list[tuple[ScenarioEvidence, ScenarioView]]:
    inside = at.resolve().parent == archive.folder.resolve()
    found, used = [], set[str]()
    for number, evidence in enumerate(archive.scenarios):
        identity = evidence.path if _PLAIN_ID.fullmatch(evidence.path) and evidence.path not in used else f"scenario-{number}"
        used.add(identity)
        found.append((evidence, _scenario(evidence, identity, f"told-{number}", inside=inside)))
    return found


def _scenario(evidence: ScenarioEvidence, identity: str, told: str, *, inside: bool) -> ScenarioView:
    story = tell(evidence)
    name = plain(evidence.name, 120)
    title = f"Sequence diagram of {name}"  # the sentences below describe it
    picture = svg.for_html(svg.picture(diagram.draw(story), title, told))
    cells = (*_cells(evidence), *_row_cells(evidence))
    rows = list(_story(story))
    return ScenarioView(
        id=identity,
        name=name,
        shows=plain(evidence.shows),
        look_at=plain(evidence.look_at),
        kinds=tuple(plain(kind, 60) for kind in evidence.receiver_kinds),
        verdict=plain(evidence.verdict, 20),
        counterexample=evidence.counterexample,
        cells=cells,
        caution=caution_of(sum(cell.wrong for cell in cells), len(story.doubts)),
        told=told,
        heading=Markup(escape(name).replace("_", "_<wbr>")),  # noqa: S704 - escaped
        problems=tuple(plain(each) for each in evidence.problems[:50]),
        picture=Markup(picture),  # noqa: S704 - every word in it was escaped by svg
        closing=story.closing[:20],
        doubts=tuple(event.sentence for event in story.doubts[:50]),
        story=tuple(rows[:MAX_ROWS]),
        story_left_out=max(0, len(rows) - MAX_ROWS),
        folder=quote(f"scenarios/{evidence.path}/") if inside and _PLAIN_ID.fullmatch(evidence.path) else "",
        files=tuple(raw.files(evidence)),
        processes=tuple(raw.process_row(each) for each in evidence.processes[:MAX_PROCESSES]),
        processes_left_out=max(0, len(evidence.processes) - MAX_PROCESSES),
        run_again=f"python run.py --out again --only {shlex.quote(plain(evidence.path))}",
    )


def _cells(evidence: ScenarioEvidence) -> tuple[Cell, ...]:
    found = evidence.counts.values() if evidence.counts else (None,) * len(COUNTED)
    expected = evidence.expected.values() if evidence.expected else (None,) * len(COUNTED)
    return tuple(
        Cell(figure(value), figure(wanted), value is None or value != wanted)
        for value, wanted in zip(found, expected, strict=True)
    )


def _row_cells(evidence: ScenarioEvidence) -> tuple[Cell, ...]:
    """Attempts and rows at the end, of a dispatch outbox."""
    if not evidence.has_tables:
        return ()
    found, expected = (evidence.exported[-1].rows if evidence.exported else None), evidence.expected_rows
    number, wanted = (None if rows is None else rows["attempts"] for rows in (found, expected))
    there, declared = ("?" if rows is None else in_words(rows) for rows in (found, expected))
    attempts = Cell(figure(number), figure(wanted), number is None or number != wanted)
    return attempts, Cell(there, declared, found is None or found != expected, words=True)


def _story(story: Story) -> list[SentenceRow]:
    rows, before = [], (0, 0, 0, 0)
    for row in story.rows():
        now = row[-1].counts.values()
        counts = "" if now == before else " ".join(f"{name}{value}" for name, value in zip(story.letters, now, strict=True))
        rows.append(SentenceRow(counts and f"[{counts}]", " ".join(event.sentence for event in row)))
        before = now
    return rows

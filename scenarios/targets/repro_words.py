"""The words of a finding: a draft of a bug report, plain and fair, from nothing but what stands in the check.

It says what was done, what was expected and by whom, what was seen, where, and with which versions. It calls nobody's program
broken: whether what was seen goes against a promise is for its maintainers to say, so the promise is quoted with its source.
"""

import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from scenarios.targets import verdicts
from scenarios.targets.handed import Handed
from scenarios.targets.outcomes import LINE, POINT, SYSCALL
from scenarios.targets.table import cell
from scenarios.targets.windows import Window

AROUND = 3
MOST_QUOTED = 40
MOST_EXCHANGES, MOST_BODY = 6, 400
ASK_SECONDS = 20.0
TITLES: Mapping[str, str] = {
    verdicts.LOST: "a job can be lost when the process dies in {where}",
    verdicts.STUCK: "a job can be left behind, undelivered, when the process dies in {where}",
    verdicts.KEYED: "a job can be delivered again under another key when the process dies in {where}",
    verdicts.UNKEYED: "a job can be delivered twice when the process dies in {where}",
}
NO_CLAIM = "at-least-once with keys that stay the same"
MEANS: Mapping[str, str] = {
    verdicts.LOST: "The job was not delivered after the restart, and it is not stored any more.",
    verdicts.STUCK: "The job, or one that was enqueued after the restart, was not delivered while it was watched.",
    verdicts.KEYED: "The job arrived more than once under different keys: a receiver that knows keys applied each of them.",
    verdicts.UNKEYED: "The job arrived more than once, so a receiver that ignores keys applied it more than once.",
}


def report(check: Handed, window: Mapping[str, Any], line: Mapping[str, Any], folder: Path, left_out: str | None) -> str:
    """The text of REPORT.md."""
    target = check.plan["target"]
    package = target["package"]
    name = f"{package['name']} {_version(check)}" if package else target["name"]
    body = _worker(check, window, line, folder) if check.is_worker else _receiver(line)
    title = TITLES.get(window["verdict"], "{where}") if check.is_worker else "{where}: expected {expected}"
    told = title.format(where=window["where"], expected=line.get("expected", ""))
    parts = [
        f"# {name}: {told}",
        "",
        "This is a draft. Read it, try it, and change it before you send it.",
        "",
        *body,
        "## Versions",
        "",
        *_versions(check),
        "",
        "## Again",
        "",
        "`./reproduce.sh` plays this one case again; it says in its first lines what it needs. `actual.json` is what was seen "
        "here, `expected.json` what was expected, `target/` what was run.",
        *([f"\n{left_out[0].upper()}{left_out[1:]}."] if left_out else []),
    ]
    return "\n".join(parts) + "\n"


def _version(check: Handed) -> str:
    package = check.plan["target"]["package"]
    return str(check.plan["versions"].get(package["name"], package["version"]))


def _worker(check: Handed, window: Mapping[str, Any], line: Mapping[str, Any], folder: Path) -> Iterator[str]:
    yield from ("## What was done", "")
    yield from (f"{number}. {step}" for number, step in enumerate(_steps(line, check.plan["target"]["worker"]), 1))
    yield from ("", "## What was expected", "")
    yield f"{_claim(check.summary['claims'])} A case then ends as one of: {', '.join(check.allowed)}."
    yield from _guarantee(check)
    yield from ("", "## What was seen", "")
    yield f"**{line['verdict']}**. {MEANS.get(line['verdict'], '')}"
    yield from (f"* {reason}" for reason in line["reasons"])
    yield from ("", *_arrivals(line), "")
    yield from ("## Where", "")
    yield f"{Window(**window)}"
    if line["then"] is not None:
        yield "The recovery was killed, too; the place is where that second death came."
    if window["kind"] == LINE:
        yield from quoted(Window(**window), check.plan["python"], folder)
    yield ""


def _claim(claims: str | None) -> str:
    if claims is None:
        return f"The target file claims nothing, so it was held to {NO_CLAIM}."
    return f"The target file claims {claims}."


def _guarantee(check: Handed) -> Iterator[str]:
    package = check.plan["target"]["package"]
    if package and package["guarantee"]:
        yield ""
        yield f"What {package['name']} documents: {package['guarantee']}"
        if package["source"]:
            yield f"({package['source']})"
        yield ""
        yield "If that is what was seen, it is no defect, and there is nothing to report."


def _steps(line: Mapping[str, Any], worker: Mapping[str, Any]) -> Iterator[str]:
    if worker["setup"]:
        yield f"`{_command(worker['setup'])}`"
    role = line["role"]
    job = next((job for job in line["effects"] if job != line["canary"]), "a job")
    if role != "setup":
        yield f"`{_command(worker['enqueue'])}`: one job, {job}"
    if role == "receiver":
        yield f"`{_command(worker['work'])}`, while the receiver of its requests {_receiver_did(line['fault']['where'])}"
    else:
        yield f"`{role}` was started, and ended {_death(line['fault'])}"
    if worker["recover"]:
        yield f"`{_command(worker['recover'])}`" + (", which died, too, and was run again" if _is_of(line, "recover") else "")
    if role in ("setup", "enqueue"):
        yield "what had died was run again, to its end"
    yield f"`enqueue` of one more job, {line['canary']}, to see whether the worker still works"
    more = f", which ended {_death(line['then'])}, and was run again" if line["then"] and not _is_of(line, "recover") else ""
    yield f"`{_command(worker['work'])}`{more}; what arrived was watched for {line['watched_seconds']:.1f} s"


def _is_of(line: Mapping[str, Any], role: str) -> bool:
    return line["then"] is not None and line["then"]["role"] == role


def _command(command: list[str]) -> str:
    return " ".join(command)


def _receiver_did(what: str) -> str:
    return {
        "dies": "died after it had applied the first one and before it answered, and was started again",
        "refuses": "answered 503 once and applied nothing",
        "hangs-up": "applied the first one and closed the connection without an answer",
    }.get(what, what)


def _death(fault: Mapping[str, Any]) -> str:
    function = f" in {fault['function']}()" if fault["function"] else ""
    times = "" if fault["occurrence"] == 1 else f", the {_nth(fault['occurrence'])} time that it came there"
    if fault["kind"] == LINE:
        return f"at once, without any clean-up, just before {fault['where']}{function} was executed{times}"
    if fault["kind"] == SYSCALL:
        return f"by SIGKILL just before its {_nth(fault['occurrence'])} {fault['where']}"
    if fault["kind"] == POINT:
        return f"at its own point {fault['where']}{times}"
    return str(fault["where"])


def _nth(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _arrivals(line: Mapping[str, Any]) -> Iterator[str]:
    if not line["arrivals"]:
        yield "No request arrived."
        return
    yield "Requests, in the order in which they arrived:"
    yield ""
    yield "| Seconds | Job | Key | Answer | |"
    yield "|---|---|---|---|---|"
    for each in line["arrivals"]:
        after = "after the restart" if each["after_restart"] else ""
        told = (f"{each['seconds']:.3f}", each["job"] or "?", each["key"] or "none", str(each["status"] or "none"), after)
        yield f"| {' | '.join(map(cell, told))} |"


def quoted(window: Window, python: str, folder: Path) -> Iterator[str]:
    """The source lines of a window with some around it, those of the window marked; nothing where the file is not found."""
    path = source(window.path, python, folder)
    first, last = window.lines
    if path is None or last - first > MOST_QUOTED:
        return
    lines = path.read_text("utf-8", "replace").splitlines()
    if last > len(lines):
        return
    yield ""
    yield "```"
    for number in range(max(1, first - AROUND), min(len(lines), last + AROUND) + 1):
        mark = ">" if first <= number <= last else " "
        yield f"{mark}{number:5} {lines[number - 1]}"
    yield "```"


def source(path: str, python: str, folder: Path) -> Path | None:
    """The file of a place: beside the target file, or where that interpreter has its packages."""
    beside = folder / path
    if beside.is_file():
        return beside
    place = _packages(python, Path(path).parts[0].removesuffix(".py"))
    found = None if place is None else Path(place) / path
    return found if found is not None and found.is_file() else None


@cache
def _packages(python: str, package: str) -> str | None:
    """The folder that an interpreter has a package in. It is looked for, not imported."""
    ask = (
        "import importlib.util, os, sys; spec = importlib.util.find_spec(sys.argv[1]); "
        "print(os.path.dirname(spec.submodule_search_locations[0] if spec.submodule_search_locations else spec.origin))"
    )
    try:
        done = subprocess.run([python, "-c", ask, package], capture_output=True, text=True, timeout=ASK_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _receiver(line: Mapping[str, Any]) -> Iterator[str]:
    yield from ("## What was done", "")
    if line["fault"]:
        yield f"With a fault: {', '.join(f'{name} {value}' for name, value in line['fault'].items())}."
        yield ""
    for number, each in enumerate(line["exchanges"][:MOST_EXCHANGES], 1):
        sent = each["request"]
        yield f"{number}. `{sent['method']} {sent['path']}`"
        yield from (f"   `{name}: {value}`" for name, value in sent["headers"])
        if sent["body"]:
            yield f"   body {_short(sent['body'])}"
        answer = f"answered {each['status']}" if each["status"] is not None else f"no answer ({each['error']})"
        yield f"   {answer}" + (f", body {_short(each['body'])}" if each["body"] else "")
    if len(line["exchanges"]) > MOST_EXCHANGES:
        yield f"… and {len(line['exchanges']) - MOST_EXCHANGES} requests more, in actual.json"
    yield from ("", "## What was expected", "", f"{line['expected']} (source: {line['source']})")
    yield from ("", "## What was seen", "", line["seen"])
    before, after = line["effects"]["before"], line["effects"]["after"]
    if before is not None:
        yield f"\nEffects that were counted: {before} before, {after} after."
    yield ""


def _short(text: str) -> str:
    told = " ".join(text.replace("`", "'").split())
    return f"`{told}`" if len(told) <= MOST_BODY else f"`{told[:MOST_BODY]}` …"


def _versions(check: Handed) -> Iterator[str]:
    machine = check.plan["machine"]
    for name, version in check.plan["versions"].items():
        yield f"* {name} {version}"
    yield f"* {machine['platform']}; {machine['implementation']} {machine['python']}"
    yield f"* halt23, commit {machine['commit'] or 'unknown'}{' with changes' if machine['clean'] is False else ''}"

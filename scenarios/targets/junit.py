"""`--junitxml FILE`: a check as a CI server reads it, one testcase for each window of a worker or expectation of a receiver.

What goes against the claim, or against an expectation that is grave or declared, is a failure; what is in doubt is an error;
what was skipped is skipped. A duplicate that at-least-once allows passes and says so in its output.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenarios.targets import handed, verdicts
from scenarios.targets.handed import Handed
from scenarios.targets.windows import Window

# What XML 1.0 cannot hold, however it is escaped.
_UNFIT = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Testcase:
    """One line of a CI server: `outcome` is None (passed), `failure`, `error` or `skipped`."""

    name: str
    seconds: float
    outcome: str | None
    message: str
    text: str


def write(check: Handed, path: Path) -> None:
    """Write the file. Raises OSError."""
    cases = list(_of_worker(check) if check.is_worker else _of_receiver(check))
    summary = check.summary
    counts: dict[str, str] = {
        "tests": str(len(cases)),
        **{f"{each}s" if each != "skipped" else each: str(_count(cases, each)) for each in ("failure", "error", "skipped")},
    }
    told = {"time": f"{summary['wall_seconds']:.3f}", **counts}
    suite = ET.Element("testsuite", {"name": f"halt23.{summary['kind']}.{summary['target']}", **told})
    properties = ET.SubElement(suite, "properties")
    for name in ("verdict", "claims", "holds", "cases"):
        value = summary[name]
        words = ", ".join(value) or "none" if isinstance(value, list) else str(value or "none")
        ET.SubElement(properties, "property", name=name, value=words)
    for case in cases:
        _add(suite, case, f"halt23.{summary['target']}")
    root = ET.Element("testsuites", {"name": "halt23", **told})
    root.append(suite)
    ET.indent(root, " ")
    path.write_bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")


def _count(cases: list[Testcase], outcome: str) -> int:
    return sum(case.outcome == outcome for case in cases)


def _add(suite: ET.Element, case: Testcase, classname: str) -> None:
    element = ET.SubElement(suite, "testcase", name=_fit(case.name), classname=classname, time=f"{case.seconds:.3f}")
    if case.outcome is not None:
        ET.SubElement(element, case.outcome, message=_fit(case.message)).text = _fit(case.text)
    elif case.text:
        ET.SubElement(element, "system-out").text = _fit(case.text)


def _fit(text: str) -> str:
    return _UNFIT.sub("\ufffd", text)


def _of_worker(check: Handed) -> Iterator[Testcase]:
    for window in check.summary["windows"]:
        outcome = "failure" if check.is_finding(window) else "error" if check.is_in_doubt(window) else None
        again = " (recovery)" if window["depth"] > 1 else ""
        function = f" {window['function']}()" if window["function"] else ""
        reasons = "; ".join(check.lines[window["example"]]["reasons"])
        yield Testcase(
            f"{window['role']}{again}: {window['where']}{function}",
            window["seconds"] or 0.0,
            outcome,
            str(Window(**window)),
            f"{window['verdict']}: {reasons}\nfor example --only '{window['example']}'" if reasons else window["verdict"],
        )


def _of_receiver(check: Handed) -> Iterator[Testcase]:
    grave = {window["where"]: window for window in check.summary["windows"]}
    for name, line in check.lines.items():
        outcome = "skipped" if line["verdict"] == verdicts.SKIPPED else _outcome(check, grave.get(name))
        seconds = sum(each["seconds"] for each in line["exchanges"])
        text = f"{line['verdict']} ({line['severity']}; {line['source']})\nexpected: {line['expected']}\nseen: {line['seen']}"
        yield Testcase(name, seconds, outcome, line["seen"], text)


def _outcome(check: Handed, window: Mapping[str, Any] | None) -> str | None:
    if window is None:
        return None
    return "failure" if check.is_finding(window) else "error" if check.is_in_doubt(window) else None


def write_of(folder: Path, path: Path) -> None:
    """Write the file of the check in `folder`. Raises BadInput and OSError."""
    write(handed.read(folder), path)

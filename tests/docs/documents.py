"""What the tests of the documentation share: where the pages are, and what of them can be checked by a machine.

A box marked `sh` holds commands. What they print stands in the next box if that one is marked `text`, or, where an answer is
kept apart from its exercise, behind `<!-- printed: NAME -->`, with `<!-- prints: NAME -->` before the commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
ARCHIVE = ROOT / "evidence" / "study"
PAGES = sorted(DOCS.glob("*.md"))

_BOX = re.compile(
    r"(?:^<!-- (?P<role>prints|printed): (?P<name>[^>]+) -->\n)?^```(?P<kind>\w*)\n(?P<content>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Commands:
    """A box of commands, the line it begins in, and what it prints, or None where the page does not say."""

    page: Path
    line: int
    script: str
    output: str | None

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


@dataclass(frozen=True, slots=True)
class Box:
    """Any fenced box: its mark (`sh`, `text`, `mermaid` or none), and how it is tied to another one."""

    kind: str
    content: str
    line: int
    role: str | None
    name: str | None


def boxes(text: str) -> list[Box]:
    """The fenced boxes of a page, in order."""
    return [
        Box(each["kind"], each["content"], text.count("\n", 0, each.start("kind")) + 1, each["role"], each["name"])
        for each in _BOX.finditer(text)
    ]


def commands(page: Path) -> Iterator[Commands]:
    """The boxes of commands of a page."""
    found = boxes(page.read_text(encoding="utf-8"))
    printed = {box.name: box.content for box in found if box.role == "printed"}
    for number, box in enumerate(found, 1):
        if box.kind != "sh":
            continue
        following = found[number : number + 1]
        output = printed.get(box.name) if box.role == "prints" else None
        if box.role is None and following and following[0].kind == "text" and following[0].role is None:
            output = following[0].content
        yield Commands(page, box.line, box.content, output)


def prose(text: str) -> str:
    """A page without its boxes."""
    return _BOX.sub("", text)


def code_words(text: str) -> list[str]:
    """What stands between backquotes in a page's prose."""
    return re.findall(r"`([^`\n]+)`", prose(text))

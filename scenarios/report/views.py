"""What the page's template is given, as frozen values. Texts are visible and bounded by now; the template escapes them.

`Markup` is what was escaped where it was made: pictures, and text that stands between tags.
"""

from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Cell:
    """One count: what was found, what was expected."""

    found: str
    expected: str
    wrong: bool
    words: bool = False  # no number: it may be wrapped


@dataclass(frozen=True, slots=True)
class SentenceRow:
    """One row of the story in sentences, with the counts where they change."""

    counts: str
    sentence: str


@dataclass(frozen=True, slots=True)
class FileText:
    """One file of a scenario as text: a journal, or a small file."""

    path: str
    size: str
    text: Markup


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """One child process."""

    name: str
    command: str
    output: tuple[str, ...]
    ended: str


@dataclass(frozen=True, slots=True)
class ScenarioView:
    """One scenario: its row in the table, and its panel.

    `caution` says what is wrong with it whatever its verdict, `told` is the id of its sentences, `heading` is its name with
    places where a line may break.
    """

    id: str
    name: str
    shows: str
    look_at: str
    kinds: tuple[str, ...]
    verdict: str
    counterexample: bool
    cells: tuple[Cell, ...]
    problems: tuple[str, ...]
    caution: str
    told: str
    heading: Markup
    picture: Markup
    closing: tuple[str, ...]
    doubts: tuple[str, ...]
    story: tuple[SentenceRow, ...]
    story_left_out: int
    folder: str
    files: tuple[FileText, ...]
    processes: tuple[ProcessRow, ...]
    processes_left_out: int
    run_again: str


@dataclass(frozen=True, slots=True)
class Headline:
    """The verdict on the front, and the sentence beside it."""

    verdict: str
    words: str


@dataclass(frozen=True, slots=True)
class SectionView:
    """One section with its table."""

    id: str
    name: str
    title: str
    introduction: str
    columns: tuple[str, ...]
    scenarios: tuple[ScenarioView, ...]
    totals: str

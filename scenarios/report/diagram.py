"""The sequence diagram of a story, laid out: which shape stands where. No markup; `svg` writes it.

Time runs downwards, a row for each thing that happened. On the left stand the counts, wherever one changes; then the lanes
(`columns`). What crosses all lanes is drawn as a band. The shapes say what they are by a word of their own, never by a place
in a palette, so that a picture can be told apart without colours as well.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from scenarios.report.actors import ONE_ACT
from scenarios.report.columns import (
    BOX_PADDING,
    LABEL_X,
    LEFT,
    Columns,
    Row,
    arrange,
    behind_head,
    from_the_right,
    label_end,
    labelled,
    text_width,
)
from scenarios.report.events import Event, Kind, Story, Trait
from scenarios.report.words import label

MAX_ROWS, MAX_LANES = 400, 64
TOP = 22
HEIGHTS = {Kind.START: 36, Kind.MOMENT: 34, Kind.CHECK: 32, Kind.FILE: 30, Kind.DOUBT: 30, Kind.HALT: 30}
ROW = 27
MIN_CUT = 20  # a piece of the line of a halt that is shorter looks like a slip of the pen
JOINED_CAP = 9  # how much below its row an end stands that shares it with something else
LEVEL = 22  # of a second level of heads
COUNT_X = (14, 37, 60, 83)
CLOCK_X = 138  # where the times end
_BANDS = {Kind.MOMENT: "moment", Kind.CHECK: "check", Kind.FILE: "file", Kind.DOUBT: "doubt"}


@dataclass(frozen=True, slots=True)
class Text:
    """Words at a place; `anchor` is start, middle or end."""

    x: int
    y: int
    words: str
    style: str
    anchor: str = "start"


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle."""

    x: int
    y: int
    width: int
    height: int
    style: str


@dataclass(frozen=True, slots=True)
class Stroke:
    """A path in the words of SVG's `d`."""

    way: str
    style: str


@dataclass(frozen=True, slots=True)
class Mark:
    """One of the shared shapes, by its name, with its middle at a place."""

    x: int
    y: int
    shape: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """The counts at the left of a row, each at its x; `changed` are those that are new here."""

    y: int
    values: tuple[int, ...]
    changed: frozenset[int]


Shape = Text | Box | Stroke | Mark | Figures


@dataclass(frozen=True, slots=True)
class Diagram:
    """A picture of `width` times `height` with its shapes, those behind first. What did not fit is counted."""

    title: str
    width: int
    height: int
    shapes: tuple[Shape, ...]
    rows_left_out: int
    lanes_left_out: int


def draw(story: Story) -> Diagram:
    """Lay the story out: its first rows and lanes, as many as can be read."""
    rows = [tuple(filter(_drawn, row)) for row in story.rows()]
    return _Drawing(story, [row for row in rows[:MAX_ROWS] if row], max(0, len(rows) - MAX_ROWS)).diagram()


def _drawn(event: Event) -> bool:
    return (event.lane or 0) < MAX_LANES and (event.to or 0) < MAX_LANES


def style_of(event: Event) -> str:
    """The word for what is particular about an event, or nothing."""
    for trait, style in (
        (Trait.DUPLICATE, "bad"),
        (Trait.LOST, "bad"),
        (Trait.KILLED, "bad"),
        (Trait.CUT, "cut"),
        (Trait.REPLAYED, "replay"),
        (Trait.REFUSED, "no"),
        (Trait.LATE, "no"),
        (Trait.RESENT, "again"),
    ):
        if trait in event.traits:
            return style
    return ""


class _Drawing:
    def __init__(self, story: Story, rows: Sequence[Row], left_out: int) -> None:
        self.story, self.rows, self.left_out = story, rows, left_out
        self.columns: Columns = arrange(story, rows)
        self.y = list(self._places())

    def _places(self) -> Iterator[int]:
        """The middle of each row, and last the height of all."""
        y = TOP
        for row in self.rows:
            height = HEIGHTS.get(row[0].kind, ROW)
            if row[0].kind is Kind.START and self.columns.staggered and len(row) > 1:
                height += LEVEL
            yield y + height // 2
            y += height
        yield y + 8

    def diagram(self) -> Diagram:
        shapes: list[Shape] = [
            *self._crossings(),
            *self._lanes(),
            *(shape for row, y in zip(self.rows, self.y, strict=False) for shape in self._row(row, y)),
            *self._counts(),
        ]
        lanes = max(0, len(self.story.lanes) - MAX_LANES)
        if self.left_out or lanes:
            words = f"{self.left_out} more rows and {lanes} more lanes are not drawn; the sentences go on"
            shapes.append(Text(self.columns.left, self.y[-1] + 6, words, "mute"))
        height = self.y[-1] + (18 if self.left_out or lanes else 0)
        width = max(self.columns.width, self.columns.left + 500 if self.left_out or lanes else 0)
        return Diagram(self.story.scenario, width, height, tuple(shapes), self.left_out, lanes)

    def _crossings(self) -> Iterator[Shape]:
        """What runs across all lanes, behind them."""
        for row, y in zip(self.rows, self.y, strict=False):
            for event in row:
                if event.kind is Kind.HALT and event.lane is not None:
                    x = self.columns.x[event.lane]
                    behind = min(x + label_end(event) + 6, self.columns.width - 4)
                    sides = ((self.columns.left - 10, x - 12), (behind, self.columns.width - 4))
                    way = "".join(f"M{begin} {y}H{end}" for begin, end in sides if end - begin >= MIN_CUT)
                    if way:
                        yield Stroke(way, "crash")

    def _lanes(self) -> Iterator[Shape]:
        for lane, (first, last) in self.columns.spans.items():
            x = self.columns.x[lane]
            turns = [self.y[first] + self._drop(lane), *self._pauses(lane), self._end(lane, last)]
            for number, (begin, end) in enumerate(pairwise(turns)):
                yield Stroke(f"M{x} {begin}V{end}", "rest" if number % 2 else "lane")

    def _end(self, lane: int, last: int) -> int:
        ends = [event for event in self.rows[last] if event.lane == lane and event.kind is Kind.END and event.joined]
        return self.y[last] + (JOINED_CAP if ends else 0)

    def _pauses(self, lane: int) -> list[int]:
        kinds = (Kind.PAUSE, Kind.RESUME)
        return [
            y for row, y in zip(self.rows, self.y, strict=False) for each in row if each.lane == lane and each.kind in kinds
        ]

    def _drop(self, lane: int) -> int:
        """How much lower than its row's middle a head stands: neighbours in a crowd take turns."""
        if not self.columns.staggered:
            return 0
        row = self.rows[self.columns.spans[lane][0]]
        if len(row) == 1:
            return 0
        return LEVEL // 2 if [event.lane for event in row].index(lane) % 2 else -(LEVEL // 2)

    def _counts(self) -> Iterator[Shape]:
        for x, name in zip(COUNT_X, self.story.letters, strict=True):
            yield Text(x, 14, name, "head", "middle")
        if self.columns.left > LEFT:
            yield from self._times()
        before: tuple[int, ...] | None = None
        for row, y in zip(self.rows, self.y, strict=False):
            now = row[-1].counts.values()
            if now == before:
                continue
            changed = frozenset(n for n, value in enumerate(now) if before is not None and before[n] != value)
            yield Figures(y + 4, now, changed)
            before = now

    def _times(self) -> Iterator[Shape]:
        """The time on the scenario's own clock, wherever it is another."""
        yield Text(CLOCK_X, 14, "time", "head", "end")
        before = ""
        for row, y in zip(self.rows, self.y, strict=False):
            now = next((event.at for event in row if event.at), before)
            if now != before:
                yield Text(CLOCK_X, y + 4, label(now, 7), "mute", "end")
            before = now

    def _row(self, row: Row, y: int) -> Iterator[Shape]:
        for event in row:
            if event.kind in _BANDS:
                yield from self._band(event, y)
            elif event.kind is Kind.START:
                yield from self._head(event, y)
            elif event.kind is Kind.MESSAGE:
                yield from self._message(row, event, y)
            elif event.lane is not None and event.lane in self.columns.x:
                x, head = self.columns.x[event.lane], behind_head(self.story, row, event.lane)
                yield from _mark(event, x, y) if not head else ()
                if labelled(row, event):
                    style = "bad" if event.kind is Kind.HALT else style_of(event) or ("mute" if event.kind is Kind.END else "")
                    left = from_the_right(row, event, self.columns.x)
                    yield Text(
                        x + (-LABEL_X if left else LABEL_X + head), y + 4, event.label, style, "end" if left else "start"
                    )

    def _band(self, event: Event, y: int) -> Iterator[Shape]:
        kind = _BANDS[event.kind]
        x = self.columns.left - 6
        yield Box(x, y - 11, self.columns.width - x - 4, 22, kind)
        style = "badbold" if event.kind is Kind.MOMENT else "cut" if event.kind is Kind.DOUBT else "bold"
        yield Text(x + 8, y + 4, event.label, style)

    def _head(self, event: Event, y: int) -> Iterator[Shape]:
        if event.lane is None or event.lane not in self.columns.x:
            return
        x, y = self.columns.x[event.lane], y + self._drop(event.lane)
        width = text_width(event.label) + BOX_PADDING
        lane = self.story.lanes[event.lane]
        restarted = lane.process.incarnation > 1 and lane.role not in ONE_ACT  # these never go on where one stopped
        yield Box(x - width // 2, y - 11, width, 22, "restart" if restarted else "start")
        yield Text(x, y + 4, event.label, "bold", "middle")

    def _message(self, row: Row, event: Event, y: int) -> Iterator[Shape]:
        if event.lane is None or event.lane not in self.columns.x:
            return
        begin = self.columns.x[event.lane]
        head = behind_head(self.story, row, event.lane)
        end = self.columns.x.get(event.to, begin) if event.to is not None else self._void(event, begin)
        sign = 1 if end >= begin else -1
        style = style_of(event)
        start, stop = begin + (6 + head) * sign, end - 8 * sign
        if event.reached < 1:
            stop = start + round((stop - start) * event.reached)
            yield Stroke(f"M{start} {y}H{stop}", style)
            yield Mark(stop, y, "x", "cut")
        else:
            yield Stroke(f"M{start} {y}H{stop}m{-6 * sign}-4 {6 * sign} 4 {-6 * sign} 4", style)
        right = max(start - 6 * sign, end)
        neighbours = [x for x in self.columns.x.values() if min(begin, end) <= x < right]
        middle = (max(neighbours, default=min(begin, end)) + right) // 2
        yield Text(middle, y - (8 if event.reached < 1 else 5), event.label, style, "middle")

    def _void(self, event: Event, begin: int) -> int:
        return self.columns.names.get(event.toward or "", begin + 120)


def _mark(event: Event, x: int, y: int) -> Iterator[Shape]:
    """The mark of an event on its lane."""
    if event.kind is Kind.HALT or Trait.KILLED in event.traits:
        yield Mark(x, y, "X", "bad")
    elif event.kind is Kind.END:
        yield Stroke(f"M{x - 6} {y + JOINED_CAP if event.joined else y}h12", "cap")
    elif event.kind in (Kind.PAUSE, Kind.RESUME):
        yield Mark(x, y, "p" if event.kind is Kind.PAUSE else "g")
    elif event.kind is Kind.TEAR:
        yield Mark(x, y, "t", "cut")
    elif event.refs:
        shape = {"effect": "e", "arrival": "a", "query": "a", "answer": "a"}.get(event.refs[0].type, "r")
        yield Mark(x, y, shape, "bad" if Trait.DUPLICATE in event.traits else "")

"""Where the lanes of a diagram stand: which share a column, and how far the columns are apart.

Incarnations that follow each other share a column, each with a head of its own, so that a restart stands under the cut that
made it necessary; lanes that run at the same time stand side by side. A column is as wide as the labels beside it, within
bounds.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scenarios.report.events import Event, Kind, Story, Trait
from scenarios.report.exports import EVENT, TRANSITION

RANKS = ("producer", "operator", "client", "database", "dispatcher", "scheduler", "relay", "receiver")
CHARACTER, WIDE_CHARACTER = 6.6, 12.5
HEAVY = 1.12  # heavy letters are wider
LEFT, RIGHT = 112, 16
CLOCK = 40  # more on the left where a scenario has a clock of its own
MIN_GAP, MAX_GAP = 56, 284
CROWD = 4  # so many events in one row are drawn without their own labels
BOX_PADDING = 18
LABEL_X = 11

Row = tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Columns:
    """`x` of each lane by its number, the first and last row of each, the right edge, and the x of process names."""

    x: Mapping[int, int]
    spans: Mapping[int, tuple[int, int]]
    width: int
    names: Mapping[str, int]
    left: int  # where the lanes and bands begin
    staggered: bool  # heads of neighbours on two levels, where many stand side by side


def text_width(text: str) -> int:
    """About how wide `text` is drawn, rather too much than too little."""
    if text.isascii():
        return round(len(text) * CHARACTER)
    return round(sum(WIDE_CHARACTER if unicodedata.east_asian_width(each) in "WF" else CHARACTER for each in text))


def label_end(event: Event) -> int:
    """How far right of its lane the label beside a mark ends."""
    heavy = event.kind is Kind.HALT or Trait.DUPLICATE in event.traits or Trait.KILLED in event.traits
    return LABEL_X + round(text_width(event.label) * (HEAVY if heavy else 1.0))


def labelled(row: Row, event: Event) -> bool:
    """Whether an event's label is drawn beside its mark: in a crowd only the last one's."""
    if not event.label or event.kind in (Kind.START, Kind.MESSAGE):
        return False
    alike = sum(each.kind is event.kind for each in row)
    if alike >= CROWD:
        return event is row[-1]
    return not (event.joined and len(row) >= CROWD)


def behind_head(story: Story, row: Row, lane: int | None) -> int:
    """Half the width of the head of a lane that begins and ends in this row, or 0: what is drawn there begins behind it."""
    kinds = {event.kind for event in row if event.lane == lane}
    alone = sum(event.kind is Kind.START for event in row) == 1
    return (_head(story, lane) // 2) if lane is not None and alone and {Kind.START, Kind.END} <= kinds else 0


def from_the_right(row: Row, event: Event, place: Mapping[int, int]) -> bool:
    """Whether the arrow that brings a record of the tables comes from the right: its label must stand on the left then."""
    tables = bool(event.refs) and event.refs[0].type in (TRANSITION, EVENT)
    if not tables or event.lane is None or event.lane not in place:
        return False
    here = place[event.lane]
    messages = [each for each in row if each.kind is Kind.MESSAGE and each.to == event.lane]
    return any(each.lane is not None and place.get(each.lane, here) > here for each in messages)


def arrange(story: Story, rows: Sequence[Row]) -> Columns:
    """Place every lane that the rows speak of."""
    spans = _spans(story, rows)
    columns = _pack(story, spans)
    at = {lane: number for number, members in enumerate(columns) for lane in members}
    gaps = _gaps(story, rows, at, len(columns))
    left = LEFT + (CLOCK if any(event.at for event in story.events) else 0)
    x, places = left + max((_head(story, lane) // 2 for lane in (columns[0] if columns else [])), default=0), []
    for gap in gaps:
        places.append(x)
        x += gap
    names = {story.lanes[lane].process.name: places[column] for lane, column in at.items()}
    bands = [left + text_width(event.label) + 2 * BOX_PADDING for row in rows for event in row if event.lane is None]
    bands += [
        places[at[event.lane]] + behind_head(story, row, event.lane) + label_end(event) + RIGHT
        for row in rows
        for event in row
        if event.lane is not None and event.lane in at and labelled(row, event) and not from_the_right(row, event, at)
    ]
    crowd = any(sum(each.kind is Kind.START for each in row) >= CROWD for row in rows)
    return Columns({lane: places[column] for lane, column in at.items()}, spans, max([x + RIGHT, *bands]), names, left, crowd)


def _spans(story: Story, rows: Sequence[Row]) -> dict[int, tuple[int, int]]:
    spans: dict[int, tuple[int, int]] = {}
    for number, row in enumerate(rows):
        for event in row:
            if event.kind is Kind.START and event.lane is not None:
                spans[event.lane] = (number, len(rows) - 1)
            elif event.kind in (Kind.END, Kind.HALT) and event.lane in spans:
                spans[event.lane] = (spans[event.lane][0], number)
    return spans


def _pack(story: Story, spans: Mapping[int, tuple[int, int]]) -> list[list[int]]:
    columns: list[list[int]] = []
    roles = dict.fromkeys((*RANKS, *(lane.role for lane in story.lanes)))
    for role in roles:
        own: list[list[int]] = []
        for lane in (each for each in spans if story.lanes[each].role == role):
            free = [column for column in own if spans[column[-1]][1] < spans[lane][0]]
            same = [column for column in free if story.lanes[column[-1]].process.name == story.lanes[lane].process.name]
            if free:
                (same or free)[0].append(lane)
            else:
                own.append([lane])
        columns += own
    return columns


def _head(story: Story, lane: int) -> int:
    return text_width(story.lanes[lane].title) + BOX_PADDING


def _gaps(story: Story, rows: Sequence[Row], at: Mapping[int, int], count: int) -> list[int]:
    """The room to the right of each column."""
    gaps = [MIN_GAP] * count
    crowd = any(sum(each.kind is Kind.START for each in row) >= CROWD for row in rows)

    def widen(column: int, needed: int) -> None:
        if 0 <= column < count:
            gaps[column] = max(gaps[column], min(needed, MAX_GAP))

    for lane, column in at.items():
        half = _head(story, lane) // 2
        if not (crowd and story.lanes[lane].role == "client"):
            widen(column, half + 40)
            widen(column - 1, half + 40)
    for row in rows:
        for event in row:
            if event.lane is None:
                continue
            if event.kind is Kind.MESSAGE and event.lane in at:
                ends = [at[each] for each in (event.lane, event.to) if each is not None]
                room = text_width(event.label) + 32 + behind_head(story, row, event.lane)
                widen(max(ends) - 1 if len(ends) > 1 else ends[0], room)
            elif from_the_right(row, event, at):
                widen(at[event.lane] - 1, text_width(event.label) + 30)
            elif event.lane in at and labelled(row, event):
                wide = event.kind is Kind.HALT and at[event.lane] < count - 1
                room = text_width(event.label) + 20 + behind_head(story, row, event.lane)
                widen(at[event.lane], 0 if wide else room)
    if gaps:
        last = [
            text_width(e.label) + 24
            for row in rows
            for e in row
            if e.lane is not None and at.get(e.lane) == count - 1 and labelled(row, e) and not from_the_right(row, e, at)
        ]
        gaps[-1] = max([gaps[-1], *last])
    return gaps

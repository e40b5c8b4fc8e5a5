"""A story as the text of a Mermaid sequence diagram, for documents that are written in Markdown.

Mermaid gives a meaning to some characters and words of a label (`;`, `#`, `<`, `end`); they are written as its entity codes,
and control characters never get here (`words.plain`). The shape follows the hand-made pictures of `docs/`: a participant for
each process incarnation, a note over all where something crosses all lanes.
"""

import re

from scenarios.report.events import Event, Kind, Story, Trait

MAX_EVENTS = 400
_SPECIAL = re.compile(r"[#;<>{}\[\]()\"'`%&|\\:]|[^ -~]")
_END = re.compile(r"\bend\b", re.IGNORECASE)


def text(story: Story) -> str:
    """The diagram's text, a line for each thing, ending with a newline."""
    lines = ["sequenceDiagram"]
    lines += [f"    participant P{number} as {escaped(lane.title)}" for number, lane in enumerate(story.lanes)]
    everybody = f"P0,P{len(story.lanes) - 1}" if len(story.lanes) > 1 else "P0"
    for event in story.events[:MAX_EVENTS]:
        line = _line(event, everybody, story) if story.lanes else None
        if line:
            lines.append(f"    {line}")
    if len(story.events) > MAX_EVENTS and story.lanes:
        lines.append(f"    Note over {everybody}: {len(story.events) - MAX_EVENTS} more events are left out")
    return "\n".join(lines) + "\n"


def escaped(words: str) -> str:
    """`words` as Mermaid takes them for words and nothing else."""
    plain = _SPECIAL.sub(lambda match: f"#{ord(match[0])};", words)
    return _END.sub(lambda match: f"#{ord(match[0][0])};{match[0][1:]}", plain) or "#32;"


def _line(event: Event, everybody: str, story: Story) -> str | None:
    moment = f", at {event.at}" if event.at and event.kind is Kind.MESSAGE else ""
    here, words = f"P{event.lane}", escaped(f"{event.label}{moment}")
    if event.kind is Kind.START or not event.label:
        return None
    if event.kind is Kind.MESSAGE:
        return f"{here}{_arrow(event)}P{event.lane if event.to is None else event.to}: {words}"
    if event.kind is Kind.RECORD:
        return f"{here}->>{here}: {words}"
    if event.kind is Kind.HALT and event.lane is not None:
        return f"Note over {everybody}: CRASH BOUNDARY, {escaped(story.lanes[event.lane].title)}, {words}"
    return f"Note over {everybody if event.lane is None else here}: {words}"


def _arrow(event: Event) -> str:
    if event.to is None or event.reached < 1:
        return "-x"
    return "-->>" if Trait.REPLAYED in event.traits else "->>"

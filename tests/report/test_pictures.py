"""Pictures of all archived scenarios: nothing overlaps, nothing sticks out, and as files they stand alone."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from scenarios.report import archive as archives
from scenarios.report import mermaid, svg
from scenarios.report.columns import HEAVY, text_width
from scenarios.report.diagram import MAX_LANES, MAX_ROWS, Diagram, Figures, Mark, Stroke, Text, draw
from scenarios.report.events import Event, Kind, Lane, Story
from scenarios.report.facts import Process, Tally
from scenarios.report.story import tell
from scenarios.report.words import isolated, label, plain
from tests.audit.real import Whole
from tests.report import hostile

HEBREW = "\u05d0\u05d1\u05d2"
HEAVY_STYLES = ("bold", "badbold", "bad")
MERMAID_LINE = re.compile(r"    (participant P\d+ as .+|P\d+(->>|-->>|-x)P\d+: .+|Note over P\d+(,P\d+)?: .+)")


def span(text: Text) -> tuple[float, float]:
    """From where to where a text is drawn."""
    width = text_width(text.words) * (HEAVY if text.style in HEAVY_STYLES else 1.0)
    begin = text.x - {"start": 0.0, "middle": width / 2, "end": width}[text.anchor]
    return begin, begin + width


def overlaps(diagram: Diagram) -> list[tuple[str, str]]:
    texts = [shape for shape in diagram.shapes if isinstance(shape, Text)]
    found = []
    for number, one in enumerate(texts):
        for other in texts[number + 1 :]:
            if abs(one.y - other.y) < 11 and span(one)[0] < span(other)[1] and span(other)[0] < span(one)[1]:
                found.append((one.words, other.words))
    return found


def test_no_label_lies_over_another_in_any_picture_of_the_study(stories: Mapping[str, Story]) -> None:
    assert {path: found for path, story in stories.items() if (found := overlaps(draw(story)))} == {}


def test_no_label_sticks_out_of_any_picture_of_the_study(stories: Mapping[str, Story]) -> None:
    for path, story in stories.items():
        diagram = draw(story)
        for shape in diagram.shapes:
            if isinstance(shape, Text):
                assert span(shape)[0] >= 0, (path, shape)
                assert span(shape)[1] <= diagram.width, (path, shape)
            if isinstance(shape, Text | Mark | Figures):
                assert 0 < shape.y < diagram.height, (path, shape)


def test_no_label_sticks_out_where_evidence_is_hostile(whole: Whole, folder: Path) -> None:
    for scenario in archives.read(hostile.write(whole, folder)).scenarios:
        diagram = draw(tell(scenario))
        assert [shape for shape in diagram.shapes if isinstance(shape, Text) and span(shape)[1] > diagram.width] == []
        assert overlaps(diagram) == []


def test_the_longest_and_the_widest_pictures_stay_readable(stories: Mapping[str, Story]) -> None:
    sizes = {path: (diagram.width, diagram.height) for path, diagram in ((p, draw(s)) for p, s in stories.items())}
    assert max(width for width, _ in sizes.values()) < 1200, "the crowd of twelve clients is compressed"
    assert max(height for _, height in sizes.values()) < 1400


def test_a_restart_stands_under_the_cut_that_made_it_necessary(stories: Mapping[str, Story]) -> None:
    heads = [shape for shape in draw(stories["delivery/keyed_delivery"]).shapes if isinstance(shape, Text)]
    first, second = (next(each for each in heads if each.words == words) for words in ("dispatcher", "dispatcher, 2nd"))
    assert first.x == second.x
    assert first.y < next(each.y for each in heads if "halt(23)" in each.words) < second.y


def test_the_line_of_a_halt_has_no_stubs(stories: Mapping[str, Story]) -> None:
    for path, story in stories.items():
        for shape in draw(story).shapes:
            if isinstance(shape, Stroke) and shape.style == "crash":
                pieces = re.findall(r"M(-?\d+) \d+H(-?\d+)", shape.way)
                assert pieces, path
                assert all(int(end) - int(begin) >= 20 for begin, end in pieces), path


def test_a_second_attempt_is_heavy_only_if_the_first_went_out(stories: Mapping[str, Story]) -> None:
    def heavy(path: str) -> bool:
        return any(isinstance(shape, Stroke) and "again" in shape.style for shape in draw(stories[path]).shapes)

    assert heavy("delivery/unkeyed_delivery")
    assert not heavy("points/send_before")
    assert "POST, attempt 2" in mermaid.text(stories["points/send_before"]).replace("#44;", ",")


@pytest.mark.parametrize("path", ["delivery/unkeyed_delivery", "ledger/concurrent", "wire/response_cut_in_body"])
def test_a_picture_file_is_well_formed_and_needs_nothing_else(stories: Mapping[str, Story], path: str) -> None:
    text = svg.document(draw(stories[path]), path)
    root = ET.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    shapes = {element.get("id") for element in root.iter() if element.get("id")}
    used = {element.get("href", "").removeprefix("#") for element in root.iter("{http://www.w3.org/2000/svg}use")}
    assert used <= shapes
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_mermaid_text_of_the_study_has_only_lines_that_mermaid_knows(stories: Mapping[str, Story]) -> None:
    for path, story in stories.items():
        first, *others = mermaid.text(story).splitlines()
        assert first == "sequenceDiagram"
        assert all(MERMAID_LINE.fullmatch(line) for line in others), path
        assert sum("CRASH BOUNDARY" in line for line in others) == sum(event.kind is Kind.HALT for event in story.events)


@pytest.mark.parametrize("words", ["end", "a;b", "x#y", "<b>", 'say "hi"', "a: b", "%% no", "P0->>P1", HEBREW, "The END, end"])
def test_mermaid_takes_any_words_for_words(words: str) -> None:
    told = mermaid.escaped(words)
    assert re.fullmatch(r"([ !$*+,\-./0-9=?@A-Z^_a-z~]|#\d+;)+", told)
    assert not re.search(r"\bend\b", told, re.IGNORECASE)
    assert re.sub(r"#(\d+);", lambda match: chr(int(match[1])), told) == words


def process(name: str) -> Process:
    return Process(name, 1, 1, "", (), "", {}, None, None, 0, None, "itself", "", "")


def tale(words: str, count: int = 1) -> Story:
    lane = Lane(process(words), "receiver", words)
    start = Event(Kind.START, 1, words, words, lane=0)
    record = Event(Kind.RECORD, 1, words, words, lane=0, counts=Tally(effects=count))
    return Story(words, (lane,), (start, *[record] * count), ())


def test_words_from_evidence_are_escaped_in_a_picture() -> None:
    text = svg.picture(draw(tale("<script>alert(1)</script>&'\"")), '"><script>')
    assert "<script" not in text
    ET.fromstring(text)


def test_a_name_from_right_to_left_is_isolated_in_a_picture() -> None:
    assert isolated(HEBREW) == f"\u2068{HEBREW}\u2069"
    assert f"\u2068{HEBREW}\u2069" in svg.picture(draw(tale(HEBREW)), "x")
    assert isolated("plain") == "plain"


def test_a_story_of_many_rows_is_drawn_in_part_and_says_so() -> None:
    diagram = draw(tale("word", MAX_ROWS + 50))
    assert diagram.rows_left_out == 51
    told = "51 more rows and 0 more lanes are not drawn"
    assert any(isinstance(shape, Text) and told in shape.words for shape in diagram.shapes)


def test_of_a_crowd_that_cannot_be_read_a_part_is_drawn_and_says_so() -> None:
    one = tale("word")
    lanes = one.lanes * 1000
    starts = tuple(replace(one.events[0], lane=number, joined=number > 0) for number in range(1000))
    diagram = draw(replace(one, lanes=lanes, events=starts))
    assert diagram.lanes_left_out == 1000 - MAX_LANES
    assert any(isinstance(shape, Text) and "936 more lanes are not drawn" in shape.words for shape in diagram.shapes)
    assert overlaps(diagram) == []


def test_a_story_without_events_is_an_empty_picture() -> None:
    ET.fromstring(svg.picture(draw(replace(tale("x"), lanes=(), events=())), "x"))
    assert mermaid.text(replace(tale("x"), lanes=(), events=())) == "sequenceDiagram\n"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("two\nlines\tand", "two\\nlines\\tand"),
        ("turn\u202eround", "turn\\u{202e}round"),
        ("\ud800", "\\u{d800}"),
        ("\0", "\\x00"),
        ("é ü 漢", "é ü 漢"),
    ],
)
def test_what_cannot_be_seen_is_shown_as_an_escape(given: str, shown: str) -> None:
    assert plain(given) == shown


def test_a_long_text_is_cut_with_its_length_told() -> None:
    assert plain("x" * 100_000).endswith("x… [100,000 characters]")
    assert len(label("x" * 100_000)) < 50

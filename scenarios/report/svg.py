"""Writes a laid-out diagram as SVG: inside a page, where styles are shared, or as a file of its own.

All words are escaped here; those that run from right to left are isolated. Class names are short because a page holds
hundreds of pictures.
"""

import re
from collections.abc import Sequence
from html import escape

from scenarios.report.diagram import COUNT_X, Box, Diagram, Figures, Mark, Stroke, Text
from scenarios.report.words import isolated

# The looks of shapes, for the page's style sheet and for files. The colours are the page's variables.
STYLE = """
.dg text{font:12px system-ui,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;fill:var(--fg);paint-order:stroke;
stroke:var(--bg);stroke-width:3px;stroke-linejoin:round;unicode-bidi:isolate}
.dg .m{text-anchor:middle}.dg .e{text-anchor:end}
.dg .mute text{fill:var(--mute)}.dg .head text{fill:var(--mute);font-weight:700}
.dg .n{text-anchor:middle}.dg .n text{fill:var(--mute)}.dg .n .new{fill:var(--fg);font-weight:700}
.dg .bold text,.dg .badbold text{font-weight:600;stroke:none}
.dg .bad text,.dg .badbold text{fill:var(--bad);font-weight:700}
.dg .cut text,.dg .no text{fill:var(--warn)}.dg .replay text{fill:var(--link)}
.dg path{fill:none;stroke:var(--fg);stroke-width:1.4}
.dg path.lane{stroke:var(--lane);stroke-width:2}.dg path.rest{stroke:var(--lane);stroke-width:2;stroke-dasharray:2 5}
.dg path.crash{stroke:var(--bad);stroke-dasharray:7 5;stroke-width:1}.dg path.cap{stroke:var(--mute);stroke-width:3}
.dg path.again{stroke-width:2.6}.dg path.replay{stroke:var(--link);stroke-dasharray:6 4}
.dg path.cut,.dg path.no{stroke:var(--warn)}
.dg path.bad{stroke:var(--bad)}
.dg path.b{fill:var(--bg);stroke:var(--mute);stroke-width:1;stroke-linejoin:round}.dg path.restart{stroke-width:2.4}
.dg path.moment{fill:var(--badbg);stroke:var(--bad);stroke-width:2}.dg path.check{fill:var(--soft)}
.dg path.file{fill:var(--soft);stroke-dasharray:3 3}.dg path.doubt{stroke:var(--warn);stroke-dasharray:3 3}
.dg path.k{fill:var(--bg);stroke-width:1.6}.dg path.r{stroke-width:9.6}.dg path.a{stroke-width:8;stroke-linecap:round}
.dg path.t{fill:var(--warn)}.dg path.e{fill:var(--ok);stroke:var(--ok)}.dg path.e.bad{fill:var(--bad);stroke:var(--bad)}
.dg path.x{stroke-width:2.4}.dg path.X{stroke-width:4}.dg path.p{stroke-width:3}
"""
LIGHT = (
    "--bg:#fff;--fg:#1b1d20;--mute:#595f66;--lane:#8b949e;--soft:#f1f3f5;--link:#0a58a8;--ok:#1a6b2f;--bad:#b3001b;"
    "--badbg:#fdecee;--warn:#8a4500;--rule:#d0d5da"
)
DARK = (
    "--bg:#14171a;--fg:#e9ebed;--mute:#a9b0b7;--lane:#6b747d;--soft:#20252a;--link:#8ab8ff;--ok:#7fd18f;--bad:#ff8f86;"
    "--badbg:#3a1a1c;--warn:#f2b35e;--rule:#3a4149"
)
# The marks: from where they are drawn, seen from their middle, and how. A line without length and with a round end is a dot.
MARKS = {
    "r": (-5, 0, "h10"),
    "e": (0, -7, "l7 7-7 7-7-7z"),
    "a": (0, 0, "h0"),
    "x": (-5, -5, "l10 10m0-10l-10 10"),
    "X": (-8, -8, "l16 16m0-16l-16 16"),
    "p": (-4, -6, "v12m8-12v12"),
    "g": (-4, -6, "l10 6-10 6z"),
    "t": (-5, -5, "h10l-4 4 3 2-5 4h-4z"),
}
_BEHIND = ("lane", "rest", "crash")
_QUOTED = re.compile(r'<text x="-?\d+" y="-?\d+">|<g class="\w+">')  # in a word no tag begins: it is escaped
_ANCHORS = {"start": "", "middle": "m", "end": "e"}


def picture(diagram: Diagram, label: str, told: str = "") -> str:
    """The diagram as an `svg` element for a page that has STYLE.

    `label` says what it shows, `told` is the id of the element that tells it in words, if there is one.
    """
    width, height = diagram.width, diagram.height
    described = f' aria-describedby="{escape(told)}"' if told else ""
    return (
        f'<svg class="dg" role="img" aria-label="{escape(label)}"{described} '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">{_body(diagram)}</svg>'
    )


def for_html(picture: str) -> str:
    """`picture` without the quotation marks that XML needs and HTML does not: a page holds ten thousand of them."""
    return _QUOTED.sub(lambda tag: tag[0].replace('"', ""), picture)


def document(diagram: Diagram, label: str) -> str:
    """The diagram as a file of its own, in the reader's light or dark scheme."""
    width, height = diagram.width, diagram.height
    style = f".dg{{{LIGHT};background:var(--bg)}}@media(prefers-color-scheme:dark){{.dg{{{DARK}}}}}{STYLE}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dg" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><title>{escape(label)}</title><style>{style}</style>'
        f'<rect width="{width}" height="{height}" style="fill:var(--bg)"/>{_body(diagram)}</svg>\n'
    )


def mark(name: str) -> str:
    """One of the marks by itself, for a legend."""
    return f'<svg class="dg" width="22" height="20" aria-hidden="true"><path d="{_mark(11, 10, name)}" class="k {name}"/></svg>'


def _mark(x: int, y: int, name: str) -> str:
    right, down, way = MARKS[name]
    return f"M{x + right} {y + down}{way}"


def _body(diagram: Diagram) -> str:
    """Lanes behind, then boxes, arrows, marks and words. What looks alike stands together: a page holds thousands of them."""
    behind, boxes, above, marks, words = (dict[str, str]() for _ in range(5))
    letters: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for shape in diagram.shapes:
        match shape:
            case Text(x, y, text, style, anchor):
                look = f"{style} {_ANCHORS[anchor]}".strip()
                if len(text) == 1 and text.isascii():
                    letters.setdefault((look, y), []).append((x, text))
                    continue
                told = escape(isolated(text), quote=False)
                words[look] = f'{words.get(look, "")}<text x="{x}" y="{y}">{told}</text>'
            case Box(x, y, width, height, style):
                look = "b" if style == "start" else f"b {style}"
                boxes[look] = f"{boxes.get(look, '')}M{x} {y}h{width}v{height}h-{width}z"
            case Stroke(way, style):
                layer = behind if style in _BEHIND else above
                layer[style] = layer.get(style, "") + way
            case Mark(x, y, name, style):
                look = f"k {name} {style}".strip()
                marks[look] = marks.get(look, "") + _mark(x, y, name)
            case Figures():
                pass
    for (look, y), placed in letters.items():  # those of a row share an element, which gives each its place
        xs, told = " ".join(str(x) for x, _ in placed), escape("".join(letter for _, letter in placed), quote=False)
        words[look] = f'{words.get(look, "")}<text x="{xs}" y="{y}">{told}</text>'
    layers = (behind, boxes, above, marks)
    paths = [f'<path d="{way}"{_class(style)}/>' for layer in layers for style, way in layer.items()]
    texts = [f"<g{_class(look)}>{told}</g>" if look else told for look, told in words.items()]
    figures = [shape for shape in diagram.shapes if isinstance(shape, Figures)]
    return "".join([*paths, *texts, _figures(figures)])


def _figures(rows: Sequence[Figures]) -> str:
    """The counts. All that have one digit share an element, which gives each digit its place; so do those that are new."""
    digits: dict[bool, list[tuple[int, int, int]]] = {False: [], True: []}
    longer = []
    for row in rows:
        for number, (x, value) in enumerate(zip(COUNT_X, row.values, strict=True)):
            new = number in row.changed
            if 0 <= value < 10:
                digits[new].append((x, row.y, value))
            else:
                longer.append(f'<text x="{x}" y="{row.y}"{_class("new" if new else "")}>{value}</text>')
    for new, placed in digits.items():
        if placed:
            xs, ys, values = (" ".join(map(str, each)) for each in zip(*placed, strict=True))
            longer.append(f'<text x="{xs}" y="{ys}"{_class("new" if new else "")}>{values.replace(" ", "")}</text>')
    return f'<g class="n">{"".join(longer)}</g>' if longer else ""


def _class(style: str) -> str:
    return f' class="{style}"' if style else ""

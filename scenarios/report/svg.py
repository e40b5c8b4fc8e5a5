"""Writes a laid-out diagram as SVG: inside a page, where styles and shapes are shared, or as a file of its own.

All words are escaped here; those that run from right to left are isolated. Class names are short because a page holds
hundreds of pictures.
"""

from html import escape

from scenarios.report.diagram import COUNT_X, Box, Diagram, Figures, Mark, Shape, Stroke, Text
from scenarios.report.words import isolated

# The looks of shapes, for the page's style sheet and for files. The colours are the page's variables.
STYLE = """
.dg text{font:12px system-ui,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;fill:var(--fg);paint-order:stroke;
stroke:var(--bg);stroke-width:3px;stroke-linejoin:round;unicode-bidi:isolate}
.dg .m{text-anchor:middle}.dg .e{text-anchor:end}
.dg text.mute{fill:var(--mute)}.dg text.head{fill:var(--mute);font-weight:700}
.dg .n{text-anchor:middle;fill:var(--mute)}.dg .n tspan{fill:var(--fg);font-weight:700}
.dg text.bold,.dg text.badbold{font-weight:600;stroke:none}
.dg text.bad,.dg text.badbold{fill:var(--bad);font-weight:700}.dg text.cut{fill:var(--warn)}.dg text.replay{fill:var(--link)}
.dg text.no{fill:var(--warn)}
.dg path{fill:none;stroke:var(--fg);stroke-width:1.4}
.dg path.lane{stroke:var(--lane);stroke-width:2}.dg path.rest{stroke:var(--lane);stroke-width:2;stroke-dasharray:2 5}
.dg path.crash{stroke:var(--bad);stroke-dasharray:7 5;stroke-width:1}.dg path.cap{stroke:var(--mute);stroke-width:3}
.dg path.again{stroke-width:2.6}.dg path.replay{stroke:var(--link);stroke-dasharray:6 4}
.dg path.cut,.dg path.no{stroke:var(--warn)}
.dg path.bad{stroke:var(--bad)}
.dg rect{fill:var(--bg);stroke:var(--mute);rx:4px}.dg rect.restart{stroke-width:2.4}
.dg rect.moment{fill:var(--badbg);stroke:var(--bad);stroke-width:2}.dg rect.check{fill:var(--soft)}
.dg rect.file{fill:var(--soft);stroke-dasharray:3 3}.dg rect.doubt{stroke:var(--warn);stroke-dasharray:3 3}
.dg use{stroke:var(--fg);fill:var(--bg);stroke-width:1.6}.dg use.bad{stroke:var(--bad)}.dg use.cut{stroke:var(--warn)}
.dg use.e{fill:var(--ok);stroke:var(--ok)}.dg use.e.bad{fill:var(--bad);stroke:var(--bad)}
.dg use.r{fill:var(--fg)}.dg use.t{fill:var(--warn)}
"""
LIGHT = (
    "--bg:#fff;--fg:#1b1d20;--mute:#595f66;--lane:#8b949e;--soft:#f1f3f5;--link:#0a58a8;--ok:#1a6b2f;--bad:#b3001b;"
    "--badbg:#fdecee;--warn:#8a4500;--rule:#d0d5da"
)
DARK = (
    "--bg:#14171a;--fg:#e9ebed;--mute:#a9b0b7;--lane:#6b747d;--soft:#20252a;--link:#8ab8ff;--ok:#7fd18f;--bad:#ff8f86;"
    "--badbg:#3a1a1c;--warn:#f2b35e;--rule:#3a4149"
)
SHAPES = (
    '<path id="h-r" d="M-4-4h8v8h-8z"/><path id="h-e" d="M0-7L7 0 0 7-7 0z"/><circle id="h-a" r="4"/>'
    '<path id="h-x" d="M-5-5L5 5M5-5L-5 5" stroke-width="2.4"/><path id="h-X" d="M-8-8L8 8M8-8L-8 8" stroke-width="4"/>'
    '<path id="h-p" d="M-4-6v12M4-6v12" stroke-width="3"/><path id="h-g" d="M-4-6L6 0-4 6z"/>'
    '<path id="h-t" d="M-5-5h10l-4 4 3 2-5 4h-4z"/>'
)
_ANCHORS = {"start": "", "middle": "m", "end": "e"}


def picture(diagram: Diagram, label: str, told: str = "") -> str:
    """The diagram as an `svg` element for a page that has STYLE and SHAPES.

    `label` says what it shows, `told` is the id of the element that tells it in words, if there is one.
    """
    body = "".join(_shape(shape) for shape in diagram.shapes)
    width, height = diagram.width, diagram.height
    described = f' aria-describedby="{escape(told)}"' if told else ""
    return (
        f'<svg class="dg" role="img" aria-label="{escape(label)}"{described} '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">{body}</svg>'
    )


def document(diagram: Diagram, label: str) -> str:
    """The diagram as a file of its own, in the reader's light or dark scheme."""
    width, height = diagram.width, diagram.height
    style = f".dg{{{LIGHT};background:var(--bg)}}@media(prefers-color-scheme:dark){{.dg{{{DARK}}}}}{STYLE}"
    body = "".join(_shape(shape) for shape in diagram.shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dg" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><title>{escape(label)}</title><style>{style}</style>'
        f'<defs>{SHAPES}</defs><rect width="{width}" height="{height}" style="stroke:none"/>{body}</svg>\n'
    )


def _shape(shape: Shape) -> str:
    match shape:
        case Text(x, y, words, style, anchor):
            return f'<text x="{x}" y="{y}"{_class(style, _ANCHORS[anchor])}>{escape(isolated(words), quote=False)}</text>'
        case Box(x, y, width, height, style):
            return f'<rect x="{x}" y="{y}" width="{width}" height="{height}"{_class(style)}/>'
        case Stroke(way, style):
            return f'<path d="{way}"{_class(style)}/>'
        case Figures():
            return _figures(shape)
        case Mark(x, y, name, style):
            return f'<use href="#h-{name}" x="{x}" y="{y}"{_class(name, style)}/>'


def _figures(figures: Figures) -> str:
    """The counts of a row; where each is one digit they share an element that gives each digit its x."""
    values, y = figures.values, figures.y
    if max(values) < 10:
        digits = "".join(f"<tspan>{value}</tspan>" if n in figures.changed else str(value) for n, value in enumerate(values))
        return f'<text x="{" ".join(map(str, COUNT_X))}" y="{y}" class="n">{digits}</text>'
    parts = (
        f'<text x="{x}" y="{y}" class="n">{f"<tspan>{value}</tspan>" if number in figures.changed else value}</text>'
        for number, (x, value) in enumerate(zip(COUNT_X, values, strict=True))
    )
    return "".join(parts)


def _class(*names: str) -> str:
    chosen = " ".join(name for name in names if name).strip()
    return f' class="{chosen}"' if chosen else ""

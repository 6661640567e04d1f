"""The few SVG elements that the drawings use, as text.

Owns escaping and number formats. Must not know what is drawn. Fonts are the reader's own, and
nothing is loaded from elsewhere.
"""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

MONO_EM = 0.602
"""Width of a letter in the monospaced fonts named here, in units of the font size."""

_MONO = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
_SANS = "system-ui, 'DejaVu Sans', 'Segoe UI', Helvetica, Arial, sans-serif"
_CONTROL = dict.fromkeys(range(32), "\N{REPLACEMENT CHARACTER}")
"""Characters below 32 are not allowed in XML, escaped or not."""


def document(width: float, height: float, title: str, body: list[str]) -> str:
    """A whole file, on white."""
    size = f'width="{_n(width)}" height="{_n(height)}" viewBox="0 0 {_n(width)} {_n(height)}"'
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{_SANS}">',
            f"<title>{_text(title)}</title>",
            rect(0, 0, width, height, fill="#ffffff"),
            *body,
            "</svg>\n",
        ]
    )


def group(body: list[str], title: str = "") -> str:
    """Elements together; a browser shows the title when the pointer rests on one."""
    return f"<g>{_title(title)}{''.join(body)}</g>"


def line(x1: float, y1: float, x2: float, y2: float, stroke: str, width: float = 1) -> str:
    """A straight line."""
    ends = f'x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}"'
    return f'<line {ends} stroke="{stroke}" stroke-width="{_n(width)}"/>'


def rect(
    x: float,
    y: float,
    width: float,
    height: float,
    fill: str,
    stroke: str = "none",
    radius: float = 0,
    opacity: float = 1,
) -> str:
    """A rectangle, with round corners where ``radius`` is given."""
    place = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="{_n(radius)}"'
    return f'<rect {place} fill="{fill}" stroke="{stroke}" fill-opacity="{_n(opacity)}"/>'


def dot(x: float, y: float, radius: float, fill: str) -> str:
    """A filled circle."""
    return f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" fill="{fill}"/>'


def polygon(points: list[tuple[float, float]], fill: str) -> str:
    """A filled polygon."""
    corners = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
    return f'<polygon points="{corners}" fill="{fill}"/>'


def text(
    x: float,
    y: float,
    words: str,
    size: float = 12,
    fill: str = "#1c2430",
    anchor: str = "start",
    mono: bool = False,
    bold: bool = False,
) -> str:
    """One line of text; ``y`` is its base line."""
    font = f' font-family="{_MONO}"' if mono else ""
    weight = ' font-weight="600"' if bold else ""
    place = f'x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}" text-anchor={quoteattr(anchor)}'
    return f'<text {place} fill="{fill}"{font}{weight}>{_text(words)}</text>'


def _title(words: str) -> str:
    return f"<title>{_text(words)}</title>" if words else ""


def _text(words: str) -> str:
    return escape(words.translate(_CONTROL))


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")

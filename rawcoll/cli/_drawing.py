"""A schedule as a picture: ranks down, rounds across, messages as arrows, reductions as marks.

Owns shapes, colours and the placing of labels. A label that would cover another one is left out;
the arrow's tooltip has it.

Key terms: a *lane* is the horizontal line of one rank; a label's *box* is the place it takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from math import hypot

from rawcoll.cli import _svg as svg
from rawcoll.cli._columns import COPY, LAST, REDUCE, Arrow, Column, Join, columns_of
from rawcoll.errors import InvalidArgument
from rawcoll.schedule.program import Schedule

MOST_RANKS = 64
MOST_ROUNDS = 256

_COLOURS = (
    "#1f5fa8", "#c4511d", "#2e7d4f", "#8a3fa0", "#b3243b", "#0f7c8a", "#7a5c12", "#4b4fbf",
)  # fmt: skip
"""One a rank, in turn; all dark enough for text on white."""
_GREY, _LANE, _BAND = "#5b6675", "#cdd3db", "#f5f7fa"
_GREEN, _PALE_GREEN, _PALE_GREY = "#1f7a4d", "#e2f3e9", "#eceff3"
_PILLS = {
    REDUCE: (_PALE_GREEN, _GREEN, _GREEN, "\N{CIRCLED PLUS} "),
    LAST: (_GREEN, _GREEN, "#ffffff", "\N{CIRCLED PLUS} "),
    COPY: (_PALE_GREY, _GREY, _GREY, "= "),
}
"""Fill, outline, text and sign of a mark."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 24, 122, 78
_MIN_WIDTH = 760
_SIZE, _HEIGHT = 11, 15
"""Font size of labels, and the height of their boxes."""
_ALONG = (0.36, 0.5, 0.64, 0.26, 0.74, 0.2, 0.8)
"""Places along an arrow where its label may stand, the best first: a pair's arrows cross at 0.5."""
_FAN = 3
"""From so many arrows on, a sender of the same units to all has one label, at its dot."""

Box = tuple[float, float, float, float]


def draw(schedule: Schedule, title: str, subtitle: str) -> str:
    """The picture of a schedule as SVG.

    Raises:
        InvalidArgument: it has more ranks or rounds than fit a legible picture.
    """
    columns = columns_of(schedule)
    _check_size(schedule.nranks, len(columns))
    return _Drawing(schedule.nranks, columns).document(title, subtitle)


def _check_size(nranks: int, nrounds: int) -> None:
    for name, found, most in (("ranks", nranks, MOST_RANKS), ("rounds", nrounds, MOST_ROUNDS)):
        if found > most:
            raise InvalidArgument(
                f"svg: too many {name} for a picture: found {found}, expected at most {most}"
                " (the text has no limit)"
            )


class _Drawing:
    def __init__(self, nranks: int, columns: list[Column]) -> None:
        self._nranks = nranks
        self._columns = columns
        self._row = 54 if nranks <= 20 else 40
        self._boxes: list[Box] = []
        self._nhidden = 0

    def document(self, title: str, subtitle: str) -> str:
        x, body, bands = float(_LEFT), [], []
        for number, column in enumerate(self._columns):
            width = _arrows_width(column) + _marks_width(column)
            if number % 2 == 0:
                bands.append(svg.rect(x, _TOP - 34, width, self._bottom - _TOP + 58, _BAND))
            bands.append(_heading(column, x + width / 2))
            body += self._column(column, x)
            x += width
        width = max(x + _RIGHT, _MIN_WIDTH)
        head = [
            svg.text(_RIGHT, 30, title, size=17, bold=True),
            svg.text(_RIGHT, 51, subtitle, fill=_GREY),
        ]
        parts = [*head, *bands, *self._lanes(x), *body, *self._legend()]
        return svg.document(width, self._bottom + _BOTTOM, title, parts)

    @property
    def _bottom(self) -> float:
        return self._y(self._nranks - 1)

    def _y(self, rank: int) -> float:
        return _TOP + self._row * rank

    def _lanes(self, right: float) -> Iterator[str]:
        for rank in range(self._nranks):
            y = self._y(rank)
            yield svg.line(_LEFT - 8, y, right, y, _LANE)
            yield svg.text(_LEFT - 14, y + 4, f"rank {rank}", 12, _colour(rank), "end", bold=True)

    def _column(self, column: Column, x: float) -> list[str]:
        left, right = x + 12, x + _arrows_width(column) - 6
        self._boxes = []
        labels = list(self._labels(column, left, right))
        parts = [self._arrow(arrow, left, right) for arrow in column.arrows]
        parts += [self._join(join, (left + right) / 2) for join in column.joins]
        return parts + labels + list(self._marks(column, right + 10))

    def _arrow(self, arrow: Arrow, x1: float, x2: float) -> str:
        y1, y2, colour = self._y(arrow.source), self._y(arrow.peer), _colour(arrow.source)
        length = hypot(x2 - x1, y2 - y1)
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        tail_x, tail_y = x2 - 10 * ux, y2 - 10 * uy
        head = [
            (x2, y2),
            (tail_x - 4 * uy, tail_y + 4 * ux),
            (tail_x + 4 * uy, tail_y - 4 * ux),
        ]
        shapes = [
            svg.dot(x1, y1, 3, colour),
            svg.line(x1, y1, tail_x, tail_y, colour, 1.4),
            svg.polygon(head, colour),
        ]
        return svg.group(shapes, arrow.title)

    def _labels(self, column: Column, x1: float, x2: float) -> Iterator[str]:
        fans = _fans(column)
        for rank, label in fans.items():
            yield from self._label(label, rank, [(x1 + _width(label) / 2 - 4, self._y(rank) - 13)])
        # Short arrows have few places for a label.
        for arrow in sorted(column.arrows, key=lambda arrow: abs(arrow.source - arrow.peer)):
            if arrow.source not in fans:
                y1, y2 = self._y(arrow.source), self._y(arrow.peer)
                places = [(x1 + (x2 - x1) * part, y1 + (y2 - y1) * part) for part in _ALONG]
                yield from self._label(arrow.label, arrow.source, places)

    def _label(self, words: str, rank: int, places: list[tuple[float, float]]) -> Iterator[str]:
        """The label at the first place that is free; none where there is none."""
        width = _width(words) + 4
        for x, y in places:
            box = x - width / 2, y - _HEIGHT / 2, x + width / 2, y + _HEIGHT / 2
            if not any(_overlap(box, other) for other in self._boxes):
                self._boxes.append(box)
                yield svg.rect(box[0], box[1], width, _HEIGHT, "#ffffff", radius=3, opacity=0.88)
                yield svg.text(x, y + 4, words, _SIZE, _colour(rank), "middle", mono=True)
                return
        self._nhidden += 1

    def _marks(self, column: Column, x: float) -> Iterator[str]:
        """A rank's marks stand above one another, around its lane."""
        for rank, those in groupby(column.marks, key=lambda mark: mark.rank):
            marks = list(those)
            for number, mark in enumerate(marks):
                y = self._y(rank) + (number - (len(marks) - 1) / 2) * (_HEIGHT + 4)
                yield svg.group(_pill(mark.kind, mark.label, x, y), mark.title)

    def _join(self, join: Join, x: float) -> str:
        ys = [self._y(rank) for rank in join.ranks]
        shapes = [svg.line(x, min(ys), x, max(ys), _GREY, 3)]
        shapes += [svg.dot(x, y, 5, _colour(rank)) for rank, y in zip(join.ranks, ys, strict=True)]
        y = (ys[0] + ys[-1]) / 2 + self._row / 2 * (len(ys) % 2)
        width = _width(join.label) + 10
        shapes.append(svg.rect(x - width / 2, y - 10, width, 20, "#ffffff", _LANE, 4))
        shapes.append(svg.text(x, y + 4, join.label, _SIZE, _GREY, "middle", mono=True))
        return svg.group(shapes, f"{join.label}, ranks {' '.join(map(str, join.ranks))}")

    def _legend(self) -> Iterator[str]:
        x, y = float(_RIGHT), self._bottom + _BOTTOM - 20
        kinds = {mark.kind for column in self._columns for mark in column.marks}
        meanings = {REDUCE: "reduced", LAST: "reduced, complete", COPY: "copied"}
        for kind, meaning in meanings.items():
            if kind in kinds:
                yield from _pill(kind, "3", x, y - 4)
                yield svg.text(x + 42, y, meaning, fill=_GREY)
                x += 62 + 6.6 * len(meaning)
        words = "an arrow has its sender's colour; 3 is unit 3, 2:4 are units 2 and 3"
        if self._nhidden:
            words += f"; {self._nhidden} labels had no place: point at an arrow to read it"
        yield svg.text(x, y, words, fill=_GREY)


def _heading(column: Column, x: float) -> str:
    words = "before" if column.round is None else f"round {column.round}"
    return svg.text(x, _TOP - 42, words, fill=_GREY, anchor="middle")


def _colour(rank: int) -> str:
    return _COLOURS[rank % len(_COLOURS)]


def _width(label: str) -> float:
    return len(label) * _SIZE * svg.MONO_EM


def _arrows_width(column: Column) -> float:
    """Wider where more arrows cross, and nothing where there are none."""
    if column.joins:
        return 34 + max(_width(join.label) for join in column.joins)
    return min(340.0, max(100.0, 84 + 5.0 * len(column.arrows))) if column.arrows else 18


def _marks_width(column: Column) -> float:
    widths = [_width(_PILLS[mark.kind][3] + mark.label) + 24 for mark in column.marks]
    return max(widths, default=8.0)


def _pill(kind: str, label: str, x: float, y: float) -> list[str]:
    fill, outline, colour, sign = _PILLS[kind]
    words = sign + label
    width = _width(words) + 12
    return [
        svg.rect(x, y - _HEIGHT / 2 - 1, width, _HEIGHT + 2, fill, outline, radius=8),
        svg.text(x + width / 2, y + 4, words, _SIZE, colour, "middle", mono=True),
    ]


def _fans(column: Column) -> dict[int, str]:
    """The ranks that send the same units to many, and what they send."""
    labels: dict[int, list[str]] = {}
    for arrow in column.arrows:
        labels.setdefault(arrow.source, []).append(arrow.label)
    return {
        rank: those[0]
        for rank, those in labels.items()
        if len(those) >= _FAN and len(set(those)) == 1
    }


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]

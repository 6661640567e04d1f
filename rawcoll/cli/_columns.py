"""A schedule as columns: what leaves, arrives and is reduced in each round.

Owns the reading of programs for a drawing, and the short names of units. Knows nothing of shapes.

Key terms: a *column* is one round, with the local actions that follow it on each rank; the column
of round None comes before all others; a *mark* unites a rank's local actions of one kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from rawcoll.schedule.ops import Copy, Local, Native, Reduce, Span, Transfer
from rawcoll.schedule.program import Program, Schedule
from rawcoll.schedule.text import show_span

COPY = "copy"
REDUCE = "reduce"
LAST = "last"
"""A reduction that holds every rank's contribution."""

_MOST_RANGES = 3
"""Ranges of units that a label names before it says how many more there are."""


@dataclass(frozen=True, slots=True)
class Arrow:
    """Messages from a rank to a peer: ``label`` names their units, ``title`` says all of them."""

    source: int
    peer: int
    label: str
    title: str


@dataclass(frozen=True, slots=True)
class Mark:
    """Local actions of one kind at one rank."""

    rank: int
    kind: str
    label: str
    title: str


@dataclass(frozen=True, slots=True)
class Join:
    """A collective of the library below among some ranks."""

    ranks: tuple[int, ...]
    label: str


@dataclass(slots=True)
class Column:
    """One round; ``joins`` has no doubles, though each rank names its own."""

    round: int | None
    arrows: list[Arrow] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    joins: dict[Join, None] = field(default_factory=dict)


def columns_of(schedule: Schedule) -> list[Column]:
    """The columns in order of rounds; without the first one where nothing precedes the rounds."""
    columns: dict[int | None, Column] = {}
    for program in schedule.programs:
        _read(program, columns)
    return sorted(columns.values(), key=lambda column: (column.round is not None, column.round))


def _read(program: Program, columns: dict[int | None, Column]) -> None:
    rank = program.spec.rank
    after: int | None = None
    locals_of: dict[int | None, list[Local]] = {}
    for step in program.steps:
        action = step.action
        if isinstance(action, Copy | Reduce):
            locals_of.setdefault(after, []).append(action)
            continue
        after = action.round
        column = columns.setdefault(after, Column(after))
        if isinstance(action, Transfer):
            column.arrows += _arrows(rank, action)
        else:
            column.joins[_join(action)] = None
    for place, actions in locals_of.items():
        columns.setdefault(place, Column(place)).marks += _marks(rank, actions)


def _arrows(rank: int, transfer: Transfer) -> list[Arrow]:
    """One arrow a peer, however many messages go there."""
    spans: dict[int, list[Span]] = {}
    for send in transfer.sends:
        spans.setdefault(send.peer, []).append(send.span)
    return [
        Arrow(
            rank,
            peer,
            units_label(those),
            f"round {transfer.round}: rank {rank} sends {', '.join(map(show_span, those))}"
            f" to rank {peer}",
        )
        for peer, those in spans.items()
    ]


def _join(native: Native) -> Join:
    return Join(native.ranks, f"the library's {native.collective}")


def _marks(rank: int, actions: list[Local]) -> list[Mark]:
    kinds: dict[str, list[Local]] = {}
    for action in actions:
        kinds.setdefault(_kind(action), []).append(action)
    return [
        Mark(
            rank,
            kind,
            units_label(action.dst for action in those),
            f"rank {rank}: " + "; ".join(map(_show, those)),
        )
        for kind, those in kinds.items()
    ]


def _kind(action: Local) -> str:
    if isinstance(action, Copy):
        return COPY
    return LAST if action.last else REDUCE


def _show(action: Local) -> str:
    if isinstance(action, Copy):
        return f"{show_span(action.dst)} = {show_span(action.src)}"
    last = ", complete" if action.last else ""
    return f"{show_span(action.dst)} = {' + '.join(map(show_span, action.srcs))}{last}"


def units_label(spans: Iterable[Span]) -> str:
    """Units in short: ``3`` is one unit, ``2:5`` are 2, 3 and 4; neighbours are united."""
    ranges: list[tuple[int, int]] = []
    for start, stop in sorted({(span.start, span.stop) for span in spans}):
        if ranges and start <= ranges[-1][1]:
            ranges[-1] = ranges[-1][0], max(stop, ranges[-1][1])
        else:
            ranges.append((start, stop))
    shown = [_range(*each) for each in ranges[:_MOST_RANGES]]
    more = len(ranges) - len(shown)
    return " ".join(shown) + (f" +{more}" if more else "")


def _range(start: int, stop: int) -> str:
    return str(start) if stop == start + 1 else f"{start}:{stop}"

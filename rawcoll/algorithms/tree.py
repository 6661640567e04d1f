"""Double binary tree, pipelined: two trees carry half of the array each.

A rank is an inner node of at most one of the two trees, so that all links work.

========================  ==============================  ===========================
collective                rounds                          bytes sent by a rank
========================  ==============================  ===========================
all_reduce                (lag + 1) h + s - 1             at most 2 S
reduce                    lag h' + s                      at most S
broadcast                 h' + s                          at most S
========================  ==============================  ===========================

n ranks, an array of S bytes, s segments a tree; h = floor(log2 n), h' = floor(log2(n - 1)); lag is
1 for one segment and 2 for more: a segment leaves two rounds after it arrived, so that its
reduction runs beside the transfer in between. A node at depth d sends up in round ``lag (h - d) +
j`` for segment j: both children of a node send in the same round, and one reduction takes both.

For reduce and broadcast the root stands outside both trees, which hold the other n - 1 ranks and
are numbered from the root on; the tops of the trees talk to the root.

Roundings: h (all_reduce), h' + 1 (reduce). Order of reduction: left subtree, own, right subtree, in
rank order (in the second tree of an odd number of ranks, the rank that wraps around comes last).
The bits do not depend on ``segments`` as long as the partition puts an element into the same tree.

Source: Sanders, Speck and Traeff, Two-tree algorithms for full bandwidth broadcast, reduction and
scan, 2009; mirrored for even and shifted for odd numbers of ranks as in NCCL.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final

from rawcoll.algorithms.base import Constraints, check_at_least_one, start
from rawcoll.algorithms.fitting import fitted_segments
from rawcoll.schedule.builder import Builder
from rawcoll.schedule.ops import OUTPUT, Span
from rawcoll.schedule.program import Program, Spec

NTREES: Final = 2
REDUCE_LAG: Final = 2
"""Rounds between the arrival of a segment and its departure, where there are several segments."""


@dataclass(frozen=True, slots=True)
class Tree:
    """See the module.

    Attributes:
        segments: into how many segments each tree's half of the array is cut; None: by size.
    """

    segments: int | None = None

    name: ClassVar[str] = "tree"
    collectives: ClassVar[frozenset[str]] = frozenset({"all_reduce", "reduce", "broadcast"})
    constraints: ClassVar[Constraints] = Constraints()

    def __post_init__(self) -> None:
        check_at_least_one("segments", self.segments)

    def program(self, spec: Spec) -> Program:
        """See Algorithm."""
        segments = self.segments or 1
        builder = start(self, spec, NTREES * segments)
        if spec.nranks > 1:
            for number in range(NTREES):
                tree = _Tree(builder, number, segments, _lag(segments))
                if spec.collective != "broadcast":
                    tree.up(in_output=spec.collective == "all_reduce" or spec.rank == spec.root)
                if spec.collective != "reduce":
                    tree.down()
        return builder.build()

    def rounds(self, collective: str, nranks: int) -> int:
        """See Algorithm."""
        segments = self.segments or 1
        if nranks == 1:
            return 0
        match collective:
            case "all_reduce":
                return (_lag(segments) + 1) * _height(nranks) + segments - 1
            case "reduce":
                return _lag(segments) * _height(nranks - 1) + segments
            case _:
                return _height(nranks - 1) + segments

    def fitted(self, nbytes: int, nranks: int) -> Tree:
        """See Algorithm."""
        if self.segments is not None:
            return self
        return replace(self, segments=fitted_segments(nbytes // NTREES))


def _lag(segments: int) -> int:
    return 1 if segments == 1 else REDUCE_LAG


class _Tree:
    """One tree as one rank sees it.

    Ranks are numbered as members: as they are for all_reduce, from ``root + 1`` on for the rooted
    collectives, where the root is the last member, in no tree, at depth -1 above both tops.
    """

    def __init__(self, builder: Builder, number: int, segments: int, lag: int) -> None:
        spec = builder.spec
        rooted = spec.collective != "all_reduce"
        size = spec.nranks - 1 if rooted else spec.nranks
        self._builder = builder
        self._number = number
        self._segments = segments
        self._lag = lag
        self._shift = spec.root + 1 if rooted else 0
        self._height = _height(size)
        self._first_down = 1 if rooted else lag * self._height
        self._member = (spec.rank - self._shift) % spec.nranks
        outside = spec.nranks - 1 if rooted else None
        self._seat = seat_of(self._member, size, number, outside)

    def up(self, *, in_output: bool) -> None:
        """Children's sums arrive, the rank adds its own, and the sum goes to the parent.

        ``in_output`` adds up in OUTPUT, otherwise in the slot of the first child.
        """
        seat, lag = self._seat, self._lag
        # A sum in OUTPUT frees its slots: two serve in turn. One in a slot leaves lag rounds later.
        nslots = min(self._segments, 2 if in_output else lag + 1)
        slots = {child: [self._builder.scratch() for _ in range(nslots)] for child in seat.children}
        for segment in range(self._segments):
            leaving = lag * (self._height - seat.depth) + segment
            own = result = self._span(segment)
            operands = {self._member: own}
            for child in seat.children:
                operands[child] = self._span(segment, slots[child][segment % nslots])
                self._builder.recv(leaving - lag, self._rank(child), operands[child])
            if seat.children:
                result = own if in_output else operands[seat.children[0]]
                srcs = [operands[member] for member in sorted(operands)]
                self._builder.reduce(leaving - lag, srcs, result, last=seat.parent is None)
            if seat.parent is not None:
                self._builder.send(leaving, self._rank(seat.parent), result)

    def down(self) -> None:
        """The parent's segments arrive and go on to the children a round later."""
        seat = self._seat
        for segment in range(self._segments):
            leaving = self._first_down + seat.depth + segment
            span = self._span(segment)
            if seat.parent is not None:
                self._builder.recv(leaving - 1, self._rank(seat.parent), span)
            for child in seat.children:
                self._builder.send(leaving, self._rank(child), span)

    def _rank(self, member: int) -> int:
        return (member + self._shift) % self._builder.spec.nranks

    def _span(self, segment: int, buffer: int = OUTPUT) -> Span:
        unit = self._number * self._segments + segment
        return self._builder.span(unit, unit + 1, buffer)


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a member sits in a tree: its neighbours as members, and its distance from the top."""

    parent: int | None
    children: tuple[int, ...]
    depth: int


def seat_of(member: int, size: int, number: int, outside: int | None = None) -> Seat:
    """The seat of a member in tree ``number`` (0 or 1) over members 0 to ``size`` - 1.

    ``outside``: a member above the top of the tree, if there is one.
    """
    if member == outside:
        return Seat(None, (_member(_middle(0, size), size, number),), -1)
    parent, children, depth = _in_order(_place(member, size, number), size)
    above = outside if parent is None else _member(parent, size, number)
    return Seat(above, tuple(_member(child, size, number) for child in children), depth)


def _in_order(place: int, size: int) -> tuple[int | None, list[int], int]:
    """Parent, children and depth in the binary tree whose in-order walk is 0, 1, 2, ..."""
    start, stop, parent, depth = 0, size, None, 0
    while (middle := _middle(start, stop)) != place:
        parent, depth = middle, depth + 1
        start, stop = (start, middle) if place < middle else (middle + 1, stop)
    sides = ((start, place), (place + 1, stop))
    return parent, [_middle(low, high) for low, high in sides if low < high], depth


def _middle(start: int, stop: int) -> int:
    """The top of the subtree over ``[start, stop)``: its left side is a full tree."""
    return start + (1 << _height(stop - start)) - 1


def _height(size: int) -> int:
    return size.bit_length() - 1


def _member(place: int, size: int, number: int) -> int:
    """The member in a place. The first tree's inner nodes are odd, so the second's are even: it is
    mirrored, or shifted where mirroring would leave them odd."""
    if number == 0:
        return place
    return size - 1 - place if size % 2 == 0 else (place + 1) % size


def _place(member: int, size: int, number: int) -> int:
    """The inverse of ``_member``."""
    if number == 0:
        return member
    return size - 1 - member if size % 2 == 0 else (member - 1) % size

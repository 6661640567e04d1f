"""Binomial tree: rooted collectives in few rounds, for small arrays.

========================  ==================  ==============================================
collective                rounds              bytes sent by a rank
========================  ==================  ==============================================
broadcast                 ceil(log2 n)        at most S ceil(log2 n) (the root)
reduce                    ceil(log2 n)        S (the root: 0)
scatter                   ceil(log2 n)        the root: S (n - 1) / n; at most half elsewhere
gather                    ceil(log2 n)        at most S / 2 (the root: 0)
========================  ==================  ==============================================

n ranks, an array of S bytes. Ranks are numbered from the root on (v = rank - root mod n). The
parent of v is v without its lowest set bit, so the subtree of v is a range of v; in ranks it may
wrap around, and is then two. reduce and gather walk from the leaves to the root, broadcast and
scatter backwards.

Roundings: ceil(log2 n). Order of reduction: a binary tree over the ranks in order, from the root
on.

Source: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in
MPICH, 2005.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from rawcoll.algorithms.base import Constraints, start
from rawcoll.schedule.builder import Builder
from rawcoll.schedule.ops import OUTPUT, Span
from rawcoll.schedule.program import Program, Spec


@dataclass(frozen=True, slots=True)
class Binomial:
    """See the module. It has no parameters."""

    name: ClassVar[str] = "binomial"
    collectives: ClassVar[frozenset[str]] = frozenset({"broadcast", "reduce", "scatter", "gather"})
    constraints: ClassVar[Constraints] = Constraints()

    def program(self, spec: Spec) -> Program:
        """See Algorithm."""
        parts = spec.collective in ("scatter", "gather")
        builder = start(self, spec, spec.nranks if parts else 1)
        tree = _Tree(builder)
        match spec.collective:
            case "broadcast":
                tree.broadcast()
            case "reduce":
                tree.reduce()
            case "scatter":
                tree.scatter()
            case _:
                tree.gather()
        return builder.build()

    def rounds(self, collective: str, nranks: int) -> int:
        """See Algorithm."""
        return (nranks - 1).bit_length()

    def fitted(self, nbytes: int, nranks: int) -> Binomial:
        """See Algorithm."""
        return self


class _Tree:
    """The tree as one rank sees it, numbered from the root on."""

    def __init__(self, builder: Builder) -> None:
        spec = builder.spec
        self._builder = builder
        self._nranks = spec.nranks
        self._root = spec.root
        self._number = (spec.rank - spec.root) % spec.nranks
        self._nsteps = (spec.nranks - 1).bit_length()
        lowest = self._number & -self._number
        self._level = self._nsteps if self._number == 0 else lowest.bit_length() - 1
        """The step, counted from the leaves, in which this rank talks to its parent."""
        self._parent = self._rank(self._number - lowest)

    def broadcast(self) -> None:
        """From the root down: the largest subtrees first."""
        b, whole = self._builder, self._builder.span(0)
        if self._number > 0:
            b.recv(self._down(self._level), self._parent, whole)
        for level, child in self._children():
            b.send(self._down(level), self._rank(child), whole)

    def reduce(self) -> None:
        """To the root: the smallest subtrees first, which are also the next in order.

        The root adds up in OUTPUT; others in the slot that arrived, two in turn.
        """
        b, held = self._builder, self._builder.span(0)
        children = list(self._children())
        slots = [b.scratch() for _ in range(min(2, len(children)))]
        for level, child in children:
            received = b.span(0, 1, slots[level % 2])
            b.recv(level, self._rank(child), received)
            result = b.span(0) if self._number == 0 else received
            b.reduce(level, (held, received), result, last=level == self._nsteps - 1)
            held = result
        if self._number > 0:
            b.send(self._level, self._parent, held)

    def scatter(self) -> None:
        """Each subtree's parts go to its top: its own to OUTPUT, the others to slots."""
        buffers = self._subtree_buffers()
        if self._number > 0:
            for span in self._subtree_spans(self._number, self._level, buffers):
                self._builder.recv(self._down(self._level), self._parent, span)
        for level, child in self._children():
            for span in self._subtree_spans(child, level, buffers):
                self._builder.send(self._down(level), self._rank(child), span)

    def gather(self) -> None:
        """Each subtree's parts come together at its top."""
        buffers = self._subtree_buffers()
        for level, child in self._children():
            for span in self._subtree_spans(child, level, buffers):
                self._builder.recv(level, self._rank(child), span)
        if self._number > 0:
            for span in self._subtree_spans(self._number, self._level, buffers):
                self._builder.send(self._level, self._parent, span)

    def _children(self) -> Iterator[tuple[int, int]]:
        """Level and number of each child, from the leaves' level up."""
        for level in range(self._level):
            child = self._number + (1 << level)
            if child < self._nranks:
                yield level, child

    def _subtree_buffers(self) -> tuple[int, int]:
        """Where the parts below this rank are: those up to the last rank, and wrapped ones."""
        if self._number == 0:
            return OUTPUT, OUTPUT
        stop = min(self._number + (1 << self._level), self._nranks)
        holds = self._ranks(self._number + 1, stop)
        before, wrapped = (
            self._builder.scratch(*hold) if hold[0] < hold[1] else OUTPUT for hold in holds
        )
        return before, wrapped

    def _subtree_spans(
        self, number: int, level: int, buffers: tuple[int, int]
    ) -> tuple[Span, Span, Span]:
        """The parts below ``number``: its own, then the others'; both ends split alike."""
        b = self._builder
        stop = min(number + (1 << level), self._nranks)
        before, wrapped = self._ranks(number + 1, stop)
        top = self._rank(number)
        if number == self._number:
            buffer = OUTPUT
        else:
            buffer = buffers[0] if self._root + number < self._nranks else buffers[1]
        return (
            b.span(top, top + 1, buffer),
            b.span(*before, buffers[0]),
            b.span(*wrapped, buffers[1]),
        )

    def _ranks(self, start_: int, stop: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Numbers as two ranges of ranks: up to the last rank, and those that wrap around."""
        low, high, n = start_ + self._root, stop + self._root, self._nranks
        return (min(low, n), min(high, n)), (max(low, n) - n, max(high, n) - n)

    def _rank(self, number: int) -> int:
        return (number + self._root) % self._nranks

    def _down(self, level: int) -> int:
        return self._nsteps - 1 - level

"""Recursive halving and doubling: reduce_scatter by halves, all_gather by doubling.

========================  =======================  =========================================
collective                rounds                   bytes sent by a rank
========================  =======================  =========================================
all_reduce                2 l (+ 2)                2 S (p - 1) / p (+ S around the fold)
reduce_scatter            l (+ 2)                  S (p - 1) / p (+ S, or a part)
all_gather                l (+ 2)                  S (p - 1) / p (+ a part, or S less a part)
========================  =======================  =========================================

n ranks, an array of S bytes, p the largest power of two up to n, l = log2 p; what stands in
brackets applies where n is no power of two (see ``fold``). A step exchanges halves, so a seat's
share is one unit for all_reduce, and the parts of the one or two ranks that it stands for
otherwise.

Roundings: l (+ 1). Order of reduction: at each step the lower seat's half first.

Source: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in
MPICH, 2005.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rawcoll.algorithms.base import Constraints, start
from rawcoll.algorithms.fold import Fold
from rawcoll.schedule.builder import Builder
from rawcoll.schedule.ops import OUTPUT, Span
from rawcoll.schedule.program import Program, Spec


@dataclass(frozen=True, slots=True)
class Halving:
    """See the module. It has no parameters."""

    name: ClassVar[str] = "halving"
    collectives: ClassVar[frozenset[str]] = frozenset(
        {"all_reduce", "reduce_scatter", "all_gather"}
    )
    constraints: ClassVar[Constraints] = Constraints()

    def program(self, spec: Spec) -> Program:
        """See Algorithm."""
        fold = Fold(spec.nranks)
        whole = spec.collective == "all_reduce"
        builder = start(self, spec, fold.size if whole else spec.nranks)
        halves = _Halves(builder, fold)
        match spec.collective:
            case "all_reduce":
                halves.all_reduce()
            case "reduce_scatter":
                halves.reduce_scatter()
            case _:
                halves.all_gather()
        return builder.build()

    def rounds(self, collective: str, nranks: int) -> int:
        """See Algorithm."""
        fold = Fold(nranks)
        return (2 if collective == "all_reduce" else 1) * fold.nsteps + 2 * fold.nrounds

    def fitted(self, nbytes: int, nranks: int) -> Halving:
        """See Algorithm."""
        return self


class _Halves:
    """One rank's part in halving and doubling."""

    def __init__(self, builder: Builder, fold: Fold) -> None:
        self._builder = builder
        self._fold = fold
        self._rank = builder.spec.rank
        self._whole = builder.span(0, builder.nunits)
        self._in_output = builder.spec.collective == "all_reduce"

    def all_reduce(self) -> None:
        """Halve, double, and give the whole result to the ranks that sat out."""
        self._halve()
        self._double(self._fold.nrounds + self._fold.nsteps)
        self._unfold(self._fold.nrounds + 2 * self._fold.nsteps, (self._whole,))

    def reduce_scatter(self) -> None:
        """Halve, and give the ranks that sat out their part."""
        held = self._halve()
        guest = self._rank - self._rank % 2
        buffer = OUTPUT if self._fold.is_out(self._rank) else held
        part = self._builder.span(guest, guest + 1, buffer)
        self._unfold(self._fold.nrounds + self._fold.nsteps, (part,))

    def all_gather(self) -> None:
        """Take in the parts of the ranks that sit out, double, and give them all but their own."""
        fold, b = self._fold, self._builder
        guest = self._rank - self._rank % 2
        if fold.is_out(self._rank):
            b.send(0, self._rank + 1, b.span(guest))
        elif fold.is_host(self._rank):
            b.recv(0, self._rank - 1, b.span(guest))
        self._double(fold.nrounds)
        others = (b.span(0, guest), b.span(guest + 1, b.nunits))
        self._unfold(fold.nrounds + fold.nsteps, others)

    def _halve(self) -> int:
        """Reduce until the seat's share is complete; returns the buffer where it is.

        all_reduce adds up in OUTPUT. reduce_scatter adds up in the slot that a half arrived in
        (two in turn, since the sum is sent on while the next half arrives), and writes OUTPUT only
        at the end.
        """
        fold, b = self._fold, self._builder
        if fold.nranks == 1:
            return OUTPUT
        slots = [b.scratch() for _ in range(1 if self._in_output else 2)]
        held = self._fold_in(slots[0])
        if fold.is_out(self._rank):
            return held
        seat, low, high = fold.seat(self._rank), 0, fold.size
        for step in range(fold.nsteps):
            half = (high - low) // 2
            middle, peer = low + half, seat ^ half
            keep, give = ((low, middle), (middle, high))
            if seat > peer:
                keep, give = give, keep
            # The fold used slot 0, so the first step uses slot 1 where there is one.
            slot = slots[(step + 1) % len(slots)]
            round = fold.nrounds + step
            b.send(round, fold.rank(peer), self._share(*give, held))
            b.recv(round, fold.rank(peer), self._share(*keep, slot))
            order = (held, slot) if seat < peer else (slot, held)
            held = self._reduce(round, self._share(*keep), order, slot, half == 1)
            low, high = keep
        return held

    def _reduce(
        self, round: int, units: Span, order: tuple[int, int], slot: int, last: bool
    ) -> int:
        """Reduce the same units of two buffers; returns where the result is."""
        b = self._builder
        if self._in_output or not last:
            result = OUTPUT if self._in_output else slot
            srcs = [b.span(units.start, units.stop, buffer) for buffer in order]
            b.reduce(round, srcs, b.span(units.start, units.stop, result), last=last)
            return result
        for unit in range(
            units.start, units.stop
        ):  # its own part, and that of the rank that sits out
            result = OUTPUT if unit == self._rank else slot
            srcs = [b.span(unit, unit + 1, buffer) for buffer in order]
            b.reduce(round, srcs, b.span(unit, unit + 1, result), last=True)
        return slot

    def _double(self, first_round: int) -> None:
        """Exchange everything held with a seat twice as far away each step."""
        fold, b = self._fold, self._builder
        if fold.is_out(self._rank):
            return
        seat = fold.seat(self._rank)
        for step in range(fold.nsteps):
            size = 1 << step
            peer, mine = seat ^ size, seat & -size
            theirs = mine ^ size
            b.send(first_round + step, fold.rank(peer), self._share(mine, mine + size))
            b.recv(first_round + step, fold.rank(peer), self._share(theirs, theirs + size))

    def _fold_in(self, slot: int) -> int:
        """Add up the pairs of which one sits out; returns the buffer that the rank goes on with."""
        b, whole = self._builder, self._whole
        if self._fold.is_out(self._rank):
            b.send(0, self._rank + 1, whole)
        if not self._fold.is_host(self._rank):
            return OUTPUT
        received = b.span(0, b.nunits, slot)
        b.recv(0, self._rank - 1, received)
        result = OUTPUT if self._in_output else slot
        b.reduce(0, (received, whole), b.span(0, b.nunits, result))
        return result

    def _unfold(self, round: int, spans: tuple[Span, ...]) -> None:
        for span in spans:
            if self._fold.is_out(self._rank):
                self._builder.recv(round, self._rank + 1, span)
            elif self._fold.is_host(self._rank):
                self._builder.send(round, self._rank - 1, span)

    def _share(self, first: int, stop: int, buffer: int = OUTPUT) -> Span:
        """The units of seats ``[first, stop)``."""
        if self._in_output:
            return self._builder.span(first, stop, buffer)
        parts = self._fold.first_part(first), self._fold.first_part(stop)
        return self._builder.span(*parts, buffer)

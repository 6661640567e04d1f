"""Recursive doubling: few rounds, for small arrays.

========================  =======================  ===========================================
collective                rounds                   bytes sent by a rank
========================  =======================  ===========================================
all_reduce, barrier       floor(log2 n) (+ 2)      S floor(log2 n) (+ S around the fold)
all_gather                ceil(log2 n)             S (n - 1) / n
========================  =======================  ===========================================

n ranks, an array of S bytes; what stands in brackets applies where n is no power of two (see
``fold``). all_gather needs no fold: in step k a rank holds the 2^k parts from its own on, around
the ranks, and sends them to the rank 2^k before it; parts stand in the array's own numbering, so a
message whose parts wrap around is two.

Roundings: floor(log2 n) (+ 1). Order of reduction: a binary tree over the ranks in rank order,
computed alike by every rank. Refused under lossy codecs: ranks would round replicated values
differently.

Source: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in
MPICH, 2005; all_gather after Bruck, Ho, Kipnis, Upfal and Weathersby, Efficient algorithms for
all-to-all communications in multiport message-passing systems, 1997.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rawcoll.algorithms.base import Constraints, start
from rawcoll.algorithms.fold import Fold
from rawcoll.schedule.builder import Builder
from rawcoll.schedule.program import Program, Spec


@dataclass(frozen=True, slots=True)
class Doubling:
    """See the module. It has no parameters."""

    name: ClassVar[str] = "doubling"
    collectives: ClassVar[frozenset[str]] = frozenset({"all_reduce", "all_gather", "barrier"})
    constraints: ClassVar[Constraints] = Constraints()

    def program(self, spec: Spec) -> Program:
        """See Algorithm."""
        gathers = spec.collective == "all_gather"
        builder = start(self, spec, spec.nranks if gathers else 1)
        if gathers:
            _all_gather(builder)
        elif spec.nranks > 1:
            _all_reduce(builder, Fold(spec.nranks))
        return builder.build()

    def rounds(self, collective: str, nranks: int) -> int:
        """See Algorithm."""
        if collective == "all_gather":
            return (nranks - 1).bit_length()
        fold = Fold(nranks)
        return fold.nsteps + 2 * fold.nrounds

    def fitted(self, nbytes: int, nranks: int) -> Doubling:
        """See Algorithm."""
        return self


def _all_reduce(b: Builder, fold: Fold) -> None:
    rank, whole = b.spec.rank, b.span(0)
    end = fold.nrounds + fold.nsteps
    if fold.is_out(rank):
        b.send(0, rank + 1, whole)
        b.recv(end, rank + 1, whole)
        return
    # One slot: a round begins with what the reduction of the round before left in OUTPUT.
    received = b.span(0, 1, b.scratch())
    if fold.is_host(rank):
        b.recv(0, rank - 1, received)
        b.reduce(0, (received, whole), whole)
        b.send(end, rank - 1, whole)
    seat = fold.seat(rank)
    for step in range(fold.nsteps):
        peer = seat ^ 1 << step
        b.send(fold.nrounds + step, fold.rank(peer), whole)
        b.recv(fold.nrounds + step, fold.rank(peer), received)
        srcs = (whole, received) if seat < peer else (received, whole)
        b.reduce(fold.nrounds + step, srcs, whole, last=step == fold.nsteps - 1)


def _all_gather(b: Builder) -> None:
    rank, nranks = b.spec.rank, b.spec.nranks
    for step in range((nranks - 1).bit_length()):
        distance = 1 << step
        count = min(distance, nranks - distance)  # the last step needs what is still missing only
        source = (rank + distance) % nranks
        for begin, stop in _around(rank, count, nranks):
            b.send(step, (rank - distance) % nranks, b.span(begin, stop))
        for begin, stop in _around(source, count, nranks):
            b.recv(step, source, b.span(begin, stop))


def _around(first: int, count: int, nranks: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Parts ``first`` to ``first + count`` around the ranks: two ranges, the second often empty."""
    return (first, min(first + count, nranks)), (0, max(first + count - nranks, 0))

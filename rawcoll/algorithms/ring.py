"""Ring: each rank talks to two neighbours only.

========================  ==================  =======================
collective                rounds              bytes sent by a rank
========================  ==================  =======================
all_reduce                2 (n - 1) s         2 S (n - 1) / n
reduce_scatter            (n - 1) s           S (n - 1) / n
all_gather                (n - 1) s           S (n - 1) / n
broadcast                 n s + n - 2         S (the last of the chain: 0)
========================  ==================  =======================

n ranks, an array of S bytes, s segments. Each rank's block is cut into s segments; step t of
segment j is round ``t s + j``, so that the reduction of one segment runs beside the transfer of the
next ones. broadcast is a chain that starts at the root and carries the same n s pieces one after
another.

Roundings: n - 1. Order of reduction: the block of the rank at position p of the ring is added up
from position p + 1 onwards, around to p. The bits depend on ``order``, not on ``segments`` as long
as the partition puts an element into the same block.

Source: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations,
2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from rawcoll.algorithms.base import Constraints, check_at_least_one, check_permutation, start
from rawcoll.algorithms.fitting import fitted_segments
from rawcoll.schedule.builder import Builder
from rawcoll.schedule.ops import OUTPUT, Span
from rawcoll.schedule.program import Program, Spec


@dataclass(frozen=True, slots=True)
class Ring:
    """See the module.

    Attributes:
        segments: into how many segments each rank's block is cut; None: by size.
        order: the ranks around the ring; None: 0, 1, 2, ...
    """

    segments: int | None = None
    order: tuple[int, ...] | None = None

    name: ClassVar[str] = "ring"
    collectives: ClassVar[frozenset[str]] = frozenset(
        {"all_reduce", "reduce_scatter", "all_gather", "broadcast"}
    )

    def __post_init__(self) -> None:
        check_at_least_one("segments", self.segments)
        if self.order is not None:
            check_permutation("order", self.order)

    @property
    def constraints(self) -> Constraints:
        """An order is for exactly as many ranks as it names."""
        if self.order is None:
            return Constraints()
        return Constraints(min_ranks=len(self.order), max_ranks=len(self.order))

    def program(self, spec: Spec) -> Program:
        """See Algorithm."""
        segments = self.segments or 1
        builder = start(self, spec, spec.nranks * segments)
        order = range(spec.nranks) if self.order is None else self.order
        ring = _Ring(builder, order, segments)
        match spec.collective:
            case "all_reduce":
                ring.reduce_scatter(in_output=True)
                ring.all_gather(first_round=ring.nsteps * segments)
            case "reduce_scatter":
                ring.reduce_scatter(in_output=False)
            case "all_gather":
                ring.all_gather(first_round=0)
            case _:
                ring.broadcast()
        return builder.build()

    def rounds(self, collective: str, nranks: int) -> int:
        """See Algorithm."""
        segments = self.segments or 1
        match collective:
            case "all_reduce":
                return 2 * (nranks - 1) * segments
            case "broadcast":
                return nranks * segments + nranks - 2 if nranks > 1 else 0
            case _:
                return (nranks - 1) * segments

    def fitted(self, nbytes: int, nranks: int) -> Ring:
        """See Algorithm."""
        if self.segments is not None:
            return self
        return replace(self, segments=fitted_segments(nbytes // nranks))


class _Ring:
    """One rank's view of the ring; a block is named by the position of the rank that owns it."""

    def __init__(self, builder: Builder, order: Sequence[int], segments: int) -> None:
        self._builder = builder
        self._order = order
        self._nranks = len(order)
        self._segments = segments
        self._position = order.index(builder.spec.rank)
        self._next = order[(self._position + 1) % self._nranks]
        self._previous = order[self._position - 1]
        self.nsteps = self._nranks - 1

    def reduce_scatter(self, *, in_output: bool) -> None:
        """Each block starts behind its owner and gathers one contribution a step until it is there.

        ``in_output`` adds up in OUTPUT; otherwise in the slot that a segment arrived in, and only
        the rank's own block is written to OUTPUT.
        """
        # In OUTPUT, a slot is free once its reduction has read it: two serve in turn. A sum in a
        # slot leaves s rounds after it arrived, and is overwritten a round later.
        nslots = min(2, self._segments) if in_output else self._segments + 1
        nslots = min(nslots, self.nsteps * self._segments)
        slots = [self._builder.scratch() for _ in range(nslots)]
        for step in range(self.nsteps):
            for segment in range(self._segments):
                round = step * self._segments + segment
                held = OUTPUT
                if step > 0 and not in_output:
                    held = slots[(round - self._segments) % nslots]
                arriving = self._position - step - 2
                received = self._block(arriving, segment, slots[round % nslots])
                own = self._block(arriving, segment)
                last = step == self.nsteps - 1  # then the block that arrives is the rank's own
                self._exchange(round, self._block(arriving + 1, segment, held), received)
                result = own if in_output or last else received
                self._builder.reduce(round, (received, own), result, last=last)

    def all_gather(self, first_round: int) -> None:
        """Each block starts at its owner and moves on one rank a step."""
        for step in range(self.nsteps):
            for segment in range(self._segments):
                round = first_round + step * self._segments + segment
                leaving = self._position - step
                self._exchange(
                    round, self._block(leaving, segment), self._block(leaving - 1, segment)
                )

    def broadcast(self) -> None:
        """The rank at distance d from the root receives piece i in round ``i + d - 1``."""
        root = self._order.index(self._builder.spec.root)
        distance = (self._position - root) % self._nranks
        for piece in range(self._builder.nunits):
            span = self._builder.span(piece)
            if distance > 0:
                self._builder.recv(piece + distance - 1, self._previous, span)
            if distance < self._nranks - 1:  # the last of the chain passes nothing on
                self._builder.send(piece + distance, self._next, span)

    def _exchange(self, round: int, leaving: Span, arriving: Span) -> None:
        self._builder.send(round, self._next, leaving)
        self._builder.recv(round, self._previous, arriving)

    def _block(self, position: int, segment: int, buffer: int = OUTPUT) -> Span:
        unit = self._order[position % self._nranks] * self._segments + segment
        return self._builder.span(unit, unit + 1, buffer)

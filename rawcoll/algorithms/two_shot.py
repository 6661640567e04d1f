"""Two shots: all-to-all, one local reduction, all-gather.

========================  ===========================================  =======================
collective                rounds                                       bytes sent by a rank
========================  ===========================================  =======================
all_reduce                2 for one segment, s + lag for more          2 S (n - 1) / n
========================  ===========================================  =======================

n ranks, an array of S bytes, s segments. The array is cut into s contiguous slices and each slice
into n parts. Slice i is scattered in round i and reduced after it; its results are gathered in
round ``i + lag``, so that a reduction runs beside the scatter of the next slices. A round's scatter
and gather are one transfer.

Roundings: 1 (2 under a lossy codec). Order of reduction: rank order for every element, so the bits
do not depend on ``segments``. Scratch: 2 (n - 1) slots of one part of a slice.

Source: the reduce-scatter and all-gather of Rabenseifner, with both halves direct.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final

from rawcoll.algorithms.base import Constraints, check_at_least_one, start
from rawcoll.algorithms.fitting import fitted_segments
from rawcoll.schedule.builder import Builder
from rawcoll.schedule.ops import OUTPUT
from rawcoll.schedule.program import Program, Spec

GATHER_LAG: Final = 2
"""Rounds from the scatter of a slice to its gather, where there are several slices."""

NBUFFERS: Final = 2
"""Slices that may wait in scratch at a time: one that is reduced, one that arrives."""


@dataclass(frozen=True, slots=True)
class TwoShot:
    """See the module.

    Attributes:
        segments: number of slices; None: by size.
    """

    segments: int | None = None

    name: ClassVar[str] = "two_shot"
    collectives: ClassVar[frozenset[str]] = frozenset({"all_reduce"})
    constraints: ClassVar[Constraints] = Constraints()

    def __post_init__(self) -> None:
        check_at_least_one("segments", self.segments)

    def program(self, spec: Spec) -> Program:
        """See Algorithm."""
        segments = self.segments or 1
        builder = start(self, spec, spec.nranks * segments)
        if spec.nranks > 1:
            slots = _slots(builder, min(segments, NBUFFERS))
            for segment in range(segments):
                _scatter(builder, segment, slots[segment % len(slots)])
                _gather(builder, segment, segment + _lag(segments))
        return builder.build()

    def rounds(self, collective: str, nranks: int) -> int:
        """See Algorithm."""
        segments = self.segments or 1
        return segments + _lag(segments) if nranks > 1 else 0

    def fitted(self, nbytes: int, nranks: int) -> TwoShot:
        """See Algorithm."""
        if self.segments is not None:
            return self
        return replace(self, segments=fitted_segments(nbytes // nranks))


def _lag(segments: int) -> int:
    return 1 if segments == 1 else GATHER_LAG


def _slots(b: Builder, nbuffers: int) -> list[dict[int, int]]:
    """For each slice in flight, where each rank's contribution is."""
    rank, nranks = b.spec.rank, b.spec.nranks
    return [
        {peer: OUTPUT if peer == rank else b.scratch() for peer in range(nranks)}
        for _ in range(nbuffers)
    ]


def _scatter(b: Builder, segment: int, slots: dict[int, int]) -> None:
    """In round ``segment``, each rank receives its part of the slice from all, and reduces it."""
    rank, nranks = b.spec.rank, b.spec.nranks
    first = segment * nranks
    own = first + rank
    for distance in range(1, nranks):
        to, source = (rank + distance) % nranks, (rank - distance) % nranks
        b.send(segment, to, b.span(first + to))
        b.recv(segment, source, b.span(own, own + 1, slots[source]))
    srcs = [b.span(own, own + 1, slots[peer]) for peer in range(nranks)]
    b.reduce(segment, srcs, b.span(own), last=True)


def _gather(b: Builder, segment: int, round: int) -> None:
    """In ``round``, each rank gives its part of the slice to all."""
    rank, nranks = b.spec.rank, b.spec.nranks
    first = segment * nranks
    for distance in range(1, nranks):
        to, source = (rank + distance) % nranks, (rank - distance) % nranks
        b.send(round, to, b.span(first + rank))
        b.recv(round, source, b.span(first + source))

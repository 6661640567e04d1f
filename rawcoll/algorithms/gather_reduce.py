"""Gather, then reduce: any all_gather, and one local reduction of everything.

========================  =======================  =================================
collective                rounds                   bytes sent by a rank
========================  =======================  =================================
all_reduce                those of the gather      n times those of the gather
========================  =======================  =================================

The all_gather moves n arrays of S bytes: with ``ring`` n - 1 rounds and S (n - 1) bytes sent by a
rank. Every rank computes every element, so nothing is sent after the reduction: the choice for
codecs whose sums leave the format.

Roundings: 1. Order of reduction: rank order. Scratch: n - 1 slots of S bytes.

Source: folklore; as in SparCML (Renggli et al., 2019) for sparse vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from rawcoll.algorithms.base import Algorithm, Constraints, start
from rawcoll.algorithms.ring import Ring
from rawcoll.schedule.ops import OUTPUT
from rawcoll.schedule.program import Program, Spec


@dataclass(frozen=True, slots=True)
class GatherReduce:
    """See the module.

    Attributes:
        gather: any algorithm that offers all_gather.
    """

    gather: Algorithm = field(default_factory=Ring)

    name: ClassVar[str] = "gather_reduce"
    collectives: ClassVar[frozenset[str]] = frozenset({"all_reduce"})

    @property
    def constraints(self) -> Constraints:
        """Those of the gather."""
        return self.gather.constraints

    def program(self, spec: Spec) -> Program:
        """See Algorithm."""
        rank, nranks = spec.rank, spec.nranks
        gather = self.gather.program(Spec("all_gather", rank, nranks))
        width = gather.nunits // nranks
        b = start(self, spec, width)
        if nranks > 1:
            # The gather's part r is the whole array as rank r has it. A slot holds all of it from
            # the start, since a gather may bring it piece by piece.
            buffers = [OUTPUT if peer == rank else b.scratch(0, width) for peer in range(nranks)]
            place = [(buffer, unit) for buffer in buffers for unit in range(width)]
            b.include(gather, place=place)
            srcs = [b.span(0, width, buffer) for buffer in buffers]
            b.reduce(self.rounds("all_reduce", nranks) - 1, srcs, b.span(0, width), last=True)
        return b.build()

    def rounds(self, collective: str, nranks: int) -> int:
        """See Algorithm."""
        return self.gather.rounds("all_gather", nranks)

    def fitted(self, nbytes: int, nranks: int) -> GatherReduce:
        """See Algorithm. The gather's array is that of all ranks together."""
        return replace(self, gather=self.gather.fitted(nbytes * nranks, nranks))

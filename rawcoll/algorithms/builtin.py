"""Builtin: the collective of the library below (NCCL, MPI), as one step.

One round, whatever that library does in it. For comparison, as a choice of its own, and across the
nodes of a hierarchy. Bits, roundings and order of reduction are that library's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rawcoll.algorithms.base import Constraints, check_fits, start
from rawcoll.schedule.collectives import COLLECTIVES, units_after, units_before
from rawcoll.schedule.ops import INPUT, OUTPUT, Span
from rawcoll.schedule.program import Program, Spec


@dataclass(frozen=True, slots=True)
class Builtin:
    """See the module. It has no parameters."""

    name: ClassVar[str] = "builtin"
    collectives: ClassVar[frozenset[str]] = frozenset(COLLECTIVES)
    constraints: ClassVar[Constraints] = Constraints()

    def program(self, spec: Spec) -> Program:
        """See Algorithm."""
        check_fits(self, spec)
        collective = COLLECTIVES[spec.collective]
        nunits = spec.nranks if collective.parts else 1
        in_place = spec.collective != "all_to_all"
        b = start(self, spec, nunits, in_place=in_place)
        src = _span(units_before(spec, nunits), OUTPUT if in_place else INPUT)
        dst = _span(units_after(spec, nunits), OUTPUT)
        ranks = tuple(range(spec.nranks))
        last = collective.reduces
        b.native(0, spec.collective, ranks, src, dst, root=spec.root, last=last)
        return b.build()

    def rounds(self, collective: str, nranks: int) -> int:
        """See Algorithm."""
        return 1

    def fitted(self, nbytes: int, nranks: int) -> Builtin:
        """See Algorithm."""
        return self


def _span(units: tuple[int, int], buffer: int) -> Span | None:
    first, stop = units
    return Span(buffer, first, stop) if first < stop else None

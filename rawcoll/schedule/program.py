"""Programs (one rank), schedules (all ranks) and partitions (units to elements).

Owns the containers of actions and the rule that maps units to elements. Knows no array and no type
beyond an element count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from rawcoll.errors import InvalidArgument
from rawcoll.schedule.ops import SCRATCH, Step, writes_of


@dataclass(frozen=True, slots=True)
class Spec:
    """What a program is for: the collective, and this rank's place in it.

    ``root`` is 0 where the collective has none.
    """

    collective: str
    rank: int
    nranks: int
    root: int = 0


@dataclass(frozen=True, slots=True)
class Hold:
    """The units ``[start, stop)`` that a scratch slot holds before its first write (often none).

    A later write outside the units that a slot holds makes it hold exactly what was written; a
    write inside leaves them as they are. A slot is as large as the largest range that it ever
    holds.
    """

    start: int = 0
    stop: int = 0

    def contains(self, start: int, stop: int) -> bool:
        """Whether ``[start, stop)`` lies inside."""
        return self.start <= start and stop <= self.stop

    def after_write(self, start: int, stop: int) -> Hold:
        """What the slot holds after a write of ``[start, stop)``."""
        return self if self.contains(start, stop) else Hold(start, stop)


@dataclass(frozen=True, slots=True)
class Program:
    """What one rank does.

    Attributes:
        spec: collective and rank.
        nunits: units of the whole array.
        steps: in index order, which is also the order of the transfers on the wire.
        scratch: initial hold of each slot.
        in_place: whether the rank's input stands in OUTPUT at the start (as builders write it), or
            in
            INPUT.
    """

    spec: Spec
    nunits: int
    steps: tuple[Step, ...]
    scratch: tuple[Hold, ...]
    in_place: bool = True


@dataclass(frozen=True, slots=True)
class Schedule:
    """The programs of all ranks, in rank order: for checking, showing and tests."""

    programs: tuple[Program, ...]

    @property
    def nranks(self) -> int:
        """How many ranks the schedule has."""
        return len(self.programs)


@dataclass(frozen=True, slots=True)
class Partition:
    """Units to elements: unit u is elements ``[boundaries[u], boundaries[u + 1])`` of the array."""

    boundaries: tuple[int, ...]

    @property
    def nunits(self) -> int:
        """How many units there are."""
        return len(self.boundaries) - 1

    @property
    def count(self) -> int:
        """How many elements there are."""
        return self.boundaries[-1]

    def elements(self, start: int, stop: int) -> int:
        """How many elements units ``[start, stop)`` have."""
        return self.boundaries[stop] - self.boundaries[start]

    @classmethod
    def balanced(cls, count: int, nunits: int, align: int = 1) -> Partition:
        """``count`` elements over ``nunits`` units, as equal as boundaries at ``align`` allow."""
        return cls(tuple(_cuts(count, nunits, align)))

    @classmethod
    def by_counts(cls, counts: Sequence[int], nunits: int, align: int = 1) -> Partition:
        """A part a rank, ``counts[r]`` elements long, each cut into ``nunits / len(counts)``.

        Raises:
            InvalidArgument: ``nunits`` is not a multiple of the number of parts.
        """
        per_part, rest = divmod(nunits, len(counts))
        if rest:
            raise InvalidArgument(
                f"nunits: does not divide: found {nunits}, expected a multiple of {len(counts)}"
            )
        starts = accumulate(counts, initial=0)
        boundaries = [0]
        for start, count in zip(starts, counts, strict=False):
            boundaries += [start + cut for cut in _cuts(count, per_part, align)[1:]]
        return cls(tuple(boundaries))


def slot_sizes(program: Program, offsets: Sequence[int]) -> list[int]:
    """How large each scratch slot has to be: as the largest range that it ever holds.

    Args:
        program: what one rank does.
        offsets: where each unit starts, and the last one ends: bytes, elements or units.
    """
    holds = list(program.scratch)
    sizes = [offsets[hold.stop] - offsets[hold.start] for hold in holds]
    for step in program.steps:
        for span in writes_of(step.action):
            if span.buffer >= SCRATCH:
                slot = span.buffer - SCRATCH
                holds[slot] = hold = holds[slot].after_write(span.start, span.stop)
                sizes[slot] = max(sizes[slot], offsets[hold.stop] - offsets[hold.start])
    return sizes


def _cuts(count: int, nunits: int, align: int) -> list[int]:
    """``nunits + 1`` boundaries of ``[0, count)``: equal shares of whole blocks of ``align``."""
    nblocks = -(-count // align)
    return (
        [min(count, (nblocks * i // nunits) * align) for i in range(nunits + 1)] if nunits else [0]
    )

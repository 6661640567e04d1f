"""Which elements the caller's buffers hold, and how a collective's array is cut.

Owns the step from units to elements: the partition of each buffer, and the first element that a buffer's
memory stands for (a rank's part of a gathered array begins in the middle of the whole).
"""

from __future__ import annotations

from dataclasses import dataclass

from rawcoll.device.host import ALIGNMENT
from rawcoll.schedule.collectives import collective_of, units_after, units_before
from rawcoll.schedule.ops import INPUT, OUTPUT
from rawcoll.schedule.program import Partition, Program


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a call, the same on all ranks but for all_to_all.

    Attributes:
        count: elements of the whole array.
        parts: elements of each rank's part, where the collective has parts; for all_to_all of this
            rank's source.
        dst_parts: for all_to_all, the elements from each rank in the destination.
    """

    count: int
    parts: tuple[int, ...] = ()
    dst_parts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each unit is, in elements, in each buffer of one rank.

    Attributes:
        partitions: of INPUT and of OUTPUT (they differ for all_to_all only).
        origins: the element at which the memory of INPUT and of OUTPUT begins.
    """

    partitions: tuple[Partition, Partition]
    origins: tuple[int, int]

    def partition(self, buffer: int) -> Partition:
        """The partition of a buffer; scratch is numbered like OUTPUT."""
        return self.partitions[INPUT if buffer == INPUT else OUTPUT]


def layout_of(program: Program, sizes: Sizes, itemsize: int) -> Layout:
    """The layout of one rank's buffers for a call.

    Raises:
        InvalidArgument: the program's units do not divide into the ranks' parts.
    """
    align = max(1, ALIGNMENT // itemsize)
    nunits = program.nunits
    if not collective_of(program.spec.collective).parts:
        partition = Partition.balanced(sizes.count, nunits, align)
        source = destination = partition
    else:
        source = Partition.by_counts(sizes.parts, nunits, align)
        destination = (
            Partition.by_counts(sizes.dst_parts, nunits, align) if sizes.dst_parts else source
        )
    return Layout((source, destination), _origins(program, source, destination))


def _origins(program: Program, source: Partition, destination: Partition) -> tuple[int, int]:
    before = units_before(program.spec, program.nunits)
    after = units_after(program.spec, program.nunits)
    if not program.in_place:
        return source.boundaries[before[0]], destination.boundaries[after[0]]
    first = min((span[0] for span in (before, after) if span[0] < span[1]), default=0)
    return 0, destination.boundaries[first]

"""What each collective starts from and must end with, in units.

Owns the pre- and postconditions: which units of the array a rank holds at the start, and which it
must hold at the end. Everything that depends on the meaning of a collective (the check, the
out-of-place pass, the sizes of a caller's arrays) reads it here.

The array is numbered as a whole: for all_gather, reduce_scatter, gather and scatter unit numbers
run over all ranks' parts, and rank r's part is ``[r * k, (r + 1) * k)`` with ``k = nunits /
nranks``. all_to_all alone numbers its two arrays apart: INPUT by destination, OUTPUT by source.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from rawcoll.errors import unknown_name
from rawcoll.schedule.program import Spec


class Extent(Enum):
    """Which units of the array a rank's buffer holds."""

    WHOLE = "whole"
    PART = "part"
    ROOT_WHOLE = "whole at the root, nothing elsewhere"


@dataclass(frozen=True, slots=True)
class Collective:
    """Pre- and postcondition of one collective.

    Attributes:
        name: the name in the public API.
        before: the units that a rank's input has.
        after: the units that a rank's result has.
        reduces: whether contributions are combined.
        rooted: whether ``root`` has a meaning.
    """

    name: str
    before: Extent
    after: Extent
    reduces: bool
    rooted: bool

    @property
    def parts(self) -> bool:
        """Whether the array is cut into one part a rank."""
        return Extent.PART in (self.before, self.after) or self.name == "all_to_all"


COLLECTIVES: Final = {
    collective.name: collective
    for collective in (
        Collective("all_reduce", Extent.WHOLE, Extent.WHOLE, reduces=True, rooted=False),
        Collective("reduce", Extent.WHOLE, Extent.ROOT_WHOLE, reduces=True, rooted=True),
        Collective("broadcast", Extent.ROOT_WHOLE, Extent.WHOLE, reduces=False, rooted=True),
        Collective("all_gather", Extent.PART, Extent.WHOLE, reduces=False, rooted=False),
        Collective("reduce_scatter", Extent.WHOLE, Extent.PART, reduces=True, rooted=False),
        Collective("gather", Extent.PART, Extent.ROOT_WHOLE, reduces=False, rooted=True),
        Collective("scatter", Extent.ROOT_WHOLE, Extent.PART, reduces=False, rooted=True),
        Collective("all_to_all", Extent.WHOLE, Extent.WHOLE, reduces=False, rooted=False),
        Collective("barrier", Extent.WHOLE, Extent.WHOLE, reduces=True, rooted=False),
    )
}


def collective_of(name: str) -> Collective:
    """The collective called ``name``; InvalidArgument lists the known names."""
    try:
        return COLLECTIVES[name]
    except KeyError:
        raise unknown_name("collective", name, COLLECTIVES) from None


def part_of(rank: int, nranks: int, nunits: int) -> tuple[int, int]:
    """The units of one rank's part."""
    width = nunits // nranks
    return rank * width, (rank + 1) * width


def _units(extent: Extent, spec: Spec, nunits: int) -> tuple[int, int]:
    match extent:
        case Extent.WHOLE:
            return 0, nunits
        case Extent.PART:
            return part_of(spec.rank, spec.nranks, nunits)
        case Extent.ROOT_WHOLE:
            return (0, nunits) if spec.rank == spec.root else (0, 0)


def units_before(spec: Spec, nunits: int) -> tuple[int, int]:
    """The units ``[start, stop)`` that this rank's input holds."""
    return _units(collective_of(spec.collective).before, spec, nunits)


def units_after(spec: Spec, nunits: int) -> tuple[int, int]:
    """The units ``[start, stop)`` that this rank must hold at the end; it may write no others."""
    return _units(collective_of(spec.collective).after, spec, nunits)

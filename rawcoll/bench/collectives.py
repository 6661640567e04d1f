"""What nccl-tests measures: for each collective its counts, its bus-bandwidth factor and its names.

Owns the definitions of nccl-tests' table (``src/*.cu`` and ``doc/PERFORMANCE.md`` there). Knows
nothing of arrays or communicators.

Terms: *size* is the larger of the bytes that one rank passes in and gets out; *count* the elements
that the call is given, for collectives over parts those of one part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rawcoll.errors import unknown_name

# nccl-tests cuts parts at multiples of this, so that every rank's part is equally aligned.
PART_ALIGNMENT_NBYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Counts:
    """Elements of one measurement: of the call, of a rank's input and of its output."""

    count: int
    send: int
    recv: int

    @property
    def largest(self) -> int:
        """Elements that the larger of the two arrays has."""
        return max(self.send, self.recv)


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective as nccl-tests sees it.

    Attributes:
        name: the communicator's method.
        program: nccl-tests' program that measures it.
        reduces: whether it takes a reduction.
        rooted: whether it takes a root.
        parts_in: whether a rank's input is one part of the whole.
        parts_out: whether a rank's output is one part of the whole.
        parts: whether the whole is cut into one part a rank at all.
        in_place: whether input and output may be one memory. Where not, nccl-tests still fills the
            in-place columns, without checking; here they repeat the out-of-place measurement.
        busbw_rounds: bus bandwidth is algorithm bandwidth times this, times (n-1)/n; 0: times 1.
        redop: what the table says where the collective does not reduce.
    """

    name: str
    program: str
    reduces: bool = False
    rooted: bool = False
    parts: bool = False
    parts_in: bool = False
    parts_out: bool = False
    in_place: bool = True
    busbw_rounds: int = 0
    redop: str = "none"

    def counts(self, nbytes: int, itemsize: int, nranks: int) -> Counts:
        """The elements that ``nbytes`` on the command line stand for."""
        elements = nbytes // itemsize
        if not self.parts:
            return Counts(elements, elements, elements)
        align = max(1, PART_ALIGNMENT_NBYTES // itemsize)
        part = elements // nranks // align * align
        whole = part * nranks
        return Counts(part, part if self.parts_in else whole, part if self.parts_out else whole)

    def busbw_factor(self, nranks: int) -> float:
        """Bus bandwidth over algorithm bandwidth."""
        return self.busbw_rounds * (nranks - 1) / nranks if self.busbw_rounds else 1.0


COLLECTIVES: Final = {
    collective.name: collective
    for collective in (
        Collective("all_reduce", "all_reduce_perf", reduces=True, busbw_rounds=2),
        Collective("all_gather", "all_gather_perf", parts=True, parts_in=True, busbw_rounds=1),
        Collective(
            "reduce_scatter",
            "reduce_scatter_perf",
            reduces=True,
            parts=True,
            parts_out=True,
            busbw_rounds=1,
        ),
        Collective("broadcast", "broadcast_perf", rooted=True),
        Collective("reduce", "reduce_perf", reduces=True, rooted=True),
        Collective("all_to_all", "alltoall_perf", parts=True, in_place=False, busbw_rounds=1),
        Collective(
            "gather",
            "gather_perf",
            rooted=True,
            parts=True,
            parts_in=True,
            in_place=False,
            busbw_rounds=1,
        ),
        Collective(
            "scatter",
            "scatter_perf",
            rooted=True,
            parts=True,
            parts_out=True,
            in_place=False,
            busbw_rounds=1,
        ),
        # nccl-tests prints the reduction here although nothing is reduced.
        Collective("sendrecv", "sendrecv_perf", in_place=False, redop="sum"),
    )
}

# nccl-tests' own spelling of a name, where it differs.
ALIASES: Final = {"alltoall": "all_to_all"}


def collective_of(name: str) -> Collective:
    """The collective called ``name``; InvalidArgument lists the known names."""
    try:
        return COLLECTIVES[ALIASES.get(name, name)]
    except KeyError:
        raise unknown_name("collective", name, COLLECTIVES) from None

"""A plan: a table with the element type, the operation and the kernels that run it.

Bound to sizes and types, not to arrays: one plan serves every call of the same values.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from rawcoll.device.host import ALIGNMENT
from rawcoll.executor.table import Kernel, LocalRow, NativeRow, Table
from rawcoll.kernels.protocol import Kernels
from rawcoll.transport.base import NativeCall
from rawcoll.types import DType, Op

Bases = list[int]
"""Address of each slot: INPUT, OUTPUT, then scratch."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one rank executes for calls of one kind.

    Attributes:
        collective: name, for messages.
        table: the operations.
        dtype, op: of the call.
        nranks: the divisor of an average.
        offsets: where each scratch slot begins in the block that holds them all.
        scratch_nbytes: size of that block.
    """

    collective: str
    table: Table
    dtype: DType
    op: Op
    nranks: int
    offsets: tuple[int, ...]
    scratch_nbytes: int

    @classmethod
    def of(cls, collective: str, table: Table, dtype: DType, op: Op, nranks: int) -> Plan:
        """The plan of a table."""
        padded = [-(-nbytes // ALIGNMENT) * ALIGNMENT for nbytes in table.scratch_nbytes]
        *offsets, total = accumulate(padded, initial=0)
        return cls(collective, table, dtype, op, nranks, tuple(offsets), total)

    def bases(self, src: int, dst: int, scratch: int) -> Bases:
        """Addresses of all slots, for the caller's arrays and a block of scratch."""
        return [src, dst, *[scratch + offset for offset in self.offsets]]

    def run_local(self, row: LocalRow, bases: Bases, kernels: Kernels) -> None:
        """Run one kernel now, on the calling thread."""
        slot, offset = row.dst
        dst = bases[slot] + offset
        srcs = tuple([bases[slot] + offset for slot, offset in row.srcs])
        if row.kernel == Kernel.COPY:
            kernels.copy(dst, srcs[0], row.count * self.dtype.itemsize)
            return
        average = self.op is Op.AVG
        kernels.reduce(
            Op.SUM if average else self.op,
            self.dtype.code,
            dst,
            srcs,
            row.count,
            self.nranks if average and row.kernel == Kernel.REDUCE_LAST else 1,
        )

    def native_call(self, row: NativeRow, bases: Bases) -> NativeCall:
        """The collective of the library below that a row stands for."""
        average = self.op is Op.AVG
        return NativeCall(
            row.collective,
            row.ranks,
            row.root,
            0 if row.src is None else bases[row.src[0]] + row.src[1],
            0 if row.dst is None else bases[row.dst[0]] + row.dst[1],
            row.src_counts,
            row.dst_counts,
            self.dtype,
            Op.SUM if average else self.op,
            self.nranks if average and row.last else 1,
        )

"""A plan: a table with the element type, the operation and the kernels that run it.

Bound to sizes and types, not to arrays: one plan serves every call of the same values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from rawcoll.device.host import ALIGNMENT
from rawcoll.executor.native import native_table
from rawcoll.executor.table import Kernel, LocalRow, NativeRow, Table
from rawcoll.kernels.protocol import Kernels
from rawcoll.transport.base import NativeCall
from rawcoll.types import DType, Op

if TYPE_CHECKING:
    from rawcoll.native import _native

_COPY: Final = Kernel.COPY
_REDUCE_LAST: Final = Kernel.REDUCE_LAST
"""By their own names: looking a member up in its enumeration costs as much as a small kernel."""

Bases = list[int]
"""Address of each slot: INPUT, OUTPUT, then scratch."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one rank executes for calls of one kind.

    Attributes:
        collective: name, for messages.
        table: the operations.
        dtype: of the call.
        op: what reductions compute; a sum for an average.
        divisor: what the last reduction divides by: the number of ranks for an average, else 1.
        offsets: where each scratch slot begins in the block that holds them all.
        scratch_nbytes: size of that block.
        native: the table for native code, or None where it has to be walked in Python.
    """

    collective: str
    table: Table
    dtype: DType
    op: Op
    divisor: int
    offsets: tuple[int, ...]
    scratch_nbytes: int
    native: _native.Table | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, collective: str, table: Table, dtype: DType, op: Op, nranks: int) -> Plan:
        """The plan of a table."""
        padded = [-(-nbytes // ALIGNMENT) * ALIGNMENT for nbytes in table.scratch_nbytes]
        *offsets, total = accumulate(padded, initial=0)
        op, divisor = (Op.SUM, nranks) if op is Op.AVG else (op, 1)
        native = native_table(table, dtype, op, divisor)
        return cls(collective, table, dtype, op, divisor, tuple(offsets), total, native)

    def bases(self, src: int, dst: int, scratch: int) -> Bases:
        """Addresses of all slots, for the caller's arrays and a block of scratch."""
        return [src, dst, *[scratch + offset for offset in self.offsets]]

    def run_local(self, row: LocalRow, bases: Bases, kernels: Kernels) -> None:
        """Run one kernel now, on the calling thread."""
        slot, offset = row.dst
        dst = bases[slot] + offset
        srcs = tuple([bases[slot] + offset for slot, offset in row.srcs])
        if row.kernel is _COPY:
            kernels.copy(dst, srcs[0], row.count * self.dtype.itemsize)
            return
        divisor = self.divisor if row.kernel is _REDUCE_LAST else 1
        kernels.reduce(self.op, self.dtype.code, dst, srcs, row.count, divisor)

    def native_call(self, row: NativeRow, bases: Bases) -> NativeCall:
        """The collective of the library below that a row stands for."""
        return NativeCall(
            row.collective,
            row.ranks,
            row.root,
            0 if row.src is None else bases[row.src[0]] + row.src[1],
            0 if row.dst is None else bases[row.dst[0]] + row.dst[1],
            row.src_counts,
            row.dst_counts,
            self.dtype,
            self.op,
            self.divisor if row.last else 1,
        )

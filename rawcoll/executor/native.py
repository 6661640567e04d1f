"""A plan's table as native code walks it: the same rows, without the interpreter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rawcoll.executor.table import Table
from rawcoll.types import DType, Op

if TYPE_CHECKING:
    from rawcoll.native import _native


def native_table(table: Table, dtype: DType, op: Op, divisor: int) -> _native.Table | None:
    """``rawcoll.native._native.Table``; None without the extension.

    None also where the library below has a part in the table: its collectives are called from Python.
    """
    if table.has_native:
        return None
    try:
        from rawcoll.native import _native
    except ImportError:
        return None
    wire = [
        (row.need, row.round, row.sends, row.recvs, sorted(row.lent), row.early, row.release)
        for row in table.wire
    ]
    local = [(row.need, int(row.kernel), row.dst, row.srcs, row.count) for row in table.local]
    return _native.table(wire, local, int(op), dtype.code, divisor)

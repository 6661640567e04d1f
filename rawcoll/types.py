"""Element types and reduction operations: their names, codes and sizes.

Owns the one table that the kernels, the transports and the command line share. The codes are those of
``native/include/rawcoll/types.h``. Knows nothing of arrays, numpy or any library's own type objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from rawcoll.errors import unknown_name


class Kind(IntEnum):
    """Family of an element type."""

    INT = 0
    UINT = 1
    FLOAT = 2


@dataclass(frozen=True, slots=True)
class DType:
    """One element type: numpy's name for it, the code that kernels know it by, and its size."""

    name: str
    code: int
    itemsize: int
    kind: Kind

    def __hash__(self) -> int:
        """Quick, since every call looks its plan up."""
        return self.code


class Op(IntEnum):
    """What a Reduce computes. AVG adds, and divides by the number of ranks in the last reduction."""

    SUM = 0
    PROD = 1
    MIN = 2
    MAX = 3
    AVG = 4

    __hash__ = int.__hash__


DTYPES: Final = {
    dtype.name: dtype
    for dtype in (
        DType("int8", 0, 1, Kind.INT),
        DType("int16", 1, 2, Kind.INT),
        DType("int32", 2, 4, Kind.INT),
        DType("int64", 3, 8, Kind.INT),
        DType("uint8", 4, 1, Kind.UINT),
        DType("uint16", 5, 2, Kind.UINT),
        DType("uint32", 6, 4, Kind.UINT),
        DType("uint64", 7, 8, Kind.UINT),
        DType("float16", 8, 2, Kind.FLOAT),
        DType("bfloat16", 9, 2, Kind.FLOAT),
        DType("float32", 10, 4, Kind.FLOAT),
        DType("float64", 11, 8, Kind.FLOAT),
    )
}

OPS: Final = {op.name.lower(): op for op in Op}


def dtype_of(name: str) -> DType:
    """The element type called ``name``; InvalidArgument lists the known names."""
    try:
        return DTYPES[name]
    except KeyError:
        raise unknown_name("dtype", name, DTYPES) from None


def op_of(name: str) -> Op:
    """The reduction called ``name``; InvalidArgument lists the known names."""
    try:
        return OPS[name]
    except (KeyError, TypeError):
        raise unknown_name("op", name, OPS) from None

"""Inputs whose results are known exactly, and the count of elements that differ from them.

Owns the numbers. An element is told apart from every other by a multiplicative hash of (index,
rank), cut to as many bits as the element type can add over all ranks without rounding; so a sum is
right in every bit whatever the order of its additions, and a piece that went astray does not look
like the one that belongs.

* moved elements carry all bits of their type and are compared as bits;
* sum, min, max, avg: integers that, added over all ranks, stay within the type's exact integers;
* prod: one rank (index modulo ranks) holds a number within the exact integers, the others 1 or -1;
  for unsigned types -1 is the largest value and the product wraps, which is well defined.

Knows nothing of communicators or collectives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# Fibonacci hashing: odd multipliers, 2**width over the golden ratio. Odd, so that the product is a
# bijection modulo 2**width: all elements of a type's full width are distinct.
_MULTIPLIERS: Final = {32: np.uint32(0x9E3779B9), 64: np.uint64(0x9E3779B97F4A7C15)}
# Elements made at a time: their 8-byte intermediates stay in a core's cache.
_BLOCK: Final = 1 << 15
# Significant bits of the floating types: integers up to 2**bits are exact.
_FLOAT_BITS: Final = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
# nccl-tests' tolerance for an average that a division or a product with 1/n may round differently.
AVG_TOLERANCE_ULP: Final = 2


@dataclass(frozen=True, slots=True)
class Kind:
    """What the numbers depend on: element type, reduction (None: only moved), number of ranks."""

    dtype: str
    op: str | None
    nranks: int

    @property
    def limit(self) -> int:
        """The largest integer up to which all integers of the type are exact."""
        if self.dtype in _FLOAT_BITS:
            return 1 << _FLOAT_BITS[self.dtype]
        return min(int(np.iinfo(self.dtype).max), int(np.iinfo(np.int64).max))

    @property
    def signed(self) -> bool:
        """Whether the type has negative numbers."""
        return not self.dtype.startswith("uint")

    @property
    def tolerance_ulp(self) -> int:
        """Units in the last place that a right result may differ by."""
        inexact = self.op == "avg" and self.dtype in _FLOAT_BITS and self.nranks & (self.nranks - 1)
        return AVG_TOLERANCE_ULP if inexact else 0


def numpy_dtype(name: str) -> np.dtype[Any]:
    """numpy's type object for one of rawcoll's element types."""
    if name == "bfloat16":
        import ml_dtypes

        name = ml_dtypes.bfloat16
    dtype: np.dtype[Any] = np.dtype(name)
    return dtype


def bits_of(array: Array) -> Array:
    """The array's memory as unsigned integers of the same width."""
    return array.view(f"u{array.dtype.itemsize}")


def _hash(start: int, stop: int, rank: int, nranks: int, width: int, nbits: int) -> Array:
    """The top ``nbits`` of the hashes of one rank's elements; ``width`` is 32 or 64."""
    dtype = np.dtype(f"u{width // 8}")
    index = np.arange(start * nranks + rank, stop * nranks + rank, nranks, dtype=np.uint64)
    mixed = index.astype(dtype, copy=False) * _MULTIPLIERS[width]
    hashes: Array = mixed >> dtype.type(width - nbits)
    return hashes


def _moved(kind: Kind, start: int, stop: int, rank: int) -> Array:
    dtype = numpy_dtype(kind.dtype)
    width = 64 if dtype.itemsize == 8 else 32
    values = _hash(start, stop, rank, kind.nranks, width, 8 * dtype.itemsize)
    return values.astype(f"u{dtype.itemsize}").view(dtype)


def _summand_bits(kind: Kind) -> tuple[int, int]:
    """(ranks that add at an index, bits of each value), so that no partial sum leaves the limit."""
    active = min(kind.nranks, kind.limit)
    nbits = (kind.limit // active).bit_length() - 1 + kind.signed
    return active, max(1, nbits)


def _summand(kind: Kind, start: int, stop: int, rank: int) -> Array:
    """What one rank adds, as int64."""
    active, nbits = _summand_bits(kind)
    width = 32 if nbits <= 32 else 64
    values = _hash(start, stop, rank, kind.nranks, width, nbits).astype(np.int64)
    if kind.signed:
        values -= 1 << (nbits - 1)
    if active < kind.nranks:
        values[(np.arange(start, stop) + rank) % kind.nranks >= active] = 0
    return values


def _factor(kind: Kind, start: int, stop: int, rank: int) -> Array:
    """What one rank multiplies by, as int64."""
    index = np.arange(start, stop, dtype=np.int64)
    sign = 1 - 2 * (index // (rank + 1) & 1)
    return np.where(index % kind.nranks == rank, 1 + index % min(kind.limit, 1 << 31), sign)


def inputs(kind: Kind, start: int, stop: int, rank: int) -> Array:
    """Elements [start, stop) of one rank's input, in the type of ``kind``."""
    if kind.op is None:
        return _moved(kind, start, stop, rank)
    make = _factor if kind.op == "prod" else _summand
    return make(kind, start, stop, rank).astype(numpy_dtype(kind.dtype))


def reduced(kind: Kind, start: int, stop: int) -> Array:
    """Elements [start, stop) of the reduction of all ranks' inputs."""
    make = _factor if kind.op == "prod" else _summand
    combine: Callable[[Array, Array], Array] = {
        "prod": np.multiply,
        "min": np.minimum,
        "max": np.maximum,
    }.get(kind.op or "", np.add)
    total = make(kind, start, stop, 0)
    for rank in range(1, kind.nranks):
        total = combine(total, make(kind, start, stop, rank))
    return _average(kind, total) if kind.op == "avg" else total.astype(numpy_dtype(kind.dtype))


def _average(kind: Kind, total: Array) -> Array:
    """A float average multiplies by 1/n, the 16-bit types in float; an integer one truncates."""
    dtype = numpy_dtype(kind.dtype)
    if kind.dtype not in _FLOAT_BITS:
        truncated: Array = np.sign(total) * (np.abs(total) // kind.nranks)
        return truncated.astype(dtype)
    wide = np.dtype(np.float64 if kind.dtype == "float64" else np.float32)
    scaled: Array = total.astype(wide) * wide.type(1 / kind.nranks)
    return scaled.astype(dtype)


def fill(array: Array, kind: Kind, rank: int) -> None:
    """Write one rank's whole input into ``array``."""
    for start in range(0, array.size, _BLOCK):
        stop = min(start + _BLOCK, array.size)
        array[start:stop] = inputs(kind, start, stop, rank)


def count_wrong(array: Array, kind: Kind, start: int, source: int | None) -> int:
    """How many elements of ``array`` are not what they must be.

    Args:
        array: a result; its first element has index ``start`` in its source.
        kind: the numbers.
        start: index of the first element in the inputs.
        source: the rank whose input was moved here, or None for the reduction of all.
    """
    wrong = 0
    for offset in range(0, array.size, _BLOCK):
        got = array[offset : offset + _BLOCK]
        first, last = start + offset, start + offset + got.size
        want = reduced(kind, first, last) if source is None else inputs(kind, first, last, source)
        wrong += _count_different(bits_of(got), bits_of(want), kind)
    return wrong


def _count_different(got: Array, want: Array, kind: Kind) -> int:
    if kind.tolerance_ulp == 0 or kind.op is None:
        return int(np.count_nonzero(got != want))
    apart = np.abs(_ordered(got) - _ordered(want))
    return int(np.count_nonzero(apart > kind.tolerance_ulp))


def _ordered(bits: Array) -> Array:
    """Integers that count representable floats: differences are in units in the last place."""
    signed = bits.astype(np.int64) if bits.itemsize < 8 else bits.view(np.int64)
    magnitude_mask = (1 << (8 * bits.itemsize - 1)) - 1
    magnitude = signed & magnitude_mask
    negative = (bits >> bits.dtype.type(8 * bits.itemsize - 1)).astype(bool)
    return np.where(negative, -magnitude, magnitude)


def neutral(op: str | None) -> int:
    """A value that a reduction repeated in place keeps: no overflow, no slow subnormals."""
    return 0 if op in (None, "sum") else 1

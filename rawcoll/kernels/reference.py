"""What every kernel computes, bit for bit, in numpy.

Owns the definition that the C++ and CUDA kernels are tested against. Written to be read, not to be
fast, and in other terms than the C++ (signbit and isnan where that uses bit patterns). Pure: arrays
in, a new array out. Knows nothing of addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt

from rawcoll.errors import InvalidArgument
from rawcoll.types import DTYPES, Kind, Op

Array = npt.NDArray[Any]

NUMPY_DTYPES: Final[dict[str, np.dtype[Any]]] = {
    name: np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name) for name in DTYPES
}
"""Our name of each element type to numpy's dtype of it."""

CANONICAL_NAN: Final = {
    "float16": 0x7E00,
    "bfloat16": 0x7FC0,
    "float32": 0x7FC00000,
    "float64": 0x7FF8000000000000,
}
"""Bits of the only NaN that results hold."""


def reduce(op: Op, arrays: Sequence[Array], divisor: int = 1) -> Array:
    """Combine arrays of one dtype and shape from first to last.

    16-bit floats are combined in float32. ``divisor``, for SUM only, makes an average: floats are
    multiplied by its reciprocal, integers divided, truncating.
    """
    dtype = arrays[0].dtype
    with np.errstate(all="ignore"):
        total = _widen(arrays[0])
        for array in arrays[1:]:
            total = _COMBINE[op](total, _widen(array))
        return _narrow(_divide(total, divisor), dtype)


def scale(array: Array, factor: float) -> Array:
    """Multiply floats by ``factor`` rounded to the accumulator's type."""
    with np.errstate(all="ignore"):
        wide = _widen(array)
        return _narrow(wide * wide.dtype.type(factor), array.dtype)


def cast(array: Array, dtype: np.dtype[Any]) -> Array:
    """Convert: to nearest even towards floats, wrapping between integers.

    Floats become integers by truncation, saturating; NaN becomes the canonical one, or 0.
    """
    with np.errstate(all="ignore"):
        if is_float(array.dtype) and not is_float(dtype):
            return _saturate(_widen(array), dtype)
        return _narrow(array, dtype)


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether ``dtype`` is one of our floats (numpy files bfloat16 under "V")."""
    return DTYPES[dtype.name].kind is Kind.FLOAT


def canonical(array: Array) -> Array:
    """``array`` with every NaN replaced by the canonical one."""
    bits = array.view(f"u{array.dtype.itemsize}")
    nan = bits.dtype.type(CANONICAL_NAN[array.dtype.name])
    settled: Array = np.where(np.isnan(array), nan, bits).view(array.dtype)
    return settled


def _widen(array: Array) -> Array:
    return array.astype(np.float32) if is_float(array.dtype) and array.itemsize == 2 else array


def _narrow(array: Array, dtype: np.dtype[Any]) -> Array:
    return canonical(array.astype(dtype)) if is_float(dtype) else array.astype(dtype)


def _divide(total: Array, divisor: int) -> Array:
    if divisor == 1:
        return total
    if is_float(total.dtype):
        one = total.dtype.type(1)
        average: Array = total * (one / total.dtype.type(divisor))
        return average
    return _truncating(total, divisor)


def _truncating(total: Array, divisor: int) -> Array:
    """Quotients towards zero; remainders have the sign of the dividend, as in C."""
    if total.dtype.kind == "u":
        return (total.astype(np.uint64) // np.uint64(divisor)).astype(total.dtype)
    wide = total.astype(np.int64)
    return ((wide - np.fmod(wide, divisor)) // divisor).astype(total.dtype)


def _min(a: Array, b: Array) -> Array:
    """The lesser: a NaN is less than everything here, -0 less than +0."""
    if not is_float(a.dtype):
        return np.minimum(a, b)
    first = np.isnan(a) | (a < b) | ((a == b) & np.signbit(a))
    return np.where(first & ~np.isnan(b), a, b)


def _max(a: Array, b: Array) -> Array:
    if not is_float(a.dtype):
        return np.maximum(a, b)
    return -_min(-a, -b)


_COMBINE: Final[dict[Op, Callable[[Array, Array], Array]]] = {
    Op.SUM: np.add,
    Op.PROD: np.multiply,
    Op.MIN: _min,
    Op.MAX: _max,
}


def _saturate(array: Array, dtype: np.dtype[Any]) -> Array:
    limits = np.iinfo(dtype)
    # The first float above the range: the largest integer itself may not be a float.
    above = array.dtype.type(2.0**limits.bits / (2 if limits.min else 1))
    inside = (array > limits.min) & (array < above)
    result = np.where(inside, array, 0).astype(dtype)
    result[array >= above] = limits.max
    result[array <= limits.min] = limits.min
    return result


def check_reduce(op: Op, nsources: int, divisor: int) -> None:
    """Raise InvalidArgument for what no kernel computes."""
    if nsources == 0:
        raise InvalidArgument("srcs: empty: found 0, expected at least one address")
    if divisor < 1:
        raise InvalidArgument(f"divisor: not positive: found {divisor}, expected at least 1")
    if divisor != 1 and op is not Op.SUM:
        raise InvalidArgument(f"divisor: only a sum is divided: found {divisor}, expected 1")

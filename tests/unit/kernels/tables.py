"""The one case table of the kernel tests, and the implementations that it drives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rawcoll.kernels import NUMPY_DTYPES, Kernels, NumpyKernels
from rawcoll.types import DTYPES, Kind, Op

try:
    from rawcoll.native import _native
except ImportError:
    _native = None

Array = npt.NDArray[Any]

OPS = (Op.SUM, Op.PROD, Op.MIN, Op.MAX)
FLOATS = tuple(name for name, dtype in DTYPES.items() if dtype.kind is Kind.FLOAT)
INTEGERS = tuple(name for name in DTYPES if name not in FLOATS)
# Around the widths of vectors and of the blocks that the kernels work in (1024 elements).
COUNTS = (0, 1, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 1000, 4097)
DIVISORS = (1, 2, 3, 7, 8, 200, 2**31 - 1)

_SPECIAL_FLOATS = {
    "float16": (
        *(0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x3C01, 0x7BFF, 0xFBFF),
        *(0x7C00, 0xFC00, 0x7C01, 0xFD55, 0x7E00, 0xFE00, 0x7FFF, 0xFFFF),
    ),
    "bfloat16": (
        *(0x0000, 0x8000, 0x0001, 0x8001, 0x007F, 0x0080, 0x3F80, 0xBF80, 0x3F81, 0x7F7F, 0xFF7F),
        *(0x7F80, 0xFF80, 0x7F81, 0xFFA5, 0x7FC0, 0xFFC0, 0x7FFF, 0xFFFF),
    ),
    "float32": (
        *(0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000),
        *(0xBF800000, 0x3F800001, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7F800001),
        *(0xFF876543, 0x7FC00000, 0xFFC00000, 0x7FFFFFFF, 0xFFFFFFFF, 0x4B800001, 0x477FEFFF),
    ),
    "float64": (
        *(0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x8000000000000001),
        *(0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x3FF0000000000000, 0xBFF0000000000000),
        *(0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000),
        *(0x7FF0000000000001, 0xFFF8765432100000, 0x7FF8000000000000, 0xFFFFFFFFFFFFFFFF),
        # Just beside a tie of float32, bfloat16 and float16: rounding twice would go wrong.
        *(0x3FF0000010000001, 0x3FF0100000000001, 0x3FF0020000000001, 0x36A8000000000001),
        *(0x36A0000000000000, 0x3798000000000001, 0x3E60000000000001, 0x40EFFDFFFFFFFFFF),
    ),
}


def special(name: str) -> Array:
    """The values of a type that kernels get wrong."""
    dtype = NUMPY_DTYPES[name]
    if name in FLOATS:
        return np.array(_SPECIAL_FLOATS[name], f"u{dtype.itemsize}").view(dtype)
    limits = np.iinfo(dtype)
    inner = {value for value in (-3, -2, -1, 0, 1, 2, 3, 100) if value >= limits.min}
    return np.array(sorted({limits.min, limits.min + 1, limits.max - 1, limits.max} | inner), dtype)


def random_bits(name: str, count: int, seed: int) -> Array:
    """Every bit pattern, equally likely."""
    dtype = NUMPY_DTYPES[name]
    return np.frombuffer(np.random.default_rng(seed).bytes(count * dtype.itemsize), dtype)


def small_values(name: str, count: int, seed: int) -> Array:
    """Values whose sums and products mostly stay in range."""
    return np.random.default_rng(seed).integers(0, 5, count).astype(NUMPY_DTYPES[name])


def operands(name: str, nsources: int, count: int) -> list[Array]:
    """A third each of special values in all combinations, random bit patterns, and tame values.

    The special values of one source are stepped through more slowly than those of the one before,
    so that pairs of neighbours meet in every combination.
    """
    values = special(name)
    index = np.arange(count)
    result = []
    for k in range(nsources):
        specials = values[index // len(values) ** (k % 2) % len(values)]
        columns = (specials, random_bits(name, count, k), small_values(name, count, 100 + k))
        result.append(_woven(columns, index))
    return result


def _woven(columns: tuple[Array, ...], index: Array) -> Array:
    """Stretches of 512 elements of each column in turn."""
    turn = index // 512 % len(columns)
    bits = [column.view(f"u{column.dtype.itemsize}") for column in columns]
    return np.choose(turn, bits).view(columns[0].dtype)


def same_bits(found: Array, expected: Array) -> None:
    """Fail, naming the first element, unless both hold the same bytes."""
    assert found.dtype == expected.dtype
    if found.tobytes() == expected.tobytes():
        return
    bits = f"u{found.dtype.itemsize}"
    at = int(np.flatnonzero(found.view(bits) != expected.view(bits))[0])
    found_bits, expected_bits = found.view(bits)[at], expected.view(bits)[at]
    raise AssertionError(
        f"element {at}: found {found[at]} ({found_bits:#x}), "
        f"expected {expected[at]} ({expected_bits:#x})"
    )


@dataclass(frozen=True, slots=True)
class Implementation:
    """Kernels, at one instruction set where there are several."""

    name: str
    kernels: Kernels
    simd_level: str | None = None

    @contextmanager
    def chosen(self) -> Iterator[Kernels]:
        """The kernels, with their instruction set in use; the best one again afterwards."""
        if self.simd_level is None:
            yield self.kernels
            return
        _native.set_simd_level(self.simd_level)
        try:
            yield self.kernels
        finally:
            _native.set_simd_level(_native.simd_levels()[-1])


def implementations() -> list[Implementation]:
    """The fallback, and the extension once for each instruction set of this machine."""
    found = [Implementation("numpy", NumpyKernels())]
    if _native is not None:
        levels = _native.simd_levels()
        found += [Implementation(f"native-{level}", _native, level) for level in levels]
    return found


class Memory:
    """Arrays in one buffer, each at a chosen distance from a 64-byte boundary."""

    def __init__(self, arrays: list[Array], offset: int) -> None:
        stride = max((array.nbytes for array in arrays), default=0) + 192
        stride -= stride % 64
        self._bytes = np.zeros(stride * len(arrays) + 64, np.uint8)
        base = self._bytes.ctypes.data
        first = -base % 64 + offset
        self._spans = [(first + k * stride, a.nbytes, a.dtype) for k, a in enumerate(arrays)]
        self.addresses = tuple(base + start for start, _, _ in self._spans)
        for k, array in enumerate(arrays):
            start, nbytes, _ = self._spans[k]
            self._bytes[start : start + nbytes] = np.frombuffer(array.tobytes(), np.uint8)
        self._before = self._bytes.copy()

    def read(self, k: int) -> Array:
        """A copy of array ``k``."""
        start, nbytes, dtype = self._spans[k]
        return np.frombuffer(self._bytes[start : start + nbytes].tobytes(), dtype)

    def check_untouched(self, except_for: int) -> None:
        """Fail if a byte outside array ``except_for`` has changed since the start."""
        start, nbytes, _ = self._spans[except_for]
        changed = np.flatnonzero(self._bytes != self._before)
        outside = changed[(changed < start) | (changed >= start + nbytes)]
        assert outside.size == 0, f"wrote outside the destination, at byte {outside[0] - start}"

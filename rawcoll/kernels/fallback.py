"""The kernels in numpy, for installations without the C++ extension.

Owns the step from addresses to arrays; what is computed is reference.py's. Results are those of the
extension, bit for bit, several times slower. Must not know why the extension is missing.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from rawcoll.errors import InvalidArgument
from rawcoll.kernels import reference
from rawcoll.kernels.reference import NUMPY_DTYPES, Array
from rawcoll.types import DTYPES, DType, Kind, Op

_BY_CODE: Final = {dtype.code: dtype for dtype in DTYPES.values()}
_OPS: Final = {int(op): op for op in (Op.SUM, Op.PROD, Op.MIN, Op.MAX)}
# Temporaries of this many elements stay in the cache; the arrays themselves need not fit there.
_BLOCK: Final = 16384


class NumpyKernels:
    """``Kernels`` over numpy. Has no state."""

    name: Final = "numpy"

    def reduce(
        self, op: int, dtype: int, dst: int, srcs: tuple[int, ...], count: int, divisor: int, /
    ) -> None:
        """See ``Kernels.reduce``."""
        kind, known_op = _dtype(dtype), _op(op)
        reference.check_reduce(known_op, len(srcs), divisor)
        out, arrays = _view(kind, dst, count), [_view(kind, src, count) for src in srcs]
        for part in _parts(count):
            out[part] = reference.reduce(known_op, [array[part] for array in arrays], divisor)

    def copy(self, dst: int, src: int, nbytes: int, /) -> None:
        """See ``Kernels.copy``."""
        if nbytes and dst != src:
            ctypes.memmove(_checked(dst), _checked(src), nbytes)

    def scale(self, dtype: int, dst: int, src: int, count: int, factor: float, /) -> None:
        """See ``Kernels.scale``."""
        kind = _dtype(dtype)
        if kind.kind is not Kind.FLOAT:
            raise InvalidArgument(f"dtype: not a float: found {dtype}, expected 8 to 11")
        out, array = _view(kind, dst, count), _view(kind, src, count)
        for part in _parts(count):
            out[part] = reference.scale(array[part], factor)

    def cast(self, dst_dtype: int, dst: int, src_dtype: int, src: int, count: int, /) -> None:
        """See ``Kernels.cast``."""
        to, kind = _dtype(dst_dtype), _dtype(src_dtype)
        out, array = _view(to, dst, count), _view(kind, src, count)
        for part in _parts(count):
            out[part] = reference.cast(array[part], out.dtype)

    def address(self, buffer: object, /) -> int:
        """See ``Kernels.address``."""
        # Arrays are asked directly, because numpy exports no memoryview of bfloat16.
        if isinstance(buffer, np.ndarray):
            if not buffer.flags.c_contiguous:
                raise BufferError("buffer: not contiguous: found strides, expected C order")
            return int(buffer.ctypes.data)
        view = memoryview(buffer)  # type: ignore[arg-type]
        if not view.c_contiguous:
            raise BufferError("buffer: not contiguous: found strides, expected C order")
        return int(np.asarray(view).ctypes.data)


def _dtype(code: int) -> DType:
    try:
        return _BY_CODE[code]
    except KeyError:
        raise InvalidArgument(f"dtype: unknown code: found {code}, expected 0 to 11") from None


def _op(code: int) -> Op:
    try:
        return _OPS[code]
    except KeyError:
        raise InvalidArgument(f"op: unknown code: found {code}, expected 0 to 3") from None


def _checked(address: int) -> int:
    if address == 0:
        raise InvalidArgument("address: null: found 0, expected the address of an array")
    return address


def _view(dtype: DType, address: int, count: int) -> Array:
    numpy_dtype: np.dtype[Any] = NUMPY_DTYPES[dtype.name]
    if count == 0:
        return np.empty(0, numpy_dtype)
    memory = (ctypes.c_ubyte * (count * dtype.itemsize)).from_address(_checked(address))
    return np.frombuffer(memoryview(memory).cast("B"), numpy_dtype)


def _parts(count: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, count, _BLOCK))

"""Reads DLPack capsules without a framework: pointer, element type, shape, device.

numpy's own import refuses bfloat16, so the capsule's C structure is read here through ctypes. The capsule
is kept alive, not consumed: the producer's memory stays valid as long as the returned owner.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Final

from rawcoll.errors import InvalidArgument

HOST_DEVICES: Final = frozenset({1, 3, 11})
"""kDLCPU, kDLCUDAHost and kDLROCMHost: memory that the host reads and writes."""
_READ_ONLY: Final = 1
_NAMES: Final = {
    (0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64",
    (1, 8): "uint8", (1, 16): "uint16", (1, 32): "uint32", (1, 64): "uint64",
    (2, 16): "float16", (2, 32): "float32", (2, 64): "float64", (4, 16): "bfloat16",
}  # fmt: skip


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


@dataclass(frozen=True, slots=True)
class Imported:
    """What a capsule says. ``owner`` keeps the memory alive."""

    address: int
    dtype: str
    shape: tuple[int, ...]
    contiguous: bool
    writeable: bool
    device_type: int
    owner: object


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype = ctypes.c_int
_is_valid.argtypes = (ctypes.py_object, ctypes.c_char_p)


def import_dlpack(argument: str, array: Any) -> Imported:
    """Describe an array by its ``__dlpack__``.

    Raises:
        InvalidArgument: the producer refuses, or the element type is none of rawcoll's.
    """
    capsule = _capsule_of(argument, array)
    writeable = True
    if _is_valid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_get_pointer(capsule, b"dltensor_versioned"))
        tensor, writeable = versioned.tensor, not versioned.flags & _READ_ONLY
    else:
        tensor = _Tensor.from_address(_get_pointer(capsule, b"dltensor"))
    name = _NAMES.get((tensor.code, tensor.bits))
    if name is None or tensor.lanes != 1:
        raise InvalidArgument(
            f"{argument}: element type: found DLPack code {tensor.code}, {tensor.bits} bits, "
            f"{tensor.lanes} lanes, expected one of {', '.join(sorted(_NAMES.values()))}"
        )
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    return Imported(
        address=(tensor.data or 0) + tensor.byte_offset,
        dtype=name,
        shape=shape,
        contiguous=not tensor.strides or _is_contiguous(shape, tensor.strides),
        writeable=bool(writeable),
        device_type=tensor.device_type,
        owner=(capsule, array),
    )


def _capsule_of(argument: str, array: Any) -> object:
    try:
        try:
            return array.__dlpack__(max_version=(1, 0))
        except TypeError:  # a producer from before DLPack 1.0
            return array.__dlpack__()
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InvalidArgument(
            f"{argument}: DLPack export refused: found {type(array).__name__}: {error}, "
            "expected an array that exports its memory"
        ) from error


def _is_contiguous(shape: tuple[int, ...], strides: Any) -> bool:
    expected = 1
    for axis in reversed(range(len(shape))):
        if shape[axis] != 1 and strides[axis] != expected:
            return 0 in shape
        expected *= shape[axis]
    return True

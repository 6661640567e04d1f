"""Takes in callers' arrays: numpy by its own attributes, everything else by DLPack.

Owns the one description that the layers above work with (address, element type, shape) and the checks
that any array must pass. Frameworks are never imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt

from rawcoll.device.dlpack import HOST_DEVICES, Imported, import_dlpack
from rawcoll.errors import InvalidArgument, unknown_name
from rawcoll.types import DTYPES, DType, dtype_of

_BFLOAT16: Final = np.dtype(ml_dtypes.bfloat16)
NUMPY_DTYPES: Final[dict[str, np.dtype[Any]]] = {
    name: _BFLOAT16 if name == "bfloat16" else np.dtype(name) for name in DTYPES
}
_BY_NUMPY: Final = {dtype: DTYPES[name] for name, dtype in NUMPY_DTYPES.items()}


@dataclass(frozen=True, slots=True)
class HostArray:
    """A contiguous array in host memory.

    ``owner`` is what keeps the memory valid; the caller's own object for numpy.
    """

    address: int
    dtype: DType
    shape: tuple[int, ...]
    writeable: bool
    owner: object

    @property
    def count(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.count * self.dtype.itemsize


def host_array(argument: str, array: Any, *, writeable: bool = False) -> HostArray:
    """Describe ``array``, which the message of an error calls ``argument``.

    Raises:
        InvalidArgument: not an array, not on the host, not contiguous, of another element type, or
            read-only where ``writeable`` is asked for.
    """
    is_numpy = isinstance(array, np.ndarray)
    found = _from_numpy(argument, array) if is_numpy else _from_dlpack(argument, array)
    if writeable and not found.writeable:
        raise InvalidArgument(
            f"{argument}: read-only memory: found a read-only array, expected a writeable one"
        )
    return found


def dtype_from(argument: str, dtype: object) -> DType:
    """The element type that a caller names: rawcoll's name, or anything ``numpy.dtype`` takes."""
    if isinstance(dtype, str) and dtype in DTYPES:
        return dtype_of(dtype)
    try:
        numpy_dtype = np.dtype(dtype)  # type: ignore[call-overload]
    except TypeError:
        raise unknown_name(argument, dtype, DTYPES) from None
    return _known(argument, numpy_dtype)


def new_array(like: object, shape: tuple[int, ...], dtype: DType) -> Any:
    """A new uninitialised array of the kind that ``like`` is: torch's for torch, else numpy's."""
    if type(like).__module__.partition(".")[0] == "torch":
        return like.new_empty(shape)  # type: ignore[attr-defined]
    return np.empty(shape, NUMPY_DTYPES[dtype.name])


def address_of(array: npt.NDArray[Any]) -> int:
    """Address of a numpy array's first element."""
    return int(array.ctypes.data)


def _known(argument: str, dtype: np.dtype[Any]) -> DType:
    found = _BY_NUMPY.get(dtype)
    if found is None:
        raise unknown_name(f"{argument}.dtype", str(dtype), DTYPES)
    return found


def _from_numpy(argument: str, array: npt.NDArray[Any]) -> HostArray:
    dtype = _known(argument, array.dtype)
    if not array.flags.c_contiguous:
        raise InvalidArgument(
            f"{argument}: not contiguous: found strides {array.strides} for shape {array.shape}, "
            "expected C order"
        )
    return HostArray(address_of(array), dtype, array.shape, array.flags.writeable, array)


def _from_dlpack(argument: str, array: Any) -> HostArray:
    try:
        device_type = int(array.__dlpack_device__()[0])
    except AttributeError:
        raise InvalidArgument(
            f"{argument}: not an array: found {type(array).__name__}, expected numpy or anything with DLPack"
        ) from None
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InvalidArgument(
            f"{argument}: wrong device: found {type(array).__name__}: {error}, expected host memory"
        ) from error
    if device_type not in HOST_DEVICES:
        raise InvalidArgument(
            f"{argument}: wrong device: found DLPack device type {device_type}, expected host memory"
        )
    return _checked(argument, import_dlpack(argument, array))


def _checked(argument: str, found: Imported) -> HostArray:
    if not found.contiguous:
        raise InvalidArgument(
            f"{argument}: not contiguous: found strides for shape {found.shape}, expected C order"
        )
    return HostArray(
        found.address, dtype_of(found.dtype), found.shape, found.writeable, found.owner
    )

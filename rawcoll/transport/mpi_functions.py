"""MPI's C functions, found in the library that mpi4py has loaded.

Owns the look-up by name: the extension is built against no MPI, and so serves whichever is there.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Final

from mpi4py import MPI

if TYPE_CHECKING:
    from rawcoll.native import _native

_NAMES: Final = ("MPI_Isend", "MPI_Irecv", "MPI_Test", "MPI_Error_string")


def native_mpi(comm: MPI.Intracomm, max_message_nbytes: int) -> _native.Mpi | None:
    """``rawcoll.native._native.Mpi`` on a communicator; None without the extension or without the functions.

    Args:
        comm: must outlive what is returned.
        max_message_nbytes: size of the pieces of larger messages, the same on all ranks.
    """
    try:
        from rawcoll.native import _native
    except ImportError:
        return None
    found = _functions()
    if found is None:
        return None
    handle_nbytes = MPI._sizeof(MPI.Comm)
    return _native.Mpi(
        found, MPI._handleof(comm), MPI._handleof(MPI.BYTE), handle_nbytes, max_message_nbytes
    )


def _functions() -> tuple[int, ...] | None:
    """Addresses of the functions, in the order of their names."""
    library = ctypes.CDLL(MPI.__file__)  # a look-up there searches the MPI library behind it too
    try:
        return tuple(ctypes.cast(library[name], ctypes.c_void_p).value or 0 for name in _NAMES)
    except AttributeError:
        return None

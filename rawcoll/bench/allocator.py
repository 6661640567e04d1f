"""The C library's allocator: keeping freed memory, instead of giving it back to the system.

MPI's own algorithms take temporary buffers from ``malloc``. Above its threshold (32 MiB at most by
itself) glibc maps every such buffer anew, and each call pays for its page faults. With the
threshold raised, the memory stays with the process after the first call.
"""

from __future__ import annotations

import ctypes
from typing import Final

from rawcoll.errors import BackendUnavailable, InvalidArgument

# From glibc's malloc.h.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
# mallopt takes a C int.
MOST_NBYTES: Final = (1 << 31) - 1


def keep_freed_memory(threshold_nbytes: int) -> None:
    """Serve allocations below ``threshold_nbytes`` from the heap, and do not trim the heap.

    Raises:
        InvalidArgument: more than a C int holds.
        BackendUnavailable: the C library has no ``mallopt`` or refuses the value.
    """
    if threshold_nbytes > MOST_NBYTES:
        raise InvalidArgument(
            f"mmap_threshold: too large: found {threshold_nbytes}, expected at most {MOST_NBYTES}"
        )
    libc = ctypes.CDLL(None)
    try:
        mallopt = libc.mallopt
    except AttributeError as error:
        raise BackendUnavailable("mmap_threshold: this C library has no mallopt") from error
    settings = ((_M_MMAP_THRESHOLD, threshold_nbytes), (_M_TRIM_THRESHOLD, MOST_NBYTES))
    for parameter, value in settings:
        if mallopt(parameter, value) != 1:
            raise BackendUnavailable(f"mmap_threshold: mallopt({parameter}, {value}) was refused")

"""Which kernels this process uses on host memory.

Owns the one decision, made at the first call: the C++ extension, or numpy where it is missing or
refused by ``RAWCOLL_NATIVE=0``. Says once when it is missing, because collectives are then slow
without being wrong.
"""

from __future__ import annotations

import functools
import os
import warnings

from rawcoll.kernels.fallback import NumpyKernels
from rawcoll.kernels.protocol import Kernels

_MISSING = (
    "rawcoll.native._native: the C++ extension cannot be imported ({reason}); numpy does its "
    "work. Results are the same bits, but a reduction starts 15 us later and takes 2 to 5 times as "
    "long on large arrays, 9 to 18 times for 16-bit floats. To build it: `pip install .` in the "
    "source tree, with a C++17 compiler. RAWCOLL_NATIVE=0 chooses numpy without this warning."
)


@functools.cache
def host_kernels() -> Kernels:
    """The kernels for host memory; the same object at every call.

    Warns (RuntimeWarning) when the extension cannot be imported.
    """
    if os.environ.get("RAWCOLL_NATIVE") == "0":
        return NumpyKernels()
    try:
        from rawcoll.native import _native
    except ImportError as error:
        warnings.warn(_MISSING.format(reason=error), RuntimeWarning, stacklevel=2)
        return NumpyKernels()
    native: Kernels = _native
    return native

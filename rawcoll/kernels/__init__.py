"""The arithmetic of collectives on host memory: a contract, its numpy reference, the extension.

``host_kernels()`` is what the rest of rawcoll uses. Imports only ``rawcoll.errors`` and
``rawcoll.types``.
"""

from rawcoll.kernels.fallback import NumpyKernels
from rawcoll.kernels.host import host_kernels
from rawcoll.kernels.protocol import Kernels
from rawcoll.kernels.reference import NUMPY_DTYPES

__all__ = ["NUMPY_DTYPES", "Kernels", "NumpyKernels", "host_kernels"]

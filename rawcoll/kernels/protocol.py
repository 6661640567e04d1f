"""What a set of kernels is: five functions over addresses.

Owns the contract that the host extension, its numpy fallback and the reference share; reference.py
defines the values. Knows nothing of arrays, devices or schedules.

Terms: an *address* is an integer, of memory that the caller keeps alive and that needs no
alignment; ``op`` and ``dtype`` are codes of ``rawcoll.types``; ``count`` is in elements.
"""

from __future__ import annotations

from typing import Protocol


class Kernels(Protocol):
    """Arithmetic on memory of one kind. Arguments are positional: these calls are the hot path.

    A destination may equal a source; it may not overlap one partly, and this is not checked. Codes
    that do not exist raise ValueError, and then nothing is written. Whatever NaN an operation
    yields, the one stored is the canonical quiet NaN of the element type. Blocks until done;
    releases the interpreter lock on large arrays.
    """

    @property
    def name(self) -> str:
        """Which implementation this is."""
        ...

    def reduce(
        self, op: int, dtype: int, dst: int, srcs: tuple[int, ...], count: int, divisor: int, /
    ) -> None:
        """Combine one or more sources, in the order given, into ``dst``.

        Integers wrap. 16-bit floats accumulate in float32 and are rounded once. min and max
        propagate NaN and order -0 before +0. ``op`` is a code of SUM to MAX; an average is SUM
        with the number of contributions as ``divisor``, for which floats are multiplied once by
        1/divisor and integers are divided, truncating. Any other ``op`` takes a divisor of 1.
        """
        ...

    def copy(self, dst: int, src: int, nbytes: int, /) -> None:
        """Copy bytes; nothing where the addresses are equal."""
        ...

    def scale(self, dtype: int, dst: int, src: int, count: int, factor: float, /) -> None:
        """Multiply floats by ``factor`` in their accumulator's type; ValueError for integers."""
        ...

    def cast(self, dst_dtype: int, dst: int, src_dtype: int, src: int, count: int, /) -> None:
        """Convert: one rounding to nearest even towards floats, wrapping between integers.

        Floats become integers by truncation, saturating, and NaN becomes 0.
        """
        ...

    def address(self, buffer: object, /) -> int:
        """Address of a contiguous object with the buffer protocol, writable or not.

        Raises TypeError without the protocol and BufferError when not contiguous. The caller keeps
        the object alive.
        """
        ...

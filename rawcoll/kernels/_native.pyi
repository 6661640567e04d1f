"""The C++ kernels: a module that is a ``Kernels`` (see protocol.py), and its instruction sets.

Unknown codes, a null address and an empty ``srcs`` raise ValueError; nothing is written then.
"""

name: str

def reduce(
    op: int, dtype: int, dst: int, srcs: tuple[int, ...], count: int, divisor: int, /
) -> None: ...
def copy(dst: int, src: int, nbytes: int, /) -> None: ...
def scale(dtype: int, dst: int, src: int, count: int, factor: float, /) -> None: ...
def cast(dst_dtype: int, dst: int, src_dtype: int, src: int, count: int, /) -> None: ...
def address(buffer: object, /) -> int: ...
def build_info() -> dict[str, str]:
    """Compiler, and the instruction set in use."""

def simd_levels() -> list[str]:
    """Instruction sets of this processor and build, the best (the default) last."""

def set_simd_level(name: str, /) -> None:
    """Use another instruction set in this process; results are the same bits."""

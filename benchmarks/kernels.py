"""Bandwidth of the host kernels, beside memcpy and numpy in the same run.

Usage: ``python benchmarks/kernels.py [--mib 64] [--repeats 9] [--levels avx2,avx512]``

Bytes are those read and written once: ``(sources + 1) * size`` for a reduction, both arrays for a
copy and a cast. Ratios are to the rate of memcpy and numpy on the same arrays right afterwards.
The head of every sum is compared with the reference before it is timed. Also prints the time of a
call on tiny arrays, which is the overhead of the binding.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rawcoll.kernels import NUMPY_DTYPES, reference
from rawcoll.types import DTYPES, Op

try:
    from rawcoll.native import _native
except ImportError:
    sys.exit("benchmarks/kernels.py: the native extension is not installed")

SOURCES = (2, 4, 8)


@dataclass(frozen=True, slots=True)
class Row:
    """One measured case; rates in GB/s."""

    case: str
    native: float
    memcpy: float
    numpy: float | None


def median_s(call: Callable[[], object], repeats: int) -> float:
    """Median seconds of one call, each long enough for the clock."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def numpy_sum(arrays: list[npt.NDArray[np.generic]], out: npt.NDArray[np.generic]) -> None:
    """What a user without the kernels would write."""
    np.add(arrays[0], arrays[1], out=out)
    for array in arrays[2:]:
        np.add(out, array, out=out)


def measure_reduce(name: str, op: Op, nsources: int, nbytes: int, repeats: int) -> Row:
    """One reduction of ``nsources`` arrays of ``nbytes``; memcpy and numpy on the same."""
    dtype = DTYPES[name]
    count = nbytes // dtype.itemsize
    rng = np.random.default_rng(nsources)
    arrays = [rng.integers(-9, 9, count).astype(NUMPY_DTYPES[name]) for _ in range(nsources)]
    out = np.empty_like(arrays[0])
    addresses = tuple(_native.address(array) for array in arrays)
    at = _native.address(out)

    def native() -> None:
        _native.reduce(op, dtype.code, at, addresses, count, 1)

    native()
    head = slice(0, 10_000)
    expected = reference.reduce(op, [array[head] for array in arrays], 1)
    if out[head].tobytes() != expected.tobytes():
        sys.exit(f"benchmarks/kernels.py: {name} {op.name}: wrong result")
    native_s = median_s(native, repeats)
    memcpy_s = median_s(lambda: _native.copy(at, addresses[0], nbytes), repeats)
    numpy_s = median_s(lambda: numpy_sum(arrays, out), min(repeats, 3)) if op is Op.SUM else None
    moved = (nsources + 1) * nbytes / 1e9
    return Row(
        f"{op.name.lower()} {name} x{nsources}",
        moved / native_s,
        2 * nbytes / 1e9 / memcpy_s,
        moved / numpy_s if numpy_s else None,
    )


def measure_cast(dst_name: str, src_name: str, nbytes: int, repeats: int) -> Row:
    """One cast whose larger side has ``nbytes``."""
    dst, src = DTYPES[dst_name], DTYPES[src_name]
    count = nbytes // max(dst.itemsize, src.itemsize)
    source = np.random.default_rng(1).integers(-9, 9, count).astype(NUMPY_DTYPES[src_name])
    out = np.empty(count, NUMPY_DTYPES[dst_name])
    to, at = _native.address(out), _native.address(source)
    native_s = median_s(lambda: _native.cast(dst.code, to, src.code, at, count), repeats)
    smaller = min(out.nbytes, source.nbytes)
    memcpy_s = median_s(lambda: _native.copy(to, at, smaller), repeats)
    numpy_s = median_s(lambda: np.copyto(out, source, casting="unsafe"), min(repeats, 3))
    moved = count * (dst.itemsize + src.itemsize) / 1e9
    case = f"cast {src_name} to {dst_name}"
    return Row(case, moved / native_s, 2 * smaller / 1e9 / memcpy_s, moved / numpy_s)


def overhead_us(calls: int = 200_000) -> tuple[float, float, float]:
    """Microseconds of reduce on two arrays of four floats, of copy, and of address."""
    a, b = np.ones(4, np.float32), np.ones(4, np.float32)
    at_a, at_b = _native.address(a), _native.address(b)
    code, sources = DTYPES["float32"].code, (at_a, at_b)
    op = int(Op.SUM)

    def timed(call: Callable[[], None]) -> float:
        return median_s(call, 5) / calls * 1e6

    def reduces() -> None:
        reduce = _native.reduce
        for _ in range(calls):
            reduce(op, code, at_a, sources, 4, 1)

    def copies() -> None:
        copy = _native.copy
        for _ in range(calls):
            copy(at_a, at_b, 16)

    def addresses() -> None:
        address = _native.address
        for _ in range(calls):
            address(a)

    return timed(reduces), timed(copies), timed(addresses)


def rows(nbytes: int, repeats: int) -> Iterator[Row]:
    """Every case at the instruction set in use."""
    for name in DTYPES:
        for nsources in SOURCES:
            yield measure_reduce(name, Op.SUM, nsources, nbytes, repeats)
    for name in ("int64", "float16", "bfloat16", "float32", "float64"):
        yield measure_reduce(name, Op.MAX, 2, nbytes, repeats)
    for pair in (("float16", "float32"), ("float32", "float16"), ("bfloat16", "float32")):
        yield measure_cast(*pair, nbytes, repeats)


def main() -> None:
    """Print one table per instruction set."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mib", type=float, default=64, help="size of each array")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--levels", default=None, help="instruction sets, comma separated")
    arguments = parser.parse_args()
    levels = arguments.levels.split(",") if arguments.levels else _native.simd_levels()[-1:]
    sys.stdout.write(f"{_native.build_info()}; arrays of {arguments.mib} MiB\n")
    for level in levels:
        _native.set_simd_level(level)
        sys.stdout.write(f"\n{level:28}{'GB/s':>8}{'/memcpy':>9}{'/numpy':>9}\n")
        for row in rows(int(arguments.mib * 2**20), arguments.repeats):
            beside = f"{row.native / row.numpy:9.2f}" if row.numpy else ""
            ratio = row.native / row.memcpy
            sys.stdout.write(f"{row.case:28}{row.native:8.1f}{ratio:9.2f}{beside}\n")
    reduce_us, copy_us, address_us = overhead_us()
    sys.stdout.write(
        f"\ncall: reduce {reduce_us:.3f} us, copy {copy_us:.3f} us, address {address_us:.3f} us\n"
    )


if __name__ == "__main__":
    main()

"""Calls with known results: inputs that make equality bitwise, and what each rank must end with.

The results are numpy's, computed here from the meaning of each collective; no kernel and no schedule
of the library has a part in them. Inputs are such that every order of adding up gives the same bits:
integers wrap, floats hold small integers (or powers of two, for products).
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

DTYPES = (
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64"),
)
OPS = ("sum", "prod", "min", "max", "avg")
COLLECTIVES = (
    *("all_reduce", "reduce", "broadcast", "all_gather"),
    *("reduce_scatter", "all_to_all", "gather", "scatter"),
)
REDUCING = ("all_reduce", "reduce", "reduce_scatter")
UNEVEN = ("all_gather", "reduce_scatter", "all_to_all")
"""The collectives that take counts."""
_FRAME = 5
"""Elements before and after every array, which nothing may touch."""


@dataclass(frozen=True)
class Given:
    """One rank's side of a call.

    Attributes:
        arguments: for the method of Communicator.
        expected: contents of the result; None where the call returns None.
        unchanged: arrays that the call must leave as they are, with their contents.
        frames: what stands around the arrays.
    """

    arguments: dict[str, Any]
    expected: np.ndarray | None
    unchanged: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    frames: list[np.ndarray] = field(default_factory=list)

    def check(self, result: Any) -> None:
        """Compare bit by bit."""
        if self.expected is None:
            assert result is None
        else:
            assert_same_bits(np.asarray(result).reshape(-1), self.expected)
            if self.arguments.get("out") is not None:
                assert result is self.arguments["out"]
        for array, before in self.unchanged:
            assert_same_bits(array, before)
        for frame in self.frames:
            assert (frame.view(np.uint8) == 0x5A).all(), "written outside of an array"


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def assert_same_bits(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    bits = f"u{found.dtype.itemsize}"
    wrong = np.flatnonzero(found.reshape(-1).view(bits) != expected.reshape(-1).view(bits))
    assert wrong.size == 0, (
        f"{wrong.size} of {found.size} elements differ, the first at {wrong[0]}: found "
        f"{found.reshape(-1)[wrong[0]]}, expected {expected.reshape(-1)[wrong[0]]}"
    )


def error_of(call: Callable[[], Any]) -> Exception:
    """The exception that ``call`` raises; it must raise one."""
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("not refused")


def values(count: int, dtype: str, op: str, *seed: int, wraps: bool = True) -> np.ndarray:
    """Elements whose reduction over at most 16 ranks is exact in every order.

    Integers wrap, unless ``wraps`` is false: then results of up to 6 ranks stay in range.
    """
    random = np.random.default_rng([*seed, count, zlib.crc32(f"{dtype} {op}".encode())])
    kind = numpy_dtype(dtype)
    if "float" not in dtype:
        limits = np.iinfo(kind)
        if not wraps and op == "prod":
            return random.choice([1, 2, -1 if limits.min else 1], count).astype(kind)
        if not wraps:
            return random.integers(limits.min // 16, limits.max // 16, count, kind)
        return random.integers(limits.min, limits.max, count, kind, endpoint=True)
    if op == "prod":
        return random.choice([1.0, 2.0, 0.5, -1.0], count).astype(kind)
    most = {"bfloat16": 15, "float16": 120}.get(dtype, 1 << 19)
    return random.integers(-most, most, count, endpoint=True).astype(kind)


def reduced(arrays: Sequence[np.ndarray], dtype: str, op: str) -> np.ndarray:
    """The reduction over ranks, from its definition."""
    if op in ("min", "max"):
        return functools.reduce(np.minimum if op == "min" else np.maximum, arrays)
    if "float" not in dtype:
        combine = np.multiply if op == "prod" else np.add
        total = functools.reduce(combine, arrays)  # wraps
        return _truncated(total, len(arrays)) if op == "avg" else total
    combine = np.multiply if op == "prod" else np.add
    total = functools.reduce(combine, [array.astype(np.float64) for array in arrays])
    if op == "avg" and len(arrays) > 1:  # one multiplication, in the accumulator's type
        wide = np.float64 if dtype == "float64" else np.float32
        total = total.astype(wide) * (wide(1) / wide(len(arrays)))
    return total.astype(numpy_dtype(dtype))


def _truncated(total: np.ndarray, nranks: int) -> np.ndarray:
    quotients = [abs(v) // nranks * (1 if v >= 0 else -1) for v in total.tolist()]
    return np.array(quotients, total.dtype)


def parts_of(nranks: int, count: int, uneven: bool) -> list[int]:
    """Elements of each rank's part: ``count``, or counts about it with zeros among them."""
    if not uneven:
        return [count] * nranks
    return [(count * ((3 * rank + 1) % 4)) // 2 for rank in range(nranks)]


def calls(
    collective: str,
    nranks: int,
    count: int,
    dtype: str = "float32",
    op: str = "sum",
    *,
    root: int = 0,
    uneven: bool = False,
    in_place: bool = False,
    wraps: bool = True,
) -> list[Given]:
    """Every rank's side of one call.

    Args:
        collective: name.
        nranks: how many ranks.
        count: elements of the array, or of a part where the collective has parts.
        dtype: element type.
        op: for the collectives that reduce.
        root: for the collectives that have one.
        uneven: different counts; for the collectives that take counts.
        in_place: use the aliases that are legal; nothing changes for all_to_all.
        wraps: whether integers may leave their range, which MPI's own collectives need not wrap.
    """
    maker = _Maker(nranks, count, dtype, op, root, uneven, in_place, wraps)
    return [getattr(maker, collective)(rank) for rank in range(nranks)]


class _Maker:
    def __init__(
        self,
        nranks: int,
        count: int,
        dtype: str,
        op: str,
        root: int,
        uneven: bool,
        in_place: bool,
        wraps: bool,
    ) -> None:
        self.wraps = wraps
        self.nranks, self.count, self.dtype, self.op = nranks, count, dtype, op
        self.root, self.uneven, self.in_place = root, uneven, in_place
        self.parts = parts_of(nranks, count, uneven)
        self.starts = [sum(self.parts[:rank]) for rank in range(nranks)]
        self.frames: list[np.ndarray] = []

    def all_reduce(self, rank: int) -> Given:
        return self._reduced(rank, {"op": self.op}, True)

    def reduce(self, rank: int) -> Given:
        return self._reduced(rank, {"op": self.op, "root": self.root}, rank == self.root)

    def broadcast(self, rank: int) -> Given:
        data, options = self._data(self.root, self.count), {"root": self.root}
        if self.in_place:
            x = self._framed(data if rank == self.root else self._data(99, self.count))
            return self._given({"x": x, **options}, data, [x] if rank == self.root else [])
        x, out = self._framed(data) if rank == self.root else None, self._empty(self.count)
        return self._given({"x": x, "out": out, **options}, data, [] if x is None else [x])

    def all_gather(self, rank: int) -> Given:
        whole = np.concatenate([self._data(r, part) for r, part in enumerate(self.parts)])
        options = {"counts": self.parts} if self.uneven else {}
        return self._gathered(rank, whole, options)

    def gather(self, rank: int) -> Given:
        options = {"root": self.root}
        if rank != self.root:
            x = self._framed(self._data(rank, self.count))
            return self._given({"x": x, **options}, None, [x])
        whole = np.concatenate([self._data(r, self.count) for r in range(self.nranks)])
        return self._gathered(rank, whole, options)

    def reduce_scatter(self, rank: int) -> Given:
        inputs = [self._data(r, sum(self.parts)) for r in range(self.nranks)]
        expected = reduced(inputs, self.dtype, self.op)[self._own(rank)]
        options = {"op": self.op} | ({"counts": self.parts} if self.uneven else {})
        return self._scattered(rank, inputs[rank], expected, options)

    def scatter(self, rank: int) -> Given:
        whole = self._data(self.root, self.count * self.nranks)
        expected, options = whole[self._own(rank)], {"root": self.root}
        if rank == self.root:
            return self._scattered(rank, whole, expected, options)
        return self._given({"x": None, "out": self._empty(self.count), **options}, expected, [])

    def all_to_all(self, rank: int) -> Given:
        counts = self._matrix()
        rows = [self._data(r, sum(counts[r])) for r in range(self.nranks)]
        starts = [np.cumsum([0, *counts[r]]) for r in range(self.nranks)]
        expected = np.concatenate(
            [rows[r][starts[r][rank] : starts[r][rank + 1]] for r in range(self.nranks)]
        )
        x, out = self._framed(rows[rank]), self._empty(expected.size)
        options: dict[str, Any] = {}
        if self.uneven:
            received = [counts[r][rank] for r in range(self.nranks)]
            options = {"send_counts": counts[rank], "recv_counts": received}
        return self._given({"x": x, "out": out, **options}, expected, [x])

    def _matrix(self) -> list[list[int]]:
        """Elements from each rank to each."""
        ranks = range(self.nranks)
        if not self.uneven:
            return [[self.count] * self.nranks for _ in ranks]
        return [[self.count * ((2 * a + 3 * b) % 4) // 2 for b in ranks] for a in ranks]

    def _reduced(self, rank: int, options: dict[str, Any], returns: bool) -> Given:
        inputs = [self._data(r, self.count) for r in range(self.nranks)]
        x = self._framed(inputs[rank])
        if not returns:
            return self._given({"x": x, **options}, None, [x])
        expected = reduced(inputs, self.dtype, self.op)
        if self.in_place:
            return self._given({"x": x, **options}, expected, [])
        return self._given({"x": x, "out": self._empty(self.count), **options}, expected, [x])

    def _gathered(self, rank: int, whole: np.ndarray, options: dict[str, Any]) -> Given:
        out = self._empty(whole.size)
        if self.in_place:
            out[self._own(rank)] = whole[self._own(rank)]
            return self._given({"x": out[self._own(rank)], "out": out, **options}, whole, [])
        x = self._framed(whole[self._own(rank)])
        return self._given({"x": x, "out": out, **options}, whole, [x])

    def _scattered(
        self, rank: int, whole: np.ndarray, expected: np.ndarray, options: dict[str, Any]
    ) -> Given:
        x, own = self._framed(whole), self._own(rank)
        if not self.in_place:
            out = self._empty(expected.size)
            return self._given({"x": x, "out": out, **options}, expected, [x])
        outside = [x[: own.start], x[own.stop :]]
        return self._given({"x": x, "out": x[own], **options}, expected, outside)

    def _own(self, rank: int) -> slice:
        return slice(self.starts[rank], self.starts[rank] + self.parts[rank])

    def _data(self, rank: int, count: int) -> np.ndarray:
        return values(count, self.dtype, self.op, rank, wraps=self.wraps)

    def _empty(self, count: int) -> np.ndarray:
        return self._framed(np.full(count, 77, numpy_dtype(self.dtype)))

    def _framed(self, array: np.ndarray) -> np.ndarray:
        """A copy in the middle of memory that holds a pattern."""
        size, frame = array.nbytes, _FRAME * array.itemsize
        memory = np.full(size + 2 * frame, 0x5A, np.uint8).view(array.dtype)
        inner = memory[_FRAME : _FRAME + array.size]
        inner[:] = array
        self.frames += [memory[:_FRAME], memory[_FRAME + array.size :]]
        return inner

    def _given(
        self, arguments: dict[str, Any], expected: np.ndarray | None, unchanged: list[np.ndarray]
    ) -> Given:
        frames, self.frames = self.frames, []
        return Given(arguments, expected, [(a, a.copy()) for a in unchanged], frames)

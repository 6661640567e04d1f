"""reduce: fallback and extension against the reference, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from unit.kernels.tables import (
    COUNTS,
    DIVISORS,
    FLOATS,
    OPS,
    Implementation,
    Memory,
    implementations,
    operands,
    same_bits,
)

from rawcoll.kernels import NUMPY_DTYPES, reference
from rawcoll.types import DTYPES, Op

each = pytest.mark.parametrize("tested", implementations(), ids=lambda one: one.name)
each_dtype = pytest.mark.parametrize("name", DTYPES)
each_op = pytest.mark.parametrize("op", OPS, ids=lambda op: op.name.lower())


def check(
    tested: Implementation,
    op: Op,
    name: str,
    nsources: int,
    count: int,
    *,
    divisor: int = 1,
    alias: int | None = None,
    offset: int = 0,
) -> None:
    """Reduce into fresh memory, or over source ``alias``, ``offset`` bytes off alignment."""
    sources = operands(name, nsources, count)
    expected = reference.reduce(op, sources, divisor)
    memory = Memory([np.zeros(count, NUMPY_DTYPES[name]), *sources], offset)
    dst = 0 if alias is None else alias + 1
    with tested.chosen() as kernels:
        code, srcs = DTYPES[name].code, memory.addresses[1:]
        kernels.reduce(op, code, memory.addresses[dst], srcs, count, divisor)
    same_bits(memory.read(dst), expected)
    memory.check_untouched(except_for=dst)


@each
@each_dtype
@each_op
def test_every_count(tested: Implementation, op: Op, name: str) -> None:
    for count in COUNTS:
        check(tested, op, name, 2, count)


@each
@each_dtype
@each_op
def test_every_number_of_sources(tested: Implementation, op: Op, name: str) -> None:
    for nsources in range(1, 10):
        check(tested, op, name, nsources, 1537)


@each
@each_dtype
@each_op
def test_the_destination_may_be_any_source(tested: Implementation, op: Op, name: str) -> None:
    for nsources in (1, 2, 5, 9):
        for alias in range(nsources):
            check(tested, op, name, nsources, 1100, alias=alias)


@each
@each_dtype
@each_op
def test_any_address(tested: Implementation, op: Op, name: str) -> None:
    for offset in (1, 3, DTYPES[name].itemsize, 24):
        for nsources in (2, 5):
            check(tested, op, name, nsources, 600, offset=offset)


@each
@each_dtype
def test_every_divisor(tested: Implementation, name: str) -> None:
    for divisor in DIVISORS:
        for nsources in (1, 2, 5):
            check(tested, Op.SUM, name, nsources, 1537, divisor=divisor)
    check(tested, Op.SUM, name, 3, 20_000, divisor=3, alias=1)


@each
@each_dtype
def test_one_array_may_be_every_source(tested: Implementation, name: str) -> None:
    (source,) = operands(name, 1, 1537)
    memory = Memory([source], 0)
    at = memory.addresses[0]
    with tested.chosen() as kernels:
        kernels.reduce(Op.SUM, DTYPES[name].code, at, (at,) * 6, source.size, 1)
    same_bits(memory.read(0), reference.reduce(Op.SUM, [source] * 6))


@each
def test_a_large_array_and_many_sources(tested: Implementation) -> None:
    check(tested, Op.SUM, "float32", 40, 70_001)


@each
@each_op
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_every_pattern_of_a_16_bit_float(tested: Implementation, op: Op, name: str) -> None:
    patterns = np.arange(2**16, dtype=np.uint16)
    sources = [
        np.concatenate([patterns] * 4).view(NUMPY_DTYPES[name]),
        np.concatenate([np.roll(patterns, shift) for shift in (0, 1, 777, 2**15)]).view(
            NUMPY_DTYPES[name]
        ),
    ]
    memory = Memory([np.zeros_like(sources[0]), *sources], 0)
    with tested.chosen() as kernels:
        code, srcs = DTYPES[name].code, memory.addresses[1:]
        kernels.reduce(op, code, memory.addresses[0], srcs, sources[0].size, 1)
    same_bits(memory.read(0), reference.reduce(op, sources))


@pytest.mark.parametrize("name", FLOATS)
def test_the_reference_orders_zeros_and_keeps_nan(name: str) -> None:
    dtype = NUMPY_DTYPES[name]
    a, b = np.array([-0.0, 0.0, np.nan, 1], dtype), np.array([0.0, -0.0, 1, np.nan], dtype)
    least, greatest = reference.reduce(Op.MIN, [a, b]), reference.reduce(Op.MAX, [a, b])
    assert np.signbit(least[:2]).all()
    assert not np.signbit(greatest[:2]).any()
    nan = reference.CANONICAL_NAN[name]
    for result in (least, greatest):
        assert (result[2:].view(f"u{dtype.itemsize}") == nan).all()


def test_the_reference_wraps_truncates_and_rounds_once() -> None:
    wrapped = reference.reduce(Op.SUM, [np.array([100, -100], np.int8)] * 2)
    assert wrapped.tolist() == [-56, 56]
    halves = reference.reduce(Op.SUM, [np.array([-7, 7], np.int32), np.zeros(2, np.int32)], 2)
    assert halves.tolist() == [-3, 3]
    # 2048 + 1 + 1 is 2050; rounding after each addition would stay at 2048.
    parts = [np.array([value], np.float16) for value in (2048, 1, 1)]
    assert reference.reduce(Op.SUM, parts).tolist() == [2050]

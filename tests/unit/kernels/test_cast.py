"""cast and scale: the implementations against the reference, the reference against exact rules."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from unit.kernels.tables import (
    COUNTS,
    FLOATS,
    INTEGERS,
    Array,
    Implementation,
    Memory,
    implementations,
    operands,
    random_bits,
    same_bits,
    special,
)

from rawcoll.kernels import NUMPY_DTYPES, reference
from rawcoll.types import DTYPES

each = pytest.mark.parametrize("tested", implementations(), ids=lambda one: one.name)


def cast(tested: Implementation, source: Array, dst_name: str, offset: int = 0) -> Array:
    memory = Memory([np.zeros(source.size, NUMPY_DTYPES[dst_name]), source], offset)
    with tested.chosen() as kernels:
        to, code = DTYPES[dst_name].code, DTYPES[source.dtype.name].code
        kernels.cast(to, memory.addresses[0], code, memory.addresses[1], source.size)
    memory.check_untouched(except_for=0)
    return memory.read(0)


def cases(name: str) -> Array:
    """Special values, random patterns, and values near ties and the ends of the integers."""
    dtype = NUMPY_DTYPES[name]
    values = [special(name), random_bits(name, 3000, 5)]
    with np.errstate(all="ignore"):
        if name in FLOATS:
            powers = 2.0 ** np.arange(-30, 66)
            near = np.concatenate([powers, powers - 1, powers + 1, powers * (1 - 2**-11)])
            values.append(np.concatenate([near, -near, near + 0.5]).astype(dtype))
            values.append(np.random.default_rng(6).normal(0, 300, 3000).astype(dtype))
        else:
            bits = dtype.itemsize * 8
            powers = np.array([1 << k for k in range(bits)], f"u{dtype.itemsize}")
            near = [powers, powers - 1, powers + 1, powers + (powers >> 9), powers + (powers >> 8)]
            values += [one.view(dtype) for one in (*near, *(n + n.dtype.type(1) for n in near))]
    return np.concatenate([np.asarray(value, dtype) for value in values])


@each
@pytest.mark.parametrize("src_name", DTYPES)
@pytest.mark.parametrize("dst_name", DTYPES)
def test_every_pair(tested: Implementation, dst_name: str, src_name: str) -> None:
    source = cases(src_name)
    expected = reference.cast(source, NUMPY_DTYPES[dst_name])
    same_bits(cast(tested, source, dst_name), expected)
    same_bits(cast(tested, source[:37], dst_name, offset=1), expected[:37])


@each
@pytest.mark.parametrize("src_name", ["float16", "bfloat16"])
@pytest.mark.parametrize("dst_name", FLOATS)
def test_every_pattern(tested: Implementation, dst_name: str, src_name: str) -> None:
    source = np.arange(2**16, dtype=np.uint16).view(NUMPY_DTYPES[src_name])
    with np.errstate(all="ignore"):
        expected = reference.canonical(source.astype(NUMPY_DTYPES[dst_name]))
    same_bits(cast(tested, source, dst_name), expected)


@each
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("wide", [np.float32, np.float64])
def test_rounding_at_and_beside_every_tie(
    tested: Implementation, name: str, wide: type[np.float32 | np.float64]
) -> None:
    dtype = NUMPY_DTYPES[name]
    finite = np.arange(np.array(np.inf, dtype).view(np.uint16), dtype=np.uint16).view(dtype)
    values = finite.astype(wide)
    # Not the half of the sum, which overflows at the end.
    ties = values[:-1] + (values[1:] - values[:-1]) / 2
    above, below = np.nextafter(ties, wide(np.inf)), np.nextafter(ties, wide(0))
    even = finite.view(np.uint16)[:-1] % 2 == 0
    lower, upper = finite[:-1], finite[1:]
    same_bits(cast(tested, ties, name), np.where(even, lower, upper))
    same_bits(cast(tested, above, name), upper)
    same_bits(cast(tested, below, name), lower)
    same_bits(cast(tested, -above, name), -upper)


@each
@pytest.mark.parametrize("src_name", FLOATS)
def test_in_place(tested: Implementation, src_name: str) -> None:
    source = cases(src_name)
    memory = Memory([source], 0)
    code = DTYPES[src_name].code
    with tested.chosen() as kernels:
        kernels.cast(code, memory.addresses[0], code, memory.addresses[0], source.size)
    same_bits(memory.read(0), reference.canonical(source))


@each
@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("factor", [0.0, -1.0, 1 / 3, 1e-8, 1e300, float("inf"), float("nan")])
def test_scale(tested: Implementation, name: str, factor: float) -> None:
    for count in COUNTS:
        (source,) = operands(name, 1, count)
        memory = Memory([np.zeros_like(source), source], DTYPES[name].itemsize)
        with tested.chosen() as kernels:
            kernels.scale(DTYPES[name].code, *memory.addresses, count, factor)
            same_bits(memory.read(0), reference.scale(source, factor))
            memory.check_untouched(except_for=0)
            at = memory.addresses[1]
            kernels.scale(DTYPES[name].code, at, at, count, factor)
        same_bits(memory.read(1), reference.scale(source, factor))


@pytest.mark.parametrize("src_name", DTYPES)
@pytest.mark.parametrize("dst_name", FLOATS)
def test_the_reference_rounds_once(dst_name: str, src_name: str) -> None:
    """No representable value lies nearer than the result, and an even one wins a tie."""
    dtype = NUMPY_DTYPES[dst_name]
    bits = f"u{dtype.itemsize}"
    infinity = int(np.array(np.inf, dtype).view(bits))
    source = cases(src_name)
    with np.errstate(all="ignore"):
        source = source[np.isfinite(source)][::7] if src_name in FLOATS else source[::7]
    for value, found in zip(source, reference.cast(source, dtype), strict=True):
        pattern = int(found.view(bits)) % 2 ** (8 * dtype.itemsize - 1)
        if 0 < pattern < infinity - 1:
            around = np.array([pattern - 1, pattern + 1], bits).view(dtype)
            exact = abs(_fraction(value))
            away = abs(_fraction(np.abs(found)) - exact)
            others = [abs(_fraction(other) - exact) for other in around]
            assert away <= min(others), f"{value!r}"
            assert away < min(others) or pattern % 2 == 0, f"{value!r}"


def _fraction(value: np.generic) -> Fraction:
    return Fraction(int(value)) if value.dtype.kind in "iu" else Fraction(float(value))


@pytest.mark.parametrize("src_name", FLOATS)
@pytest.mark.parametrize("dst_name", INTEGERS)
def test_the_reference_saturates(dst_name: str, src_name: str) -> None:
    limits = np.iinfo(NUMPY_DTYPES[dst_name])
    source = cases(src_name)
    found = reference.cast(source, NUMPY_DTYPES[dst_name])
    for value, result in zip(source[::5], found[::5], strict=True):
        number = float(value)
        if np.isnan(number):
            expected = 0
        elif np.isinf(number):
            expected = limits.max if number > 0 else limits.min
        else:
            expected = min(max(int(number), limits.min), limits.max)
        assert int(result) == expected, f"{number!r}"

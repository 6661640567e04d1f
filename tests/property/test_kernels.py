"""Properties of the kernels over arbitrary values: fallback and extension are the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.kernels.tables import (
    FLOATS,
    OPS,
    Array,
    Implementation,
    Memory,
    implementations,
    same_bits,
)

from rawcoll.kernels import NUMPY_DTYPES, reference
from rawcoll.types import DTYPES, Op

each = pytest.mark.parametrize("tested", implementations(), ids=lambda one: one.name)


@st.composite
def arrays(draw: st.DrawFn, names: tuple[str, ...], narrays: int) -> list[Array]:
    """``narrays`` arrays of one dtype and length: a few patterns, repeated."""
    dtype = NUMPY_DTYPES[draw(st.sampled_from(names))]
    pattern = st.integers(0, 2 ** (8 * dtype.itemsize) - 1)
    count = draw(st.integers(1, 70))
    drawn = [draw(st.lists(pattern, min_size=1, max_size=5)) for _ in range(narrays)]
    return [np.resize(np.array(one, f"u{dtype.itemsize}").view(dtype), count) for one in drawn]


@each
@given(data=st.data())
def test_reduce_is_the_reference(tested: Implementation, data: st.DataObject) -> None:
    sources = data.draw(arrays(tuple(DTYPES), data.draw(st.integers(1, 6))))
    op = data.draw(st.sampled_from(OPS))
    divisor = data.draw(st.integers(1, 2**31 - 1)) if op is Op.SUM else 1
    alias = data.draw(st.integers(0, len(sources) - 1))
    memory = Memory(sources, data.draw(st.integers(0, 63)))
    dtype, count = sources[0].dtype, sources[0].size
    with tested.chosen() as kernels:
        code = DTYPES[dtype.name].code
        kernels.reduce(op, code, memory.addresses[alias], memory.addresses, count, divisor)
    same_bits(memory.read(alias), reference.reduce(op, sources, divisor))
    memory.check_untouched(except_for=alias)


@each
@given(data=st.data())
def test_cast_is_the_reference(tested: Implementation, data: st.DataObject) -> None:
    (source,) = data.draw(arrays(tuple(DTYPES), 1))
    to = data.draw(st.sampled_from(tuple(DTYPES)))
    memory = Memory(
        [np.zeros(source.size, NUMPY_DTYPES[to]), source], data.draw(st.integers(0, 63))
    )
    dst, src = memory.addresses
    with tested.chosen() as kernels:
        kernels.cast(DTYPES[to].code, dst, DTYPES[source.dtype.name].code, src, source.size)
    same_bits(memory.read(0), reference.cast(source, NUMPY_DTYPES[to]))


@each
@given(data=st.data(), factor=st.floats(allow_nan=True, allow_infinity=True))
def test_scale_is_the_reference(tested: Implementation, data: st.DataObject, factor: float) -> None:
    (source,) = data.draw(arrays(FLOATS, 1))
    memory = Memory([source], data.draw(st.integers(0, 63)))
    (at,) = memory.addresses
    with tested.chosen() as kernels:
        kernels.scale(DTYPES[source.dtype.name].code, at, at, source.size, factor)
    same_bits(memory.read(0), reference.scale(source, factor))


@given(data=st.data())
def test_minimum_and_maximum_do_not_depend_on_the_order(data: st.DataObject) -> None:
    sources: list[Any] = data.draw(arrays(tuple(DTYPES), 3))
    for op in (Op.MIN, Op.MAX):
        same_bits(reference.reduce(op, sources[::-1]), reference.reduce(op, sources))


@given(data=st.data())
def test_a_sum_of_two_commutes(data: st.DataObject) -> None:
    a, b = data.draw(arrays(tuple(DTYPES), 2))
    same_bits(reference.reduce(Op.SUM, [a, b]), reference.reduce(Op.SUM, [b, a]))


@given(data=st.data())
def test_widening_and_back_changes_no_value(data: st.DataObject) -> None:
    (source,) = data.draw(arrays(("float16", "bfloat16", "float32"), 1))
    wide = reference.cast(source, np.dtype(np.float64))
    same_bits(reference.cast(wide, source.dtype), reference.canonical(source))

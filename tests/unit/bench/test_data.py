from __future__ import annotations

import numpy as np
import pytest

from rawcoll.bench.data import (
    Kind,
    bits_of,
    count_wrong,
    fill,
    inputs,
    neutral,
    numpy_dtype,
    reduced,
)
from rawcoll.bench.options import DTYPES, OPS

_FOLD = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}
COUNT = 3000


@pytest.mark.parametrize("nranks", [1, 2, 3, 4, 9, 17, 300])
@pytest.mark.parametrize("op", ["sum", "prod", "min", "max"])
@pytest.mark.parametrize("dtype", list(DTYPES.values()))
def test_any_order_of_the_ranks_gives_the_expected_bits(dtype: str, op: str, nranks: int) -> None:
    kind = Kind(dtype, op, nranks)
    want = reduced(kind, 100, 100 + COUNT)
    for order in (range(nranks), reversed(range(nranks))):
        ranks = iter(order)
        total = inputs(kind, 100, 100 + COUNT, next(ranks))
        for rank in ranks:
            total = _FOLD[op](total, inputs(kind, 100, 100 + COUNT, rank)).astype(want.dtype)
        assert np.array_equal(bits_of(total), bits_of(want))


@pytest.mark.parametrize("nranks", [2, 4, 8])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_an_average_over_a_power_of_two_is_exact(dtype: str, nranks: int) -> None:
    kind = Kind(dtype, "avg", nranks)
    total = reduced(Kind(dtype, "sum", nranks), 0, COUNT).astype(np.float64)
    assert kind.tolerance_ulp == 0
    assert np.array_equal(reduced(kind, 0, COUNT), (total / nranks).astype(numpy_dtype(dtype)))


def test_an_integer_average_truncates_towards_zero() -> None:
    kind = Kind("int32", "avg", 3)
    total = reduced(Kind("int32", "sum", 3), 0, COUNT)
    assert (total < 0).any()
    assert np.array_equal(reduced(kind, 0, COUNT), np.trunc(total / 3).astype(np.int32))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_an_uneven_float_average_may_be_off_by_two_units_in_the_last_place(dtype: str) -> None:
    kind = Kind(dtype, "avg", 3)
    result = reduced(kind, 0, COUNT)
    bits = bits_of(result).copy()
    bits[:4] += np.asarray([1, 2, 3, 4], bits.dtype)
    assert count_wrong(bits.view(result.dtype), kind, 0, None) == 2


@pytest.mark.parametrize(
    "dtype", [name for name in DTYPES.values() if numpy_dtype(name).itemsize >= 4]
)
def test_moved_elements_are_all_distinct(dtype: str) -> None:
    kind = Kind(dtype, None, 4)
    parts = [bits_of(inputs(kind, 0, 5000, rank)) for rank in range(4)]
    assert len(np.unique(np.concatenate(parts))) == 20000


@pytest.mark.parametrize("op", [None, *OPS])
def test_one_element_astray_is_counted(op: str | None) -> None:
    kind = Kind("float32", op, 4)
    array = np.empty(70000, np.float32)
    if op is None:
        fill(array, kind, 2)
    else:
        array[:] = reduced(kind, 0, array.size)
    source = 2 if op is None else None
    assert count_wrong(array, kind, 0, source) == 0
    array[65555] += 1
    assert count_wrong(array, kind, 0, source) == 1
    assert count_wrong(array, kind, 1, source) > 60000 / 4


@pytest.mark.parametrize("op", ["sum", "avg"])
def test_a_missing_or_double_contribution_is_seen_at_nearly_every_element(op: str) -> None:
    kind = Kind("int32", op, 4)
    mine = inputs(kind, 0, COUNT, 1)
    total = reduced(Kind("int32", "sum", 4), 0, COUNT)
    assert count_wrong(total - mine, Kind("int32", "sum", 4), 0, None) > 0.99 * COUNT


def test_neutral_values_keep_under_every_reduction() -> None:
    for op in OPS:
        value = np.full(3, neutral(op), np.float32)
        total = _FOLD.get(op, np.add)(value, value)
        assert np.array_equal(total / 2 if op == "avg" else total, value)

"""The same bits on every rank, in every run, in whatever order the ranks move."""

from __future__ import annotations

import random

import numpy as np
import pytest
from support.expected import assert_same_bits, numpy_dtype

from rawcoll.comm.world import World, run_all

FLOATS = ("float16", "bfloat16", "float32", "float64")
ALGORITHMS = (
    *("ring", "ring(segments=3)", "tree(segments=2)", "halving", "doubling", "direct"),
    *("two_shot", "gather_reduce", "hierarchical(levels=0-1-2/3-4)"),
)


def inexact(rank: int, count: int, dtype: str) -> np.ndarray:
    """Values of very different size, whose sum depends on the order."""
    generator = np.random.default_rng([rank, count])
    return (generator.standard_normal(count) * 2.0 ** generator.integers(-8, 8, count)).astype(
        numpy_dtype(dtype)
    )


def special(rank: int, dtype: str) -> np.ndarray:
    """Infinities, zeros of both signs, NaNs with payloads, in combinations that differ by element."""
    kind = numpy_dtype(dtype)
    table = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]).astype(kind)
    x = table[np.random.default_rng(rank).integers(0, table.size, 400)]
    nan = np.isnan(x.astype(np.float64))
    bits = x.view(f"u{kind.itemsize}")
    bits[nan] |= rank + 1  # a payload of its own
    return x


def all_reduced(world: World, inputs: list[np.ndarray], op: str, algorithm: str, order=None):
    copies = [x.copy() for x in inputs]
    return world.run("all_reduce", [{"x": x, "op": op} for x in copies], algorithm, order)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_any_order_of_steps_gives_the_same_bits(dtype: str, algorithm: str) -> None:
    inputs = [inexact(rank, 203, dtype) for rank in range(5)]
    first = all_reduced(World(5), inputs, "sum", algorithm)
    for seed in range(4):
        again = all_reduced(World(5), inputs, "sum", algorithm, random.Random(seed).choice)
        for result in again:
            assert_same_bits(result, first[0])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("op", ["sum", "prod", "min", "max", "avg"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_specials_are_the_same_on_all_ranks(dtype: str, op: str, algorithm: str) -> None:
    inputs = [special(rank, dtype) for rank in range(5)]
    results = all_reduced(World(5), inputs, op, algorithm)
    for result in results[1:]:
        assert_same_bits(result, results[0])
    wide = np.stack([x.astype(np.float64) for x in inputs])
    nan = np.isnan(results[0].astype(np.float64))
    if op in ("min", "max"):
        assert (nan == np.isnan(wide).any(axis=0)).all()
    canonical = np.array([np.nan]).astype(numpy_dtype(dtype)).view(f"u{results[0].itemsize}")[0]
    positive = canonical & np.array(np.iinfo(canonical.dtype).max >> 1, canonical.dtype)
    assert (results[0].view(canonical.dtype)[nan] == positive).all()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_minus_zero_is_less_than_zero(algorithm: str) -> None:
    inputs = [np.array([0.0, -0.0, 0.0], np.float32) for _ in range(5)]
    inputs[3][:] = -0.0, 0.0, 0.0
    lowest = all_reduced(World(5), inputs, "min", algorithm)
    highest = all_reduced(World(5), inputs, "max", algorithm)
    for low, high in zip(lowest, highest, strict=True):
        assert np.signbit(low).tolist() == [True, True, False]
        assert np.signbit(high).tolist() == [False, False, False]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_in_place_and_out_of_place_have_the_same_bits(algorithm: str) -> None:
    inputs = [inexact(rank, 151, "float32") for rank in range(5)]
    first = all_reduced(World(5), inputs, "sum", algorithm)
    given = [{"x": x, "out": np.empty_like(x), "op": "sum"} for x in inputs]
    for result in World(5).run("all_reduce", given, algorithm):
        assert_same_bits(result, first[0])


@pytest.mark.parametrize("segments", [1, 2, 4])
def test_segments_of_a_ring_do_not_change_bits_where_blocks_are_the_same(segments: int) -> None:
    count = 4 * 4 * 16 * 4  # every block divides into aligned segments
    inputs = [inexact(rank, count, "float32") for rank in range(4)]
    one = all_reduced(World(4), inputs, "sum", "ring(segments=1)")
    several = all_reduced(World(4), inputs, "sum", f"ring(segments={segments})")
    assert_same_bits(several[0], one[0])


@pytest.mark.parametrize("seed", range(12))
def test_calls_in_flight_do_not_disturb_each_other(seed: int) -> None:
    world, chooser = World(4), random.Random(seed)
    kinds = ["ring(segments=2)", "tree", "halving", "doubling", "two_shot", "direct"]
    begun = []
    for number in range(5):
        inputs = [np.arange(50) * (number + 1) + rank for rank in range(4)]
        given = [{"x": x} for x in inputs]
        expected = np.sum(inputs, axis=0)
        begun.append((world.begin("all_reduce", given, chooser.choice(kinds)), expected))
    run_all([cursor for one, _ in begun for cursor in one.cursors], chooser.choice)
    for one, expected in begun:
        for result in one.results:
            assert result.tolist() == expected.tolist()


def test_schedule_that_cannot_end_is_found_at_once() -> None:
    from rawcoll.errors import TransportError

    world = World(3)
    begun = world.begin("all_reduce", [{"x": np.ones(4)} for _ in range(3)], "ring")
    with pytest.raises(
        TransportError,
        match=r"deadlock: found no rank that can move: rank 0 round 2 waits for \(2,\)",
    ):
        run_all(begun.cursors[:2])

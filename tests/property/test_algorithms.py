"""Algorithms prove for whatever parameters they take."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from rawcoll.algorithms import (
    Binomial,
    Direct,
    Doubling,
    Halving,
    Hierarchical,
    Ring,
    Tree,
    TwoShot,
    algorithm_from,
    prove,
    text,
)
from rawcoll.algorithms.base import Algorithm
from rawcoll.algorithms.levels import Levels

ACROSS = st.sampled_from(
    [Ring(), Ring(segments=2), Tree(), Halving(), Doubling(), Direct(), TwoShot(), Binomial()]
)


@st.composite
def orders(draw: st.DrawFn) -> tuple[int, ...]:
    return tuple(draw(st.permutations(range(draw(st.integers(1, 9))))))


@st.composite
def hierarchies(draw: st.DrawFn) -> tuple[Levels, int]:
    """Nodes of 1 to 4 ranks, grouped up to two levels deep, with ranks in any places."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    ranks = iter(draw(st.permutations(range(sum(sizes)))))
    levels: list[Levels] = [tuple(next(ranks) for _ in range(size)) for size in sizes]
    for _ in range(draw(st.integers(0, 2))):
        cuts = sorted(draw(st.sets(st.integers(0, len(levels)), max_size=3)) | {0, len(levels)})
        levels = [tuple(levels[i:j]) for i, j in pairwise(cuts)]
    return tuple(levels), sum(sizes)


@given(orders(), st.integers(1, 5), st.sampled_from(sorted(Ring.collectives)), st.data())
@settings(max_examples=40)
def test_rings(order: tuple[int, ...], segments: int, collective: str, data: st.DataObject) -> None:
    root = data.draw(st.integers(0, len(order) - 1)) if collective == "broadcast" else 0
    prove(Ring(segments, order), collective, len(order), root)


@given(st.integers(1, 20), st.integers(1, 6), st.sampled_from(sorted(Tree.collectives)), st.data())
@settings(max_examples=40)
def test_trees(nranks: int, segments: int, collective: str, data: st.DataObject) -> None:
    root = data.draw(st.integers(0, nranks - 1)) if collective != "all_reduce" else 0
    prove(Tree(segments), collective, nranks, root)


@given(st.integers(1, 10), st.integers(1, 12))
@settings(max_examples=40)
def test_two_shots(nranks: int, segments: int) -> None:
    assert prove(TwoShot(segments), "all_reduce", nranks).depth == (1 if nranks > 1 else 0)


@given(st.integers(1, 12), st.integers(1, 12), st.sampled_from(sorted(Direct.collectives)))
@settings(max_examples=40)
def test_windows(nranks: int, window: int, collective: str) -> None:
    prove(Direct(window), collective, nranks)


@given(hierarchies(), ACROSS, st.data())
@settings(max_examples=100)
def test_hierarchies(shape: tuple[Levels, int], across: Algorithm, data: st.DataObject) -> None:
    levels, nranks = shape
    algorithm = Hierarchical(levels, across)
    assert algorithm_from(text(algorithm)) == algorithm
    offered = sorted(algorithm.collectives & across.collectives)
    collective = data.draw(st.sampled_from(offered))
    root = data.draw(st.integers(0, nranks - 1)) if collective == "broadcast" else 0
    prove(algorithm, collective, nranks, root)

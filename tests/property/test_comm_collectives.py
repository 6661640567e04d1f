"""Collectives over random counts, orders, segments, roots and interleavings."""

from __future__ import annotations

import itertools
import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.expected import COLLECTIVES, REDUCING, UNEVEN, calls

from rawcoll.algorithms import Direct, Hierarchical, Ring, Tree, TwoShot, names_for
from rawcoll.comm.world import World, run_all

RANKS = st.integers(1, 7)
SEGMENTS = st.integers(1, 6)


@st.composite
def algorithms(draw: st.DrawFn, collective: str, nranks: int) -> object:
    """An algorithm that offers the collective, with parameters."""
    names = [name for name in names_for(collective) if name not in ("builtin", "hierarchical")]
    if Hierarchical.collectives >= {collective}:
        names.append("hierarchical")
    name = draw(st.sampled_from(names))
    match name:
        case "ring":
            order = draw(st.none() | st.permutations(range(nranks)).map(tuple))
            return Ring(draw(SEGMENTS), order)
        case "tree":
            return Tree(draw(SEGMENTS))
        case "two_shot":
            return TwoShot(draw(SEGMENTS))
        case "direct":
            return Direct(draw(SEGMENTS))
        case "hierarchical":
            ranks = draw(st.permutations(range(nranks)))
            cuts = sorted(draw(st.sets(st.integers(1, nranks - 1)))) if nranks > 1 else []
            bounds = [0, *cuts, nranks]
            nodes = [tuple(ranks[a:b]) for a, b in itertools.pairwise(bounds)]
            return Hierarchical(tuple(nodes))
    return name


@given(data=st.data(), collective=st.sampled_from(COLLECTIVES), nranks=RANKS)
@settings(max_examples=150)
def test_any_call(data: st.DataObject, collective: str, nranks: int) -> None:
    algorithm = data.draw(algorithms(collective, nranks))
    given_calls = calls(
        collective,
        nranks,
        data.draw(st.integers(0, 90)),
        data.draw(st.sampled_from(["int8", "uint64", "bfloat16", "float32"])),
        data.draw(st.sampled_from(["sum", "prod", "min", "max", "avg"]))
        if collective in REDUCING
        else "sum",
        root=data.draw(st.integers(0, nranks - 1)),
        uneven=collective in UNEVEN and data.draw(st.booleans()),
        in_place=data.draw(st.booleans()),
    )
    chooser = random.Random(data.draw(st.integers(0, 1 << 16)))
    arguments = [rank.arguments for rank in given_calls]
    results = World(nranks).run(collective, arguments, algorithm, chooser.choice)
    for rank, result in zip(given_calls, results, strict=True):
        rank.check(result)


@given(
    nranks=st.integers(2, 5),
    seed=st.integers(0, 1 << 16),
    made=st.lists(
        st.tuples(
            st.sampled_from(["ring", "tree", "doubling", "two_shot", "direct"]), st.integers(0, 60)
        ),
        min_size=1,
        max_size=5,
    ),
)
@settings(max_examples=60)
def test_any_interleaving_of_calls(nranks: int, seed: int, made: list[tuple[str, int]]) -> None:
    world, chooser = World(nranks), random.Random(seed)
    begun = []
    for number, (algorithm, count) in enumerate(made):
        inputs = [np.arange(count) * (number + 1) ** rank for rank in range(nranks)]
        expected = np.sum(inputs, axis=0)
        begun.append((world.begin("all_reduce", [{"x": x} for x in inputs], algorithm), expected))
    run_all([cursor for one, _ in begun for cursor in one.cursors], chooser.choice)
    for one, expected in begun:
        assert all(result.tolist() == expected.tolist() for result in one.results)


@given(counts=st.lists(st.integers(0, 40), min_size=1, max_size=7), in_place=st.booleans())
@settings(max_examples=60)
def test_any_counts(counts: list[int], in_place: bool) -> None:
    nranks, total = len(counts), sum(counts)
    starts = [sum(counts[:rank]) for rank in range(nranks)]
    whole = [np.arange(total) + 1000 * rank for rank in range(nranks)]
    sums = np.sum(whole, axis=0)
    for algorithm in ("ring", "halving", "direct"):
        given_calls = []
        for rank in range(nranks):
            x = whole[rank].copy()
            own = slice(starts[rank], starts[rank] + counts[rank])
            given_calls.append({"x": x, "counts": counts} | ({"out": x[own]} if in_place else {}))
        for rank, result in enumerate(World(nranks).run("reduce_scatter", given_calls, algorithm)):
            assert result.tolist() == sums[starts[rank] :][: counts[rank]].tolist()
    expected = np.concatenate([whole[r][: counts[r]] for r in range(nranks)])
    for algorithm in ("ring", "halving", "doubling", "direct"):
        given_calls = [{"x": whole[r][: counts[r]], "counts": counts} for r in range(nranks)]
        for result in World(nranks).run("all_gather", given_calls, algorithm):
            assert result.tolist() == expected.tolist()

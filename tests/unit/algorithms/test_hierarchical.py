"""Hierarchies: uneven nodes, any placement of ranks, any depth, any algorithm across."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from rawcoll.algorithms import (
    Binomial,
    Builtin,
    Direct,
    Doubling,
    GatherReduce,
    Halving,
    Hierarchical,
    Ring,
    Tree,
    TwoShot,
    algorithm_from,
    programs,
    prove,
    text,
)
from rawcoll.algorithms.base import Algorithm
from rawcoll.algorithms.levels import Levels, shape_of
from rawcoll.errors import InvalidArgument, ScheduleError
from rawcoll.schedule.metrics import metrics

SHAPES = (
    (1,),
    (4,),
    (1, 1),
    (2, 2),
    (1, 2, 1),
    (3, 1),
    (1, 2, 3),
    (2, 3, 4),
    (1, 1, 5),
    (4, 1, 1, 2),
    (3, 3, 3),
    (5, 2, 1, 1, 4),
)
ACROSS: tuple[Algorithm, ...] = (
    Ring(),
    Ring(segments=2),
    Tree(),
    Tree(segments=2),
    Halving(),
    Doubling(),
    Direct(),
    Direct(window=1),
    TwoShot(segments=2),
    GatherReduce(),
    Binomial(),
)
DEEP: tuple[Levels, ...] = (
    (((0, 1), (2, 3)), ((4, 5), (6, 7))),
    (((0,), (1, 2, 3)), ((4, 5),)),
    (((5, 0), (3,)), ((1,),), ((2, 4, 6), (7, 8))),
    ((((0, 1), (2,)), ((3, 4),)), (((5,), (6, 7)), ((8, 9), (10,)))),
    ((((0,),),),),
)


def nodes_of(shape: Sequence[int], ranks: Sequence[int]) -> Levels:
    """Nodes of the given sizes over the ranks in their order."""
    left = iter(ranks)
    return tuple(tuple(next(left) for _ in range(size)) for size in shape)


def placements(shape: Sequence[int]) -> list[Levels]:
    """Ranks in order, dealt out to the nodes in turn, and in disorder."""
    nranks = sum(shape)
    mixed = list(range(nranks))
    Random(nranks).shuffle(mixed)
    by_node = [node for node, size in enumerate(shape) for _ in range(size)]
    turns = sorted(range(nranks), key=lambda i: (by_node[:i].count(by_node[i]), by_node[i]))
    dealt = [turns.index(i) for i in range(nranks)]
    return [nodes_of(shape, ranks) for ranks in (range(nranks), dealt, mixed)]


def prove_all(algorithm: Hierarchical, nranks: int) -> None:
    for collective in sorted(algorithm.collectives & algorithm.across.collectives):
        for root in {0, nranks // 2, nranks - 1} if collective == "broadcast" else {0}:
            proof = prove(algorithm, collective, nranks, root)
            # A shape may leave a round without messages: a root that is alone in its node, say.
            assert proof.rounds <= algorithm.rounds(collective, nranks)
            if collective == "all_reduce":
                assert proof.rounds == algorithm.rounds(collective, nranks)


@pytest.mark.parametrize("across", ACROSS, ids=text)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_uneven_nodes_prove(shape: tuple[int, ...], across: Algorithm) -> None:
    for levels in placements(shape):
        prove_all(Hierarchical(levels, across), sum(shape))


@pytest.mark.parametrize("across", [Ring(), Tree(), Halving(), Direct()], ids=text)
@pytest.mark.parametrize("levels", DEEP, ids=str)
def test_deep_hierarchies_prove(levels: Levels, across: Algorithm) -> None:
    nranks = sum(map(len, shape_of(levels).nodes))
    prove_all(Hierarchical(levels, across), nranks)


@pytest.mark.parametrize("collective", ["all_reduce", "broadcast"])
def test_the_library_below_may_run_across_equal_nodes(collective: str) -> None:
    prove(Hierarchical(((0, 1), (3, 2), (4, 5)), Builtin()), collective, 6)


def test_the_library_below_cannot_run_where_units_lie_apart() -> None:
    with pytest.raises(ScheduleError, match="native: units are not contiguous"):
        programs(Hierarchical(((0, 1), (2, 3)), Builtin()), "all_gather", 4)


def test_the_library_below_cannot_run_two_rails_of_a_rank() -> None:
    with pytest.raises(ScheduleError, match="found a second one"):
        programs(Hierarchical(((0,), (1, 2)), Builtin()), "all_reduce", 3)


@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter", "all_gather"])
def test_equal_nodes_send_their_share_to_other_nodes(collective: str) -> None:
    """4 nodes of 3: each rank sends to other nodes what a ring of 4 sends of a third."""
    levels = nodes_of((3, 3, 3, 3), range(12))
    schedule = programs(Hierarchical(levels), collective, 12)
    across = [
        sum(nbytes for peer, nbytes in rank.links if peer // 3 != number // 3)
        for number, rank in enumerate(metrics(schedule).ranks)
    ]
    passes = 2 if collective == "all_reduce" else 1
    assert across == [schedule.programs[0].nunits / 3 * passes * 3 / 4] * 12


def test_rounds_are_the_sum_of_the_levels() -> None:
    levels = nodes_of((2, 2, 2, 2), range(8))
    assert Hierarchical(levels).rounds("all_reduce", 8) == 1 + 2 * 3 + 1
    assert Hierarchical(levels).rounds("reduce_scatter", 8) == 1 + 3
    assert Hierarchical(levels).rounds("all_gather", 8) == 3 + 1
    assert Hierarchical(levels, Tree()).rounds("broadcast", 8) == 1 + 2 + 1
    deep = (((0, 1), (2, 3)), ((4, 5), (6, 7)))
    assert Hierarchical(deep).rounds("all_reduce", 8) == 2 + 2 + 2


def test_rails_start_at_different_nodes() -> None:
    shape = shape_of(((0, 1), (2, 3), (4, 5)))
    assert [shape.rail(piece) for piece in range(2)] == [(0, 1, 2), (1, 2, 0)]


def test_pieces_of_uneven_nodes() -> None:
    shape = shape_of(((0, 1, 2, 3, 4), (5, 6), (7,)))
    assert [[shape.owner(node, c) for c in range(5)] for node in range(3)] == [
        [0, 1, 2, 3, 4],
        [5, 5, 5, 6, 6],
        [7, 7, 7, 7, 7],
    ]
    assert list(shape.pieces(1, 6)) == [3, 4]
    assert [shape.primary(1, c) for c in range(5)] == [5, None, None, 6, None]


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ((), "not a hierarchy"),
        (((0, 1), ()), "not a hierarchy"),
        (((0, 1), (1, 2)), "not a hierarchy"),
        (((0, 2),), "not a hierarchy"),
        (((0, 1), ((2,), (3,))), "not a hierarchy"),
        (((0, 1), 2), "ranks beside nodes"),
    ],
)
def test_bad_levels_are_refused(levels: Levels, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        Hierarchical(levels)


def test_other_numbers_of_ranks_are_refused() -> None:
    with pytest.raises(ScheduleError, match="nranks: too many: found 5, expected at most 4"):
        programs(Hierarchical(((0, 1), (2, 3))), "all_reduce", 5)


@pytest.mark.parametrize("levels", [*DEEP, (0, 1, 2), ((0, 1), (2,)), ((0,),)], ids=str)
def test_text_of_levels_reads_back(levels: Levels) -> None:
    algorithm = Hierarchical(levels, Ring(segments=2))
    assert algorithm_from(text(algorithm)) == algorithm


def test_across_is_fitted_to_a_piece() -> None:
    flat = Hierarchical(nodes_of((4, 4), range(8))).fitted(16 << 20, 8)
    assert flat.across == Ring().fitted(4 << 20, 2)
    deep = Hierarchical((((0, 1), (2, 3)), ((4, 5), (6, 7)))).fitted(16 << 20, 8)
    assert deep.across == Ring().fitted(4 << 20, 2)

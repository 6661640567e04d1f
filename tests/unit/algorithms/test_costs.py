"""Rounds, bytes and roundings are those that each module states; no data is moved."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log2

import pytest

from rawcoll.algorithms import (
    Binomial,
    Direct,
    Doubling,
    GatherReduce,
    Halving,
    Ring,
    Tree,
    TwoShot,
    programs,
)
from rawcoll.algorithms.base import Algorithm
from rawcoll.schedule.metrics import metrics

RANKS = (2, 3, 4, 5, 7, 8, 16)
SEGMENTS = (1, 2, 3)


def sent(algorithm: Algorithm, collective: str, nranks: int, root: int = 0) -> list[Fraction]:
    """What each rank sends, as a share of the array."""
    schedule = programs(algorithm, collective, nranks, root)
    nunits = schedule.programs[0].nunits
    return [Fraction(rank.sent_nbytes, nunits) for rank in metrics(schedule).ranks]


def nrounds(algorithm: Algorithm, collective: str, nranks: int) -> int:
    return metrics(programs(algorithm, collective, nranks)).rounds


@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize("s", SEGMENTS)
def test_ring(n: int, s: int) -> None:
    ring = Ring(segments=s)
    share = Fraction(n - 1, n)
    assert nrounds(ring, "all_reduce", n) == 2 * (n - 1) * s
    assert nrounds(ring, "reduce_scatter", n) == (n - 1) * s
    assert nrounds(ring, "all_gather", n) == (n - 1) * s
    assert nrounds(ring, "broadcast", n) == n * s + n - 2
    assert sent(ring, "all_reduce", n) == [2 * share] * n
    assert sent(ring, "reduce_scatter", n) == [share] * n
    assert sent(ring, "all_gather", n) == [share] * n
    assert sorted(sent(ring, "broadcast", n)) == [0] + [1] * (n - 1)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1)])
def test_a_ring_talks_to_its_neighbours_in_the_order(order: tuple[int, ...]) -> None:
    links = metrics(programs(Ring(order=order), "all_reduce", 4)).links
    neighbours = {(order[i], order[(i + 1) % 4]) for i in range(4)}
    assert {(src, dst) for src, dst, _ in links} == neighbours


@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize("s", SEGMENTS)
def test_tree(n: int, s: int) -> None:
    tree = Tree(segments=s)
    lag = 1 if s == 1 else 2
    height, inner = int(log2(n)), int(log2(n - 1))
    assert nrounds(tree, "all_reduce", n) == (lag + 1) * height + s - 1
    assert nrounds(tree, "reduce", n) == lag * inner + s
    assert nrounds(tree, "broadcast", n) == inner + s
    assert max(sent(tree, "all_reduce", n)) <= 2
    assert max(sent(tree, "reduce", n)) <= 1
    assert max(sent(tree, "broadcast", n)) <= Fraction(3, 2)
    assert sum(sent(tree, "reduce", n)) == sum(sent(tree, "broadcast", n)) == n - 1


@pytest.mark.parametrize("n", range(2, 18))
def test_a_rank_is_an_inner_node_of_one_tree_at_most(n: int) -> None:
    schedule = programs(Tree(), "all_reduce", n)
    for rank in metrics(schedule).ranks:
        assert rank.reduces <= 1


@pytest.mark.parametrize("n", RANKS)
def test_halving(n: int) -> None:
    steps = int(log2(n))
    p = 1 << steps
    fold = 0 if p == n else 2
    assert nrounds(Halving(), "all_reduce", n) == 2 * steps + fold
    assert nrounds(Halving(), "reduce_scatter", n) == steps + fold
    assert nrounds(Halving(), "all_gather", n) == steps + fold
    most = 2 * Fraction(p - 1, p)
    assert max(sent(Halving(), "all_reduce", n)) == most + (1 if fold else 0)
    if not fold:
        assert sent(Halving(), "reduce_scatter", n) == [most / 2] * n
        assert sent(Halving(), "all_gather", n) == [most / 2] * n


@pytest.mark.parametrize("n", RANKS)
def test_doubling(n: int) -> None:
    steps = int(log2(n))
    fold = 0 if 1 << steps == n else 2
    for collective in ("all_reduce", "barrier"):
        assert nrounds(Doubling(), collective, n) == steps + fold
        assert max(sent(Doubling(), collective, n)) == steps + (1 if fold else 0)
    assert nrounds(Doubling(), "all_gather", n) == ceil(log2(n))
    assert sent(Doubling(), "all_gather", n) == [Fraction(n - 1, n)] * n


@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize("w", [1, 2, 5, 20])
def test_direct(n: int, w: int) -> None:
    direct = Direct(window=w)
    share = Fraction(n - 1, n)
    for collective in sorted(direct.collectives):
        assert nrounds(direct, collective, n) == ceil((n - 1) / w)
    assert sent(direct, "all_reduce", n) == [n - 1] * n
    for collective in ("all_gather", "reduce_scatter", "all_to_all"):
        assert sent(direct, collective, n) == [share] * n
    root = n - 1
    assert sent(direct, "reduce", n, root) == [1] * (n - 1) + [0]
    assert sent(direct, "gather", n, root) == [Fraction(1, n)] * (n - 1) + [0]
    assert sent(direct, "broadcast", n, root) == [0] * (n - 1) + [n - 1]
    assert sent(direct, "scatter", n, root) == [0] * (n - 1) + [share]
    for rank in metrics(programs(direct, "all_to_all", n)).ranks:
        assert rank.sends == rank.recvs == n - 1


@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize(("s", "rounds"), [(1, 2), (2, 4), (3, 5), (8, 10)])
def test_two_shot(n: int, s: int, rounds: int) -> None:
    two_shot = TwoShot(segments=s)
    assert nrounds(two_shot, "all_reduce", n) == rounds
    assert sent(two_shot, "all_reduce", n) == [2 * Fraction(n - 1, n)] * n


@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize("gather", [Ring(), Ring(segments=2), Doubling(), Direct(), Halving()])
def test_gather_reduce(n: int, gather: Algorithm) -> None:
    algorithm = GatherReduce(gather)
    assert nrounds(algorithm, "all_reduce", n) == nrounds(gather, "all_gather", n)
    expected = [n * share for share in sent(gather, "all_gather", n)]
    assert sent(algorithm, "all_reduce", n) == expected


@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize("root", [0, 1])
def test_binomial(n: int, root: int) -> None:
    steps = ceil(log2(n))
    for collective in sorted(Binomial.collectives):
        assert nrounds(Binomial(), collective, n) == steps
    assert sent(Binomial(), "broadcast", n, root)[root] == steps
    assert sent(Binomial(), "scatter", n, root)[root] == Fraction(n - 1, n)
    assert max(sent(Binomial(), "gather", n, root)) <= Fraction(1, 2)
    assert sorted(sent(Binomial(), "reduce", n, root)) == [0] + [1] * (n - 1)


def test_segments_need_no_more_scratch_than_they_hide() -> None:
    """Scratch, as a share of the array, does not grow with the number of segments."""
    for algorithm in (Ring, Tree, TwoShot):
        few, many = (programs(algorithm(segments=s), "all_reduce", 8) for s in (2, 16))
        shares = [
            max(r.scratch_nbytes for r in metrics(s).ranks) / s.programs[0].nunits
            for s in (few, many)
        ]
        assert shares[1] <= shares[0]

"""Every algorithm proves, for each collective, number of ranks and root."""

from __future__ import annotations

from random import Random

import pytest

from rawcoll.algorithms import (
    Binomial,
    Builtin,
    Direct,
    Doubling,
    GatherReduce,
    Halving,
    Ring,
    Tree,
    TwoShot,
    prove,
    text,
)
from rawcoll.algorithms.base import Algorithm
from rawcoll.schedule.collectives import COLLECTIVES

ALGORITHMS: tuple[Algorithm, ...] = (
    Ring(),
    Ring(segments=2),
    Ring(segments=3),
    Tree(),
    Tree(segments=2),
    Tree(segments=3),
    Halving(),
    Doubling(),
    Direct(),
    Direct(window=3),
    TwoShot(),
    TwoShot(segments=2),
    TwoShot(segments=3),
    TwoShot(segments=5),
    GatherReduce(),
    GatherReduce(gather=Doubling()),
    GatherReduce(gather=Ring(segments=2)),
    Binomial(),
    Builtin(),
)
CASES = [(a, c) for a in ALGORITHMS for c in sorted(a.collectives)]
MANY = (Ring(), Tree(segments=2), Halving(), Doubling(), Direct(), TwoShot(segments=2), Binomial())
LARGE = [(a, c, 32) for a in MANY for c in sorted(a.collectives)]
LARGE += [(a, min(a.collectives - {"all_gather", "barrier"}), 64) for a in MANY]


def _ids(value: object) -> str:
    return text(value) if isinstance(value, Algorithm) else str(value)


def _roots(collective: str, nranks: int) -> set[int]:
    return {0, nranks // 2, nranks - 1} if COLLECTIVES[collective].rooted else {0}


@pytest.mark.parametrize(("algorithm", "collective"), CASES, ids=_ids)
def test_it_proves_for_up_to_17_ranks(algorithm: Algorithm, collective: str) -> None:
    for nranks in range(1, 18):
        for root in _roots(collective, nranks):
            proof = prove(algorithm, collective, nranks, root)
            assert proof.rounds == algorithm.rounds(collective, nranks), (nranks, root)


@pytest.mark.parametrize(("algorithm", "collective", "nranks"), LARGE, ids=_ids)
def test_it_proves_for_many_ranks(algorithm: Algorithm, collective: str, nranks: int) -> None:
    root = nranks // 3 if COLLECTIVES[collective].rooted else 0
    assert prove(algorithm, collective, nranks, root).rounds == algorithm.rounds(collective, nranks)


@pytest.mark.parametrize("segments", [None, 2])
@pytest.mark.parametrize("collective", sorted(Ring.collectives))
def test_a_ring_proves_in_any_order(collective: str, segments: int | None) -> None:
    random = Random(7)
    for nranks in (1, 2, 3, 5, 8, 13):
        order = list(range(nranks))
        random.shuffle(order)
        algorithm = Ring(segments, tuple(order))
        for root in _roots(collective, nranks):
            prove(algorithm, collective, nranks, root)


@pytest.mark.parametrize(
    ("algorithm", "collective", "depth"),
    [
        (Ring(), "all_reduce", 7),
        (Ring(), "reduce_scatter", 7),
        (Tree(), "all_reduce", 3),
        (Tree(), "reduce", 3),
        (Halving(), "all_reduce", 3),
        (Halving(), "reduce_scatter", 3),
        (Doubling(), "all_reduce", 3),
        (Binomial(), "reduce", 3),
        (Direct(), "all_reduce", 1),
        (Direct(window=2), "reduce_scatter", 1),
        (TwoShot(segments=3), "all_reduce", 1),
        (GatherReduce(), "all_reduce", 1),
    ],
    ids=_ids,
)
def test_roundings_of_8_ranks(algorithm: Algorithm, collective: str, depth: int) -> None:
    assert prove(algorithm, collective, 8).depth == depth

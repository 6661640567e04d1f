"""The example of an algorithm from outside the package, and functions as algorithms."""

from __future__ import annotations

from pathlib import Path

import pytest

from rawcoll.algorithms import FunctionAlgorithm, algorithm_from, programs, prove
from rawcoll.errors import ScheduleError
from rawcoll.schedule.builder import Builder
from rawcoll.schedule.metrics import metrics
from rawcoll.schedule.ops import INPUT

MINE = f"{Path(__file__).parents[3] / 'examples' / 'my_algorithm.py'}:two_way_ring"


@pytest.mark.parametrize("nranks", range(2, 18))
def test_the_example_proves(nranks: int) -> None:
    mine = algorithm_from(MINE)
    assert prove(mine, "all_reduce", nranks).rounds == 2 * (nranks - 1)
    assert mine.rounds("all_reduce", nranks) == 2 * (nranks - 1)


def test_the_example_uses_links_both_ways_alike() -> None:
    links = metrics(programs(algorithm_from(MINE), "all_reduce", 8)).links
    assert {nbytes for _, _, nbytes in links} == {2 * 7}
    assert {(src, dst) for src, dst, _ in links} == {
        (i, (i + d) % 8) for i in range(8) for d in (1, -1)
    }


def test_the_example_refuses_one_rank() -> None:
    with pytest.raises(ScheduleError, match="two_way_ring: nranks: too few: found 1"):
        programs(algorithm_from(MINE), "all_reduce", 1)


def forgetful(rank: int, nranks: int, b: Builder) -> None:
    """Ranks that only look at the rank before them."""
    slot = b.scratch()
    b.send(0, (rank + 1) % nranks, b.span(0))
    b.recv(0, (rank - 1) % nranks, b.span(0, 1, slot))
    b.reduce(0, (b.span(0, 1, slot), b.span(0)), b.span(0))


def test_a_wrong_function_does_not_prove() -> None:
    with pytest.raises(ScheduleError, match="expected contributions of ranks"):
        prove(FunctionAlgorithm(forgetful, "forgetful"), "all_reduce", 4)


def swap(rank: int, nranks: int, b: Builder) -> None:
    """An all_to_all, which reads INPUT by destination and writes OUTPUT by source."""
    b.units(nranks)
    b.copy(-1, b.span(rank, buffer=INPUT), b.span(rank))
    for distance in range(1, nranks):
        to, source = (rank + distance) % nranks, (rank - distance) % nranks
        b.send(distance, to, b.span(to, buffer=INPUT))
        b.recv(distance, source, b.span(source))


def test_a_function_may_write_an_all_to_all() -> None:
    assert prove(FunctionAlgorithm(swap, "swap"), "all_to_all", 5).rounds == 4

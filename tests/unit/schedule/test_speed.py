"""Building and proving stay near-linear; limits are several times what was measured."""

from __future__ import annotations

import gc
from time import process_time

import pytest
from support.schedules import pairwise, ring, schedule_of, two_shot

from rawcoll.schedule.check import check
from rawcoll.schedule.passes import out_of_place


def seconds(call) -> float:
    """Least processor time of three runs: what else runs on the machine only adds.

    Garbage of the suite before is not theirs to collect.
    """
    times = []
    gc.disable()
    try:
        for _ in range(3):
            before = process_time()
            call()
            times.append(process_time() - before)
    finally:
        gc.enable()
    return min(times)


def test_one_rank_of_4096():
    """12,285 steps; about 0.1 s on a busy machine."""
    assert seconds(lambda: ring(1365, 4096)) < 0.5
    program = ring(1365, 4096)
    assert seconds(lambda: out_of_place(program)) < 0.5


def test_time_grows_with_the_number_of_steps():
    """8 times the steps; were time to grow with their square, it would be 64 times the time."""
    assert seconds(lambda: ring(1, 4096)) < 32 * seconds(lambda: ring(1, 512))


@pytest.mark.parametrize("make", [ring, two_shot, pairwise])
def test_the_check_at_64_ranks(make):
    """About 8,000 messages; 0.2 to 0.5 s on a busy machine."""
    schedule = schedule_of(make, 64)
    assert seconds(lambda: check(schedule)) < 3

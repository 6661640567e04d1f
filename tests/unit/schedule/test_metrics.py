"""Counts of rounds, messages and bytes, against figures worked out by hand."""

from __future__ import annotations

import pytest
from support.schedules import doubling, pairwise, ring, schedule_of, two_shot

from rawcoll.schedule.metrics import metrics, rank_metrics
from rawcoll.schedule.program import Partition


@pytest.mark.parametrize("nranks", [2, 3, 8])
def test_a_ring(nranks):
    counted = metrics(schedule_of(ring, nranks), Partition.balanced(1000 * nranks, nranks), 4)
    assert counted.rounds == counted.max_transfers == 2 * (nranks - 1)
    assert counted.messages == 2 * nranks * (nranks - 1)
    nbytes = 2 * (nranks - 1) * 4000
    assert counted.max_sent_nbytes == nbytes
    assert counted.links == tuple((rank, (rank + 1) % nranks, nbytes) for rank in range(nranks))
    for rank in counted.ranks:
        assert (rank.reduces, rank.scratch_nbytes) == (nranks - 1, 4000)
        assert rank.reduced_nbytes == 2 * 4000 * (nranks - 1)
        assert rank.received_nbytes == nbytes


def test_two_shot_and_doubling_without_a_partition():
    two = metrics(schedule_of(two_shot, 4)).ranks[0]
    assert (two.transfers, two.sends, two.recvs, two.sent_nbytes) == (2, 6, 6, 6)
    assert two.links == ((1, 2), (2, 2), (3, 2))
    assert (two.reduces, two.reduced_nbytes, two.scratch_nbytes) == (1, 4, 3)
    assert rank_metrics(doubling(0, 8)).sent_nbytes == 3 * 2


def test_copies_are_counted():
    assert rank_metrics(pairwise(1, 3), itemsize=8).copied_nbytes == 16


def test_empty_messages_are_not_there():
    # Only unit 3 has elements: 3 to 0 to 1 to 2, then on to 3, 0 and 1.
    counted = metrics(schedule_of(ring, 4), Partition((0, 0, 0, 0, 5)))
    assert counted.messages == 6
    assert counted.rounds == 6
    assert [rank.transfers for rank in counted.ranks] == [4, 3, 2, 3]
    assert [rank.sends for rank in counted.ranks] == [2, 1, 1, 2]


def test_nothing_at_all():
    counted = metrics(schedule_of(two_shot, 3), Partition.balanced(0, 3))
    assert (counted.messages, counted.rounds, counted.links) == (0, 0, ())
    assert counted.max_transfers == 0


def test_one_rank_of_many():
    counted = rank_metrics(ring(7, 600), Partition.balanced(6000, 600))
    assert (counted.transfers, counted.sent_nbytes) == (1198, 11980)

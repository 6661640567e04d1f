"""Holds, slot sizes and partitions."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace

import pytest
from support.schedules import ring, two_shot

from rawcoll.errors import InvalidArgument
from rawcoll.schedule.ops import OUTPUT, Send, Span
from rawcoll.schedule.program import Hold, Partition, slot_sizes


def test_values_are_frozen_equal_and_hashable():
    span = Span(OUTPUT, 2, 5)
    assert span == Span(buffer=OUTPUT, start=2, stop=5)
    assert hash(span) == hash(Span(OUTPUT, 2, 5))
    assert span != Send(OUTPUT, span)
    assert replace(span, stop=6).nunits == 4
    assert pickle.loads(pickle.dumps(span)) == span
    with pytest.raises(FrozenInstanceError):
        span.start = 3
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'stop'"):
        Span(OUTPUT, 2)
    assert ring(1, 4) == ring(1, 4)
    assert len({ring(1, 4), ring(1, 4), ring(2, 4)}) == 2


def test_a_hold_moves_only_by_a_write_outside():
    hold = Hold(2, 6)
    assert hold.after_write(3, 6) is hold
    assert hold.after_write(5, 7) == Hold(5, 7)
    assert Hold().after_write(0, 1) == Hold(0, 1)


def test_slot_sizes_are_of_the_largest_hold():
    assert slot_sizes(ring(0, 4), [0, 10, 11, 12, 13]) == [1]
    assert slot_sizes(ring(0, 4), [0, 10, 21, 32, 43]) == [11]
    assert slot_sizes(two_shot(1, 3), [0, 5, 12, 13]) == [7, 7]


def test_balanced_partitions():
    assert Partition.balanced(10, 4).boundaries == (0, 2, 5, 7, 10)
    assert Partition.balanced(2, 4).boundaries == (0, 0, 1, 1, 2)
    assert Partition.balanced(0, 3).boundaries == (0, 0, 0, 0)
    assert Partition.balanced(100, 3, align=16).boundaries == (0, 32, 64, 100)
    partition = Partition.balanced(10, 4)
    assert (partition.nunits, partition.count, partition.elements(1, 3)) == (4, 10, 5)


def test_partitions_by_counts():
    assert Partition.by_counts((3, 0, 4), 3).boundaries == (0, 3, 3, 7)
    assert Partition.by_counts((3, 0, 4), 6).boundaries == (0, 1, 3, 3, 3, 5, 7)
    with pytest.raises(InvalidArgument, match="nunits: does not divide: found 4, expected a mul"):
        Partition.by_counts((3, 0, 4), 4)

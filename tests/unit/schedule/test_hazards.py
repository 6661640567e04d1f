"""The waits that the builder derives: enough (``check`` proves those), and no more than enough."""

from __future__ import annotations

from rawcoll.schedule.builder import Builder
from rawcoll.schedule.program import Spec


def builder(nunits: int = 8) -> Builder:
    return Builder(Spec("all_reduce", 0, 2), nunits)


def waits(b: Builder) -> list[tuple[int, ...]]:
    return [step.waits for step in b.build().steps]


def test_streams_without_common_units_do_not_wait():
    b = builder()
    for r in range(3):
        b.send(r, 1, b.span(0))
        b.copy(r, b.span(1), b.span(2))
    assert waits(b) == [()] * 6


def test_two_reads_do_not_wait():
    b = builder()
    b.send(0, 1, b.span(0))
    b.copy(0, b.span(0), b.span(1))
    assert waits(b) == [(), ()]


def test_each_kind_of_conflict_waits():
    b = builder()
    b.recv(0, 1, b.span(0, 4))
    b.copy(0, b.span(3), b.span(6))  # reads what was written
    b.recv(1, 1, b.span(3))  # writes what was read
    b.copy(1, b.span(7), b.span(3))  # writes what was written
    b.send(2, 1, b.span(3))  # reads what was written, now by the other stream
    assert waits(b) == [(), (0,), (1,), (2,), (3,)]


def test_a_wait_that_an_earlier_one_implies_is_left_out():
    b = builder()
    b.recv(0, 1, b.span(0, 2))
    b.recv(1, 1, b.span(2, 4))
    b.copy(1, b.span(2), b.span(4))  # waits for step 1, so for step 0 too
    b.copy(1, b.span(0), b.span(5))
    assert waits(b) == [(), (), (1,), ()]


def test_one_wait_stands_for_several():
    b = builder()
    b.copy(-1, b.span(0), b.span(1))
    b.copy(-1, b.span(0), b.span(2))
    b.send(0, 1, b.span(1, 3))
    assert waits(b) == [(), (), (1,)]


def test_a_write_that_moves_a_slot_waits_for_all_that_touched_it():
    b = builder()
    slot = b.scratch()
    b.recv(0, 1, b.span(0, 2, slot))
    b.copy(0, b.span(0, 1, slot), b.span(5))
    b.recv(1, 1, b.span(4, 6, slot))
    assert waits(b) == [(), (0,), (1,)]


def test_a_write_inside_a_hold_waits_for_its_own_units_only():
    b = builder()
    slot = b.scratch(0, 6)
    b.recv(0, 1, b.span(0, 2, slot))
    b.copy(0, b.span(0, 1, slot), b.span(7))
    b.recv(1, 1, b.span(4, 6, slot))
    assert waits(b) == [(), (0,), ()]


def test_spans_that_cut_each_other():
    b = builder()
    b.recv(0, 1, b.span(0, 8))
    b.copy(0, b.span(2, 4), b.span(2, 4))
    b.send(1, 1, b.span(0, 2))
    b.send(2, 1, b.span(4, 8))
    b.send(3, 1, b.span(3, 5))
    assert waits(b) == [(), (0,), (), (), (1,)]

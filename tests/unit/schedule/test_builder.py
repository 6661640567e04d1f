"""What builders are given and what they make of it."""

from __future__ import annotations

import pytest
from support.schedules import Make, doubling, ring, schedule_of, two_shot

from rawcoll.errors import ScheduleError
from rawcoll.schedule.builder import Builder, merge
from rawcoll.schedule.check import check
from rawcoll.schedule.ops import COMPUTE, OUTPUT, WIRE, Copy, Native, Reduce, Span, Transfer
from rawcoll.schedule.program import Hold, Program, Schedule, Spec


def builder(nunits: int = 4) -> Builder:
    return Builder(Spec("all_reduce", 0, 2), nunits)


def test_steps_stand_by_round_whatever_the_order_of_calls():
    b = builder()
    b.copy(2, b.span(0), b.span(1))
    b.send(2, 1, b.span(0))
    b.copy(-1, b.span(2), b.span(3))
    b.recv(0, 1, b.span(2))
    b.recv(2, 1, b.span(3))
    program = b.build()
    kinds = [type(step.action) for step in program.steps]
    assert kinds == [Copy, Transfer, Transfer, Copy]
    assert [step.stream for step in program.steps] == [COMPUTE, WIRE, WIRE, COMPUTE]
    last = program.steps[2].action
    assert (last.round, len(last.sends), len(last.recvs)) == (2, 1, 1)


def test_spans_of_no_units_leave_nothing():
    b = builder()
    empty = b.span(2, 2)
    b.send(0, 1, empty)
    b.recv(0, 1, empty)
    b.copy(0, empty, empty)
    b.reduce(0, (empty, empty), empty)
    assert b.build().steps == ()


def test_spans_are_made_once():
    b = builder()
    assert b.span(1) is b.span(1, 2)
    assert b.span(1) == Span(OUTPUT, 1, 2)


def test_slots_and_units():
    b = builder()
    b.units(6)
    assert (b.scratch(), b.scratch(1, 3)) == (2, 3)
    program = b.build()
    assert program.nunits == 6
    assert program.scratch == (Hold(), Hold(1, 3))


def test_a_native_step_has_its_round_to_itself():
    b = builder()
    b.native(0, "all_reduce", (0, 1), b.span(0), b.span(0))
    with pytest.raises(ScheduleError, match="rank 0 round 0: found a second one"):
        b.native(0, "all_reduce", (0, 1), b.span(0), b.span(0))
    b.send(0, 1, b.span(0))
    with pytest.raises(ScheduleError, match="round 0: found messages beside a native step"):
        b.build()


def grown(make: Make, nranks: int, **options) -> Schedule:
    """Each program taken into an empty builder."""

    def again(rank: int, nranks: int) -> Program:
        inner = make(rank, nranks)
        b = Builder(inner.spec, options.get("nunits", inner.nunits))
        b.include(inner, **{k: v for k, v in options.items() if k != "nunits"})
        return b.build()

    return schedule_of(again, nranks)


@pytest.mark.parametrize("make", [ring, two_shot, doubling])
def test_including_a_program_gives_it_back(make):
    assert grown(make, 4) == schedule_of(make, 4)


def test_included_rounds_move():
    program = grown(ring, 3, round=10).programs[0]
    rounds = [s.action.round for s in program.steps if isinstance(s.action, Transfer)]
    assert rounds == [10, 11, 12, 13]
    check(grown(ring, 3, round=10))


def test_included_units_go_where_they_are_placed():
    """A ring of three units on every other unit of a larger array, a native step on the rest."""
    place = [(OUTPUT, 1), (OUTPUT, 3), (OUTPUT, 5)]

    def make(rank: int, nranks: int) -> Program:
        b = Builder(Spec("all_reduce", rank, nranks), 6)
        b.include(ring(rank, nranks), place=place)
        for i in range(3):
            units = b.span(2 * i)
            b.native(90 + i, "all_reduce", (0, 1, 2), units, units, last=True)
        return b.build()

    check(schedule_of(make, 3))


def test_an_included_span_is_cut_where_its_units_part():
    b = Builder(Spec("all_reduce", 0, 2), 4)
    b.include(doubling(0, 2), place=[(OUTPUT, 3), (OUTPUT, 0)])
    program = b.build()
    assert [send.span for send in program.steps[0].action.sends] == [
        Span(OUTPUT, 3, 4),
        Span(OUTPUT, 0, 1),
    ]
    assert program.scratch == (Hold(3, 4), Hold(0, 1))
    assert sum(isinstance(step.action, Reduce) for step in program.steps) == 2


def test_units_placed_nowhere_are_left_out():
    b = Builder(Spec("all_reduce", 0, 2), 1)
    b.include(doubling(0, 2), place=[(OUTPUT, 0), None])
    assert b.build().steps[0].action.sends[0].span == Span(OUTPUT, 0, 1)


def test_a_native_step_cannot_be_cut():
    inner = builder(2)
    inner.native(0, "all_reduce", (0, 1), inner.span(0, 2), inner.span(0, 2), last=True)
    with pytest.raises(ScheduleError, match="native: units are not contiguous here"):
        builder(4).include(inner.build(), place=[(OUTPUT, 0), (OUTPUT, 2)])


def test_included_ranks_are_renamed():
    """Pairs reduce, then partners across: two levels of doubling from one of two ranks."""

    def make(rank: int, nranks: int) -> Program:
        b = Builder(Spec("all_reduce", rank, nranks), 2)
        pair, across = (rank & -2, rank | 1), (rank & 1, (rank & 1) + 2)
        b.include(doubling(rank & 1, 2), ranks=pair, last=False)
        b.include(doubling(rank >> 1, 2), ranks=across, round=1)
        return b.build()

    assert check(schedule_of(make, 4)).depth == 2


def test_merged_programs_share_transfers():
    """Two rings, one on even units and one on odd ones, in opposite directions."""

    def half(rank: int, nranks: int, odd: int) -> Program:
        b = Builder(Spec("all_reduce", rank, nranks), 2 * nranks)
        place = [(OUTPUT, 2 * unit + odd) for unit in range(nranks)]
        order = tuple(range(nranks)) if odd else tuple(reversed(range(nranks)))
        b.include(ring(order.index(rank), nranks), ranks=order, place=place)
        return b.build()

    def both(rank: int, nranks: int) -> Program:
        return merge([half(rank, nranks, 0), half(rank, nranks, 1)])

    proof = check(schedule_of(both, 4))
    assert (proof.rounds, proof.transfers, proof.messages) == (6, 6, 48)


def test_merging_what_does_not_fit():
    with pytest.raises(ScheduleError, match="merge: programs do not fit together: found"):
        merge([ring(0, 3), ring(1, 3)])
    with pytest.raises(ScheduleError, match="merge: programs do not fit together: found \\[\\]"):
        merge([])


def test_a_native_step_is_built():
    b = builder()
    b.native(3, "broadcast", (0, 1), b.span(0), b.span(0), root=1)
    (step,) = b.build().steps
    assert step.action == Native("broadcast", (0, 1), b.span(0), b.span(0), 1, False, 3)

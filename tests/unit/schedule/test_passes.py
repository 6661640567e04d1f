"""Out of place: what is read where, what is copied, and what is refused."""

from __future__ import annotations

import pytest
from support.schedules import apart, gather_doubling, pairwise, ring, schedule_of, two_shot

from rawcoll.errors import ScheduleError
from rawcoll.schedule.builder import Builder
from rawcoll.schedule.check import check
from rawcoll.schedule.ops import INPUT, OUTPUT, SCRATCH, Copy, Reduce, Span, Transfer, writes_of
from rawcoll.schedule.passes import out_of_place
from rawcoll.schedule.program import Program, Schedule, Spec


def builder(collective: str = "all_reduce", rank: int = 0, nunits: int = 4) -> Builder:
    return Builder(Spec(collective, rank, 2), nunits)


def actions(b: Builder) -> list:
    return [step.action for step in out_of_place(b.build()).steps]


def test_reads_go_to_the_input_until_the_first_write():
    b = builder(nunits=1)
    b.send(0, 1, b.span(0))
    b.recv(1, 1, b.span(0))
    b.send(2, 1, b.span(0))
    first, _, third = actions(b)
    assert first.sends[0].span == Span(INPUT, 0, 1)
    assert third.sends[0].span == Span(OUTPUT, 0, 1)


def test_a_receive_beside_a_send_does_not_count_as_before_it():
    b = builder(nunits=2)
    b.send(0, 1, b.span(0))
    b.recv(0, 1, b.span(1))
    (transfer, copy) = sorted(actions(b), key=lambda a: isinstance(a, Copy))
    assert transfer.sends[0].span.buffer == INPUT
    assert copy == Copy(Span(INPUT, 0, 1), Span(OUTPUT, 0, 1))


def test_a_mixed_message_is_made_whole_by_a_copy_at_the_start():
    b = builder(nunits=4)
    b.recv(0, 1, b.span(1))
    b.send(1, 1, b.span(0, 2))
    b.send(2, 1, b.span(0))
    b.recv(3, 1, b.span(0, 4))
    copy, _, mixed, alone, _ = actions(b)
    assert copy == Copy(Span(INPUT, 0, 1), Span(OUTPUT, 0, 1))
    assert mixed.sends[0].span == Span(OUTPUT, 0, 2)
    assert alone.sends[0].span == Span(INPUT, 0, 1), "a copied unit need not be waited for"


def test_a_mixed_local_action_is_split():
    b = builder(nunits=4)
    slot = b.scratch(0, 4)
    b.recv(0, 1, b.span(0, 4, slot))
    b.recv(0, 1, b.span(1, 3))
    b.reduce(0, (b.span(0, 4), b.span(0, 4, slot)), b.span(0, 4))
    reduces = [action for action in actions(b) if isinstance(action, Reduce)]
    assert [action.srcs[0] for action in reduces] == [
        Span(INPUT, 0, 1),
        Span(OUTPUT, 1, 3),
        Span(INPUT, 3, 4),
    ]
    assert [action.dst.nunits for action in reduces] == [1, 2, 1]


def test_a_mixed_action_that_moves_a_slot_stays_whole():
    b = builder(nunits=2)
    slot = b.scratch()
    b.recv(0, 1, b.span(1))
    b.copy(0, b.span(0, 2), b.span(0, 2, slot))
    assert actions(b) == [
        Copy(Span(INPUT, 0, 1), Span(OUTPUT, 0, 1)),
        actions(b)[1],
        Copy(Span(OUTPUT, 0, 2), Span(SCRATCH, 0, 2)),
    ]


def test_units_that_nothing_writes_are_copied_and_waited_for_by_nobody():
    schedule = apart(schedule_of(gather_doubling, 4))
    check(schedule)
    for program in apart(schedule_of(two_shot, 4)).programs:
        assert not any(isinstance(step.action, Copy) for step in program.steps)
    b = Builder(Spec("broadcast", 0, 2), 3)
    b.send(0, 1, b.span(0, 3))
    program = out_of_place(b.build())
    assert program.steps[0].action == Copy(Span(INPUT, 0, 3), Span(OUTPUT, 0, 3))
    assert program.steps[1].waits == ()


def test_what_is_out_of_place_already_stays_as_it_is():
    for program in (pairwise(1, 3), out_of_place(ring(1, 3))):
        assert out_of_place(program) is program


def test_writes_outside_the_result_are_refused():
    b = builder("reduce_scatter")
    b.recv(0, 1, b.span(1, 3))
    message = (
        r"rank 0 step 0: writes outside the result: found units \[1, 3\), expected them within"
    )
    with pytest.raises(ScheduleError, match=message) as caught:
        out_of_place(b.build())
    assert (caught.value.rank, caught.value.collective) == (0, "reduce_scatter")


def test_reads_of_undefined_units_are_refused():
    b = builder("all_gather")
    b.send(0, 1, b.span(1, 3))
    with pytest.raises(ScheduleError, match="rank 0 step 0: reads unit 2: found it undefined"):
        out_of_place(b.build())


def test_a_mixed_message_outside_the_result_is_refused():
    b = builder("reduce_scatter")
    b.recv(0, 1, b.span(1))
    b.send(1, 1, b.span(1, 3))
    with pytest.raises(ScheduleError, match=r"step 1: reads unit 2 of the input and written units"):
        out_of_place(b.build())


def test_both_ends_of_mixed_messages_still_match():
    """Rank 0 forwards its own unit and a received one as one message, after one more round."""

    def make(rank: int) -> Program:
        b = Builder(Spec("all_gather", rank, 3), 3)
        if rank == 0:
            b.recv(0, 1, b.span(1))
            b.recv(0, 2, b.span(2))
            b.send(1, 1, b.span(0, 3))
            b.send(1, 2, b.span(0, 3))
        else:
            b.send(0, 0, b.span(rank))
            b.recv(1, 0, b.span(0, 3))
        return b.build()

    schedule = Schedule(tuple(make(rank) for rank in range(3)))
    check(schedule)
    check(apart(schedule))


def test_the_input_is_never_written():
    for program in apart(schedule_of(ring, 5)).programs:
        written = [span.buffer for step in program.steps for span in writes_of(step.action)]
        assert INPUT not in written
        assert any(isinstance(step.action, Transfer) for step in program.steps)

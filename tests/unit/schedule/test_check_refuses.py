"""Correct schedules with one thing wrong: each is refused, and told what is wrong where."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from support.schedules import (
    apart,
    doubling,
    pairwise,
    ring,
    schedule_of,
    two_shot,
)

from rawcoll.errors import ScheduleError
from rawcoll.schedule.builder import Builder
from rawcoll.schedule.check import check
from rawcoll.schedule.ops import INPUT, OUTPUT, SCRATCH, Reduce, Send, Span, Transfer
from rawcoll.schedule.program import Hold, Program, Schedule, Spec
from rawcoll.schedule.races import check_races


def edited(schedule: Schedule, rank: int, **changes) -> Schedule:
    programs = list(schedule.programs)
    programs[rank] = replace(programs[rank], **changes)
    return Schedule(tuple(programs))


def step_edited(schedule: Schedule, rank: int, index: int, **changes) -> Schedule:
    """Change fields of a step, or of its action."""
    steps = list(schedule.programs[rank].steps)
    own = {key: changes.pop(key) for key in ("waits", "stream", "action") if key in changes}
    step = replace(steps[index], **own)
    steps[index] = replace(step, action=replace(step.action, **changes)) if changes else step
    return edited(schedule, rank, steps=tuple(steps))


def find(program: Program, kind: type, skip: int = 0) -> int:
    """Index of the first step of a kind, after ``skip`` others."""
    return [i for i, step in enumerate(program.steps) if isinstance(step.action, kind)][skip]


def refused(schedule: Schedule, message: str, **options) -> ScheduleError:
    with pytest.raises(ScheduleError, match=re.escape(message)) as caught:
        check(schedule, **options)
    return caught.value


def make_schedule(nranks: int, body: Callable[[Builder], None], **spec) -> Schedule:
    programs = []
    for rank in range(nranks):
        b = Builder(Spec(spec.get("collective", "all_reduce"), rank, nranks), spec.get("nunits", 1))
        body(b)
        programs.append(b.build())
    return Schedule(tuple(programs))


# --- frame and form


def test_no_programs():
    refused(Schedule(()), "programs: found none")


def test_programs_that_differ():
    schedule = schedule_of(ring, 3)
    refused(edited(schedule, 1, nunits=6), "rank 1: spec: found")
    refused(edited(schedule, 2, spec=Spec("reduce", 2, 3)), "rank 2: spec: found")


def test_units_that_do_not_divide():
    schedule = make_schedule(2, lambda b: None, collective="all_gather", nunits=3)
    refused(
        schedule, "nunits: all_gather has a part for each rank: found 3, expected a multiple of 2"
    )


def test_all_to_all_in_place():
    refused(make_schedule(2, lambda b: None, collective="all_to_all", nunits=2), "in-place")


@pytest.mark.parametrize(
    ("span", "message"),
    [
        (Span(OUTPUT, 1, 5), "output[1:5]: bad range: found [1, 5), expected units within [0, 3)"),
        (Span(OUTPUT, 1, 1), "output[1:1]: bad range"),
        (Span(OUTPUT, -1, 1), "output[-1:1]: bad range"),
        (Span(SCRATCH + 7, 0, 1), "scratch7[0:1]: no such slot: found 1"),
    ],
)
def test_spans_that_do_not_exist(span, message):
    error = refused(
        step_edited(schedule_of(ring, 3), 1, 0, sends=(Send(2, span),)),
        f"rank 1 step 0 (round 0): {message}",
    )
    assert (error.rank, error.round, error.collective) == (1, 0, "all_reduce")


@pytest.mark.parametrize("peer", [1, 3, -1])
def test_peers_that_do_not_exist(peer):
    schedule = step_edited(schedule_of(ring, 3), 1, 0, sends=(Send(peer, Span(OUTPUT, 1, 2)),))
    refused(schedule, f"peer: found {peer}, expected another rank below 3")


def test_a_transfer_of_nothing():
    refused(step_edited(schedule_of(ring, 3), 0, 0, sends=(), recvs=()), "found no messages")


def test_rounds_that_do_not_increase():
    schedule = schedule_of(ring, 3)
    for rank in range(3):
        schedule = step_edited(schedule, rank, 2, round=0)
    refused(
        schedule, "rank 0 step 2 (round 0): round: found 0 after 0, expected rounds to increase"
    )


def test_streams_and_waits():
    schedule = schedule_of(ring, 3)
    refused(step_edited(schedule, 0, 0, stream=1), "stream: found 1, expected 0")
    refused(
        step_edited(schedule, 0, 1, waits=(1,)), "waits: found step 1, expected an earlier step"
    )
    refused(step_edited(schedule, 0, 1, waits=(-1,)), "waits: found step -1")
    refused(step_edited(schedule, 0, 2, waits=(0,)), "waits: found step 0 of the same stream")


def test_operands_of_other_units():
    schedule = schedule_of(two_shot, 3)
    index = find(schedule.programs[0], Reduce)
    srcs = schedule.programs[0].steps[index].action.srcs
    refused(
        step_edited(schedule, 0, index, srcs=(Span(OUTPUT, 1, 2), *srcs[1:])),
        "operands: found output[1:2] into output[0:1], expected the same units",
    )
    refused(
        step_edited(schedule, 0, index, srcs=srcs[:1]), "found 1 operands, expected two or more"
    )


def test_writes_outside_the_result():
    def body(b: Builder) -> None:
        b.send(0, 1 - b.spec.rank, b.span(b.spec.rank))
        b.recv(0, 1 - b.spec.rank, b.span(1 - b.spec.rank))

    message = "rank 0 step 0 (round 0): writes output[1:2]: outside the result: "
    gather = make_schedule(2, body, collective="gather", nunits=2)
    check(make_schedule(2, body, collective="all_gather", nunits=2))
    refused(gather, "rank 1 step 0 (round 0): writes output[0:1]: outside the result")
    scatter = schedule_of(lambda r, n: Builder(Spec("scatter", r, n), 2).build(), 2)
    transfer = gather.programs[0].steps[0]
    back = gather.programs[1].steps[0]
    scatter = edited(edited(scatter, 0, steps=(transfer,)), 1, steps=(back,))
    refused(scatter, message + "expected units within [0, 1)")


def test_the_input_is_never_written_and_is_not_there_in_place():
    schedule = apart(schedule_of(ring, 3))
    index = find(schedule.programs[0], Reduce)
    dst = replace(schedule.programs[0].steps[index].action.dst, buffer=INPUT)
    refused(step_edited(schedule, 0, index, dst=dst), "the input is never written")
    refused(
        step_edited(schedule_of(ring, 3), 0, 0, sends=(Send(1, Span(INPUT, 0, 1)),)),
        "reads input[0:1]: an in-place program has no input array",
    )


def test_reads_outside_a_hold():
    schedule = schedule_of(ring, 3)
    index = find(schedule.programs[0], Reduce)
    arriving = schedule.programs[0].steps[0].action.recvs[0]
    moved = replace(arriving, span=replace(arriving.span, start=0, stop=1))
    schedule = step_edited(schedule, 2, 0, sends=(Send(0, Span(OUTPUT, 0, 1)),))
    refused(
        step_edited(schedule, 0, 0, recvs=(moved,)),
        f"rank 0 step {index}: reads scratch0[2:3]: outside what the slot holds: found units [0",
    )


def test_reads_of_scratch_never_written():
    schedule = schedule_of(two_shot, 3)
    index = find(schedule.programs[0], Reduce)
    mine, first, _ = schedule.programs[0].steps[index].action.srcs
    program = schedule.programs[0]
    extra = replace(first, buffer=SCRATCH + len(program.scratch))
    schedule = edited(schedule, 0, scratch=(*program.scratch, Hold(0, 1)))
    refused(
        step_edited(schedule, 0, index, srcs=(mine, first, extra)),
        "reads scratch2[0:1]: unit 0 is undefined there",
    )


def test_two_receives_that_overlap():
    schedule = schedule_of(two_shot, 3)
    first, second = schedule.programs[0].steps[0].action.recvs
    changed = (first, replace(second, span=first.span))
    refused(
        step_edited(schedule, 0, 0, recvs=changed),
        "messages of one transfer overlap: found scratch0[0:1] and scratch0[0:1]",
    )


@pytest.mark.parametrize("units", [(0, 1), (0, 3), (2, 4)])
def test_a_send_and_a_receive_that_overlap(units):
    def body(b: Builder) -> None:
        peer = 1 - b.spec.rank
        b.send(0, peer, b.span(0, 3))
        b.recv(0, peer, b.span(*units))
        b.send(0, peer, b.span(*units))
        b.recv(0, peer, b.span(0, 3, b.scratch(0, 3)))

    schedule = make_schedule(2, body, nunits=4)
    for rank in range(2):  # the second message of each end first, so that both ends agree
        sends = schedule.programs[rank].steps[0].action.sends
        schedule = step_edited(schedule, rank, 0, sends=sends[::-1])
    refused(schedule, "rank 0 step 0 (round 0): messages of one transfer overlap: found output")


def test_two_receives_into_a_slot_that_does_not_hold_both():
    def body(b: Builder) -> None:
        slot = b.scratch()
        if b.spec.rank == 0:
            b.recv(0, 1, b.span(0, buffer=slot))
            b.recv(0, 1, b.span(1, buffer=slot))
        else:
            b.send(0, 0, b.span(0))
            b.send(0, 0, b.span(1))

    refused(make_schedule(2, body, nunits=2), "messages of one transfer overlap")


# --- messages


def test_a_dropped_send():
    schedule = schedule_of(ring, 3)
    action = schedule.programs[0].steps[2].action
    refused(
        step_edited(schedule, 0, 2, action=Transfer((), action.recvs, 1)),
        "rank 1 step 5 (round 3): receives from rank 0, which has ended: deadlock",
    )


def test_a_dropped_receive():
    schedule = schedule_of(two_shot, 3)
    action = schedule.programs[2].steps[-1].action
    error = refused(
        step_edited(schedule, 2, 2, action=Transfer(action.sends, action.recvs[1:], 1)),
        "rank 0 step 2 (round 1): sends to rank 2, which has ended: deadlock",
    )
    assert error.peers == (2,)


def test_a_cycle():
    def body(b: Builder) -> None:
        rank = b.spec.rank
        b.send(0, (rank + 1) % 3, b.span(0))
        b.recv(1, (rank - 1) % 3, b.span(0))

    refused(
        make_schedule(3, body),
        "deadlock: rank 0 round 0 waits for rank 1 round 0, which waits for rank 2 round 0, "
        "which waits for rank 0 round 0: cycle",
    )


def test_messages_in_another_order():
    """Rank 1 wants in its first round what rank 0 sends in its second."""

    def body(b: Builder) -> None:
        if b.spec.rank == 0:
            b.send(0, 2, b.span(0))
            b.send(1, 1, b.span(0))
        elif b.spec.rank == 1:
            b.recv(0, 0, b.span(0))
            b.send(1, 2, b.span(0))
        else:
            b.recv(0, 1, b.span(0))
            b.recv(1, 0, b.span(0))

    refused(
        make_schedule(3, body), "rank 0 round 0 waits for rank 2 round 0, which waits for rank 1"
    )


def test_a_native_step_that_one_rank_leaves_out():
    def body(b: Builder) -> None:
        if b.spec.rank:
            b.native(0, "all_reduce", (0, 1, 2), b.span(0), b.span(0), last=True)

    refused(make_schedule(3, body), "rank 1 step 0 (round 0): joins with rank 0, which has ended")


def test_a_native_step_of_two_rounds():
    def body(b: Builder) -> None:
        b.native(b.spec.rank, "all_reduce", (0, 1), b.span(0), b.span(0), last=True)

    refused(make_schedule(2, body), "native: found rounds [0, 1] on ranks (0, 1), expected one")


def test_a_native_step_among_strangers():
    def body(b: Builder) -> None:
        b.native(0, "all_reduce", (0, 0), b.span(0), b.span(0), last=True)

    refused(make_schedule(2, body), "ranks: found (0, 0), expected different ranks below 2 with 0")


def test_a_wrong_round():
    schedule = schedule_of(ring, 3)
    refused(
        step_edited(schedule, 1, 5, round=7),
        "rank 0 step 5 (round 3): sends output[0:1] to rank 1, which receives it in round 7",
    )


def test_swapped_spans():
    schedule = schedule_of(two_shot, 3)
    first, second = schedule.programs[1].steps[0].action.sends
    swapped = (replace(first, span=second.span), replace(second, span=first.span))
    refused(
        step_edited(schedule, 1, 0, sends=swapped),
        "rank 1 step 0 (round 0): sends output[2:3] to rank 0, which receives it as scratch0[0:1]: "
        "expected units [2, 3)",
    )


def test_all_to_all_sends_only_what_is_for_the_peer():
    schedule = schedule_of(pairwise, 3)
    index = find(schedule.programs[0], Transfer)
    refused(
        step_edited(schedule, 0, index, sends=(Send(1, Span(INPUT, 4, 6)),)),
        "sends input[4:6] to rank 1: expected units of that rank's part [2, 4)",
    )
    refused(
        step_edited(schedule, 0, index, sends=(Send(1, Span(OUTPUT, 0, 2)),)),
        "expected input to output: parts differ in size for each pair",
    )
    refused(schedule, "all_to_all: found aliased", aliased=True)


# --- values


def test_mine_first():
    """Both ranks of a pair put their own operand first: sums agree, bits need not."""
    schedule = schedule_of(doubling, 2)
    index = find(schedule.programs[1], Reduce)
    srcs = schedule.programs[1].steps[index].action.srcs
    refused(
        step_edited(schedule, 1, index, srcs=srcs[::-1]),
        "rank 1 unit 0: another expression than on rank 0: found (1 + 0), expected (0 + 1); "
        "operands must stand in rank order on every rank, not 'mine first'",
    )


def test_other_parentheses():
    """Rank 1 adds three operands from left to right, rank 0 the last two first."""

    def body(b: Builder) -> None:
        rank, mine = b.spec.rank, b.span(0)
        slots = [mine if peer == rank else b.span(0, buffer=b.scratch(0, 1)) for peer in range(3)]
        for peer in range(3):
            if peer != rank:
                b.send(0, peer, mine)
                b.recv(0, peer, slots[peer])
        if rank == 0:
            b.reduce(0, slots[1:], slots[1])
            b.reduce(0, slots[:2], mine, last=True)
        else:
            b.reduce(0, slots, mine, last=True)

    refused(
        make_schedule(3, body),
        "rank 1 unit 0: another expression than on rank 0: "
        "found (0 + 1 + 2), expected (0 + (1 + 2))",
    )


def test_a_contribution_twice():
    schedule = schedule_of(two_shot, 3)
    index = find(schedule.programs[0], Reduce)
    mine, first, _ = schedule.programs[0].steps[index].action.srcs
    refused(
        step_edited(schedule, 0, index, srcs=(mine, first, first)),
        f"rank 0 step {index}: reduce: contribution of rank 1 twice in (0 + 1 + 1)",
    )


def test_a_contribution_missing():
    schedule = schedule_of(two_shot, 3)
    index = find(schedule.programs[0], Reduce)
    srcs = schedule.programs[0].steps[index].action.srcs
    error = refused(
        step_edited(schedule, 0, index, srcs=srcs[:2], last=False),
        "rank 0 unit 0: incomplete at the end: found (0 + 1), expected contributions of ranks [2]",
    )
    assert error.peers == (2,)


@pytest.mark.parametrize(("skip", "last"), [(0, True), (1, False)])
def test_a_wrong_last(skip, last):
    schedule = schedule_of(ring, 3)
    index = find(schedule.programs[0], Reduce, skip)
    refused(
        step_edited(schedule, 0, index, last=last),
        f"rank 0 step {index}: last: found {last}, expected {not last}, the result being (",
    )


def test_a_native_wrong_last():
    def body(b: Builder) -> None:
        b.native(0, "all_reduce", (0, 1), b.span(0), b.span(0))

    refused(
        make_schedule(2, body), "last: found False, expected True, the result being all_reduce("
    )


def test_a_result_that_never_came():
    refused(make_schedule(2, lambda b: None, collective="all_gather", nunits=2), "found undefined")


def test_a_result_from_the_wrong_rank():
    """What is a good all_gather is no broadcast: rank 1 has nothing of its own to send."""

    def body(b: Builder) -> None:
        slot = b.scratch(0, 2)
        rank = b.spec.rank
        b.send(0, 1 - rank, b.span(rank))
        b.recv(0, 1 - rank, b.span(1 - rank))
        b.copy(0, b.span(0, 2), b.span(0, 2, slot))

    check(make_schedule(2, body, collective="all_gather", nunits=2))
    schedule = make_schedule(2, body, collective="broadcast", nunits=2)
    refused(schedule, "rank 1 step 0 (round 0): reads output[1:2]: unit 1 is undefined there")


# --- races


def test_every_lost_wait_is_a_race():
    for make in (ring, two_shot, doubling):
        for schedule in (schedule_of(make, 4), apart(schedule_of(make, 4))):
            for rank, program in enumerate(schedule.programs):
                for index, step in enumerate(program.steps):
                    if step.waits:
                        refused(step_edited(schedule, rank, index, waits=()), "race: ")


def test_a_race_says_what_to_wait_for():
    schedule = schedule_of(ring, 3)
    refused(
        step_edited(schedule, 0, 1, waits=()),
        "rank 0 step 1: race: reads scratch0[2:3] while step 0 may still be touching it: "
        "expected a wait for step 0",
    )
    refused(
        step_edited(schedule, 0, 2, waits=()),
        "rank 0 step 2 (round 1): race: ",
    )


def test_aliased_arrays_race():
    """Out of place, what reads the input may run beside what writes the output."""
    b = Builder(Spec("all_reduce", 0, 2), in_place=False)
    b.send(0, 1, b.span(0, buffer=INPUT))
    b.copy(0, b.span(0, buffer=b.scratch(0, 1)), b.span(0))
    check_races(b.build())
    with pytest.raises(ScheduleError, match=r"step 1: race: writes output.* while step 0"):
        check_races(b.build(), aliased=True)


def test_a_receive_at_both_ends_of_a_pair():
    def body(b: Builder) -> None:
        b.recv(0, 1 - b.spec.rank, b.span(0))

    refused(
        make_schedule(2, body), "rank 0 round 0 waits for rank 1 round 0, which waits for rank 0"
    )

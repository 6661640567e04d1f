"""Schedules damaged at random: what the check still accepts is right in whatever order it runs."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import event, given, settings
from hypothesis import strategies as st
from support.interleave import interleave
from support.schedules import (
    apart,
    doubling,
    gather_doubling,
    pairwise,
    ring,
    schedule_of,
    two_shot,
)

from rawcoll.errors import ScheduleError
from rawcoll.schedule.check import check
from rawcoll.schedule.collectives import collective_of
from rawcoll.schedule.ops import Copy, Recv, Reduce, Send, Span, Step, Transfer
from rawcoll.schedule.program import Schedule

WHOLE = [
    form(schedule_of(make, nranks))
    for make in (ring, two_shot, doubling, pairwise, gather_doubling)
    for nranks in (2, 4)
    for form in (lambda schedule: schedule, apart)
]
ORDERS = 3


def damaged_span(draw, span: Span) -> Span:
    name = draw(st.sampled_from(["buffer", "start", "stop"]))
    return replace(span, **{name: getattr(span, name) + draw(st.sampled_from([-1, 1]))})


def damaged_message(draw, message: Send | Recv) -> Send | Recv:
    if draw(st.booleans()):
        return replace(message, peer=draw(st.integers(0, 3)))
    return replace(message, span=damaged_span(draw, message.span))


def damaged_tuple(draw, values: tuple, damaged) -> tuple:
    """One value changed, left out, doubled, or moved to the front."""
    if not values:
        return values
    at = draw(st.integers(0, len(values) - 1))
    rest = values[:at] + values[at + 1 :]
    kind = draw(st.sampled_from(["change", "drop", "double", "front"]))
    if kind == "change":
        return (*values[:at], damaged(draw, values[at]), *values[at + 1 :])
    return {"drop": rest, "double": (*values, values[at]), "front": (values[at], *rest)}[kind]


def damaged_step(draw, step: Step) -> Step:
    action = step.action
    if step.waits and draw(st.integers(0, 3)) == 0:
        return replace(step, waits=draw(st.sampled_from([(), (step.waits[0] - 1,)])))
    match action:
        case Transfer():
            what = draw(st.sampled_from(["sends", "recvs", "round"]))
            if what == "round":
                return replace(step, action=replace(action, round=draw(st.integers(0, 8))))
            changed = damaged_tuple(draw, getattr(action, what), damaged_message)
            return replace(step, action=replace(action, **{what: changed}))
        case Reduce():
            what = draw(st.sampled_from(["srcs", "dst", "last"]))
            changes = {"last": not action.last}
            if what == "srcs":
                changes = {"srcs": damaged_tuple(draw, action.srcs, damaged_span)}
            elif what == "dst":
                changes = {"dst": damaged_span(draw, action.dst)}
            return replace(step, action=replace(action, **changes))
        case Copy():
            side = draw(st.sampled_from(["src", "dst"]))
            changed = damaged_span(draw, getattr(action, side))
            return replace(step, action=replace(action, **{side: changed}))


@st.composite
def damaged(draw) -> Schedule:
    schedule = draw(st.sampled_from(WHOLE))
    rank = draw(st.integers(0, schedule.nranks - 1))
    programs = list(schedule.programs)
    steps = list(programs[rank].steps)
    at = draw(st.integers(0, len(steps) - 1))
    if draw(st.integers(0, 5)) == 0:
        other = draw(st.integers(0, len(steps) - 1))
        steps[at], steps[other] = steps[other], steps[at]
    else:
        steps[at] = damaged_step(draw, steps[at])
    programs[rank] = replace(programs[rank], steps=tuple(steps))
    return Schedule(tuple(programs))


def leaves(value: tuple) -> list[tuple]:
    return [value] if isinstance(value[0], int) else [x for each in value for x in leaves(each)]


@given(damaged(), st.integers(0, 1000))
@settings(max_examples=300, deadline=None)
def test_what_is_accepted_runs_right_in_any_order(schedule, seed):
    try:
        check(schedule)
    except ScheduleError as exc:
        event("refused" if "race" not in str(exc) else "race")
        return
    event("accepted")
    results = [interleave(schedule, Random(seed + i)) for i in range(ORDERS)]
    assert all(result == results[0] for result in results)
    if collective_of(schedule.programs[0].spec.collective).reduces:
        nunits = schedule.programs[0].nunits
        for result in results[0]:
            assert result == results[0][0]
            for unit in range(nunits):
                expected = [(rank, unit) for rank in range(schedule.nranks)]
                assert sorted(leaves(result[unit])) == expected


@given(st.sampled_from(WHOLE), st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_what_is_whole_runs_the_same_in_any_order(schedule, seed):
    check(schedule)
    assert interleave(schedule, Random(seed)) == interleave(schedule, Random(seed + 1))

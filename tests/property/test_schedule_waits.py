"""Waits of arbitrary actions: two independent modules agree, and no wait can be spared."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rawcoll.errors import ScheduleError
from rawcoll.schedule.hazards import with_waits
from rawcoll.schedule.ops import OUTPUT, SCRATCH, Copy, Recv, Reduce, Send, Span, Transfer
from rawcoll.schedule.program import Hold, Program, Spec
from rawcoll.schedule.races import check_races

NUNITS = 6
NSLOTS = 2


def ranges():
    pairs = st.tuples(st.integers(0, NUNITS - 1), st.integers(1, 3))
    return pairs.map(lambda pair: (pair[0], min(NUNITS, sum(pair))))


@st.composite
def programs(draw) -> Program:
    """Actions at random, except that scratch is read only where it holds what is read."""
    holds = [Hold(*draw(ranges())) if draw(st.booleans()) else Hold() for _ in range(NSLOTS)]
    scratch, actions = tuple(holds), []

    def source(start: int, stop: int) -> Span:
        slots = [SCRATCH + i for i, hold in enumerate(holds) if hold.contains(start, stop)]
        return Span(draw(st.sampled_from([OUTPUT, *slots])), start, stop)

    def target(start: int, stop: int) -> Span:
        buffer = draw(st.sampled_from([OUTPUT, *range(SCRATCH, SCRATCH + NSLOTS)]))
        return Span(buffer, start, stop)

    for number in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["send", "recv", "both", "copy", "reduce"]))
        units = draw(ranges())
        src, dst = source(*units), target(*units)
        sends = (Send(1, source(*draw(ranges()))),) if kind in ("send", "both") else ()
        actions.append(
            Copy(src, dst)
            if kind == "copy"
            else Reduce((src, source(*units)), dst, False)
            if kind == "reduce"
            else Transfer(sends, (Recv(1, dst),) if kind != "send" else (), number)
        )
        if dst.buffer >= SCRATCH and kind != "send":
            slot = dst.buffer - SCRATCH
            holds[slot] = holds[slot].after_write(*units)
    steps = with_waits(actions, scratch)
    return Program(Spec("all_reduce", 0, 2), NUNITS, steps, scratch)


@given(programs())
def test_derived_waits_leave_no_race_and_none_is_spare(program):
    check_races(program)
    for index, step in enumerate(program.steps):
        assert len(step.waits) <= 1
        if step.waits:
            steps = list(program.steps)
            steps[index] = replace(step, waits=())
            with pytest.raises(ScheduleError, match="race"):
                check_races(replace(program, steps=tuple(steps)))

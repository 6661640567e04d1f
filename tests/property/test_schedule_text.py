"""Any program survives being written and read, however wrong it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rawcoll.schedule.ops import Copy, Native, Recv, Reduce, Send, Span, Step, Transfer
from rawcoll.schedule.program import Hold, Program, Schedule, Spec
from rawcoll.schedule.text import digest, dump, dump_schedule, parse, parse_schedule

small = st.integers(-3, 99)
names = st.sampled_from(["all_reduce", "all_to_all", "something_else"])
spans = st.builds(Span, st.integers(0, 9), small, small)


def lists(each):
    return st.lists(each, max_size=3).map(tuple)


maybe = st.none() | spans
actions = st.one_of(
    st.builds(
        Transfer, lists(st.builds(Send, small, spans)), lists(st.builds(Recv, small, spans)), small
    ),
    st.builds(Copy, spans, spans),
    st.builds(Reduce, lists(spans), spans, st.booleans()),
    st.builds(Native, names, lists(small), maybe, maybe, small, st.booleans(), small),
)
steps = st.builds(Step, actions, st.integers(0, 2), lists(small))
programs = st.builds(
    Program,
    st.builds(Spec, names, small, small, small),
    small,
    lists(steps),
    lists(st.builds(Hold, small, small)),
    st.booleans(),
)


@given(programs)
def test_a_program_round_trips(program):
    assert parse(dump(program)) == program


@given(lists(programs))
def test_a_schedule_round_trips(given_programs):
    schedule = Schedule(given_programs)
    assert parse_schedule(dump_schedule(schedule)) == schedule


@given(programs, programs)
def test_a_digest_is_equal_where_programs_are(first, second):
    assert (digest(first) == digest(second)) == (first == second)

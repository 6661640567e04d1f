"""The notation, as a person reads it."""

from __future__ import annotations

import pytest
from support.schedules import pairwise, ring, schedule_of

from rawcoll.errors import ScheduleError
from rawcoll.schedule.builder import Builder
from rawcoll.schedule.program import Spec
from rawcoll.schedule.text import digest, dump, dump_schedule, parse, parse_schedule

RING = """\
all_reduce, rank 1 of 2, root 0, 2 units, in place
scratch0 holds [0:0]
0: round 0: send output[1:2] to 0; recv scratch0[0:1] from 0
1: reduce output[0:1] = scratch0[0:1] + output[0:1], last; waits 0
2: round 1: send output[0:1] to 0; recv output[1:2] from 0; waits 1
"""


def test_a_program_as_text():
    assert dump(ring(1, 2)) == RING
    assert parse(RING) == ring(1, 2)


def test_a_native_step_as_text():
    b = Builder(Spec("reduce", 1, 3, 2), 4)
    b.native(5, "reduce", (0, 1, 2), b.span(0, 4), None, root=2, last=True)
    assert dump(b.build()).splitlines()[1] == (
        "0: round 5: native reduce nothing = output[0:4], ranks 0 1 2, root 2, last"
    )


def test_a_schedule_as_text():
    schedule = schedule_of(pairwise, 3)
    text = dump_schedule(schedule)
    assert text.count("\n\n") == 2
    assert parse_schedule(text) == schedule


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("all_reduce, rank", "all_reduce; rank", "all_reduce; rank 1 of 2"),
        ("holds", "has", "scratch0 has"),
        ("send", "post", "post output"),
        ("reduce output", "add output", "add output"),
        ("output[1:2]", "memory[1:2]", "memory[1:2]"),
        ("1: reduce", "reduce", "reduce output"),
    ],
)
def test_text_that_is_no_program(old, new, found):
    with pytest.raises(ScheduleError) as caught:
        parse(RING.replace(old, new, 1))
    assert f"text: found '{found}" in str(caught.value)


def test_digests():
    assert digest(ring(1, 2)) == digest(parse(RING))
    assert digest(ring(1, 2)) != digest(ring(0, 2))
    assert len(digest(schedule_of(ring, 3))) == 12

"""What the check accepts, and the numbers it proves."""

from __future__ import annotations

import pytest
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
from rawcoll.schedule.builder import Builder
from rawcoll.schedule.check import Proof, check
from rawcoll.schedule.collectives import COLLECTIVES, Extent, collective_of, part_of
from rawcoll.schedule.program import Program, Schedule, Spec

NRANKS = 3


@pytest.mark.parametrize("nranks", [2, 3, 4, 7, 16])
@pytest.mark.parametrize("make", [ring, two_shot, pairwise])
def test_any_number_of_ranks_proves(make, nranks):
    schedule = schedule_of(make, nranks)
    proof = check(schedule)
    assert (proof.nranks, proof.collective) == (nranks, schedule.programs[0].spec.collective)
    assert check(apart(schedule)).messages == proof.messages


@pytest.mark.parametrize("nranks", [1, 2, 4, 8])
@pytest.mark.parametrize("make", [doubling, gather_doubling])
def test_powers_of_two_prove(make, nranks):
    check(schedule_of(make, nranks))
    check(apart(schedule_of(make, nranks)))


def test_a_proof_counts():
    assert check(schedule_of(ring, 4)) == Proof(
        collective="all_reduce",
        nranks=4,
        nunits=4,
        rounds=6,
        transfers=6,
        messages=24,
        depth=3,
        scratch=1,
    )
    assert check(schedule_of(two_shot, 5)).depth == 1
    assert check(schedule_of(pairwise, 5)).depth == 0


@pytest.mark.parametrize("make", [ring, two_shot, doubling])
def test_in_place_programs_do_not_care_about_aliasing(make):
    assert check(schedule_of(make, 4), aliased=True) == check(schedule_of(make, 4))


def native(rank: int, collective: str, nranks: int = NRANKS, root: int = 1) -> Program:
    """One native step that is the whole collective."""
    meaning = collective_of(collective)
    b = Builder(
        Spec(collective, rank, nranks, root if meaning.rooted else 0),
        2 * nranks,
        in_place=collective != "all_to_all",
    )

    def side(extent: Extent, buffer: int = 1):
        if extent is Extent.ROOT_WHOLE and rank != root:
            return None
        units = part_of(rank, nranks, 2 * nranks) if extent is Extent.PART else (0, 2 * nranks)
        return b.span(*units, buffer)

    src = side(meaning.before, 0 if collective == "all_to_all" else 1)
    b.native(
        0,
        collective,
        tuple(range(nranks)),
        src,
        side(meaning.after),
        root=b.spec.root,
        last=meaning.reduces,
    )
    return b.build()


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_each_collective_as_one_native_step(collective):
    schedule = Schedule(tuple(native(rank, collective) for rank in range(NRANKS)))
    proof = check(schedule)
    assert (proof.rounds, proof.messages) == (1, 0)
    assert proof.depth == (1 if COLLECTIVES[collective].reduces else 0)
    check(apart(schedule))


def test_native_steps_among_some_ranks():
    """Two levels: reduce_scatter in pairs, all_reduce across, all_gather in pairs."""

    def make(rank: int, nranks: int) -> Program:
        b = Builder(Spec("all_reduce", rank, nranks), 2)
        pair = (rank & -2, rank | 1)
        across = (rank & 1, (rank & 1) + 2)
        mine = b.span(rank & 1)
        b.native(0, "reduce_scatter", pair, b.span(0, 2), mine)
        b.native(1, "all_reduce", across, mine, mine, last=True)
        b.native(2, "all_gather", pair, mine, b.span(0, 2))
        return b.build()

    assert check(schedule_of(make, 4)).depth == 2
    check(apart(schedule_of(make, 4)))


def test_a_native_step_wants_the_spans_of_its_collective():
    def make(rank: int, nranks: int) -> Program:
        b = Builder(Spec("all_gather", rank, nranks), nranks)
        b.native(0, "all_gather", (1, 0), b.span(rank), b.span(0, 2))
        return b.build()

    with pytest.raises(
        ScheduleError, match=r"native: src: found units \(1, 2\), expected \(0, 1\)"
    ):
        check(schedule_of(make, 2))


def broadcast(rank: int, nranks: int) -> Program:
    """A chain."""
    b = Builder(Spec("broadcast", rank, nranks), 1)
    if rank:
        b.recv(rank - 1, rank - 1, b.span(0))
    if rank < nranks - 1:
        b.send(rank, rank + 1, b.span(0))
    return b.build()


def reduce_chain(rank: int, nranks: int) -> Program:
    """A chain towards rank 0; only the root may write its output."""
    b = Builder(Spec("reduce", rank, nranks), 1)
    out = b.span(0)
    partial = out
    if rank < nranks - 1:
        theirs = b.span(0, buffer=b.scratch(0, 1))
        partial = out if rank == 0 else b.span(0, buffer=b.scratch(0, 1))
        b.recv(nranks - 2 - rank, rank + 1, theirs)
        b.reduce(nranks - 2 - rank, (out, theirs), partial, last=rank == 0)
    if rank:
        b.send(nranks - 1 - rank, rank - 1, partial)
    return b.build()


@pytest.mark.parametrize("make", [broadcast, reduce_chain])
def test_rooted_chains(make):
    check(schedule_of(make, 5))
    check(apart(schedule_of(make, 5)))

"""Small schedules, written out, for tests of the schedule package; no algorithm of the library."""

from __future__ import annotations

from collections.abc import Callable

from rawcoll.schedule.builder import Builder
from rawcoll.schedule.ops import INPUT
from rawcoll.schedule.passes import out_of_place
from rawcoll.schedule.program import Program, Schedule, Spec

Make = Callable[[int, int], Program]


def schedule_of(make: Make, nranks: int) -> Schedule:
    return Schedule(tuple(make(rank, nranks) for rank in range(nranks)))


def apart(schedule: Schedule) -> Schedule:
    """The schedule out of place."""
    return Schedule(tuple(out_of_place(program) for program in schedule.programs))


def ring(rank: int, nranks: int) -> Program:
    """all_reduce: partial sums once around, results once around."""
    b = Builder(Spec("all_reduce", rank, nranks), nranks)
    after, before = (rank + 1) % nranks, (rank - 1) % nranks
    tmp = b.scratch()
    for r in range(nranks - 1):
        arriving = (rank - r - 1) % nranks
        b.send(r, after, b.span((rank - r) % nranks))
        b.recv(r, before, b.span(arriving, buffer=tmp))
        srcs = (b.span(arriving, buffer=tmp), b.span(arriving))
        b.reduce(r, srcs, b.span(arriving), last=r == nranks - 2)
    for r in range(nranks - 1):
        b.send(nranks - 1 + r, after, b.span((rank + 1 - r) % nranks))
        b.recv(nranks - 1 + r, before, b.span((rank - r) % nranks))
    return b.build()


def two_shot(rank: int, nranks: int) -> Program:
    """all_reduce: rank u reduces unit u of everyone, then everyone gets it."""
    b = Builder(Spec("all_reduce", rank, nranks), nranks)
    mine, srcs = b.span(rank), []
    for peer in range(nranks):
        if peer == rank:
            srcs.append(mine)
            continue
        slot = b.scratch(rank, rank + 1)
        srcs.append(b.span(rank, buffer=slot))
        b.send(0, peer, b.span(peer))
        b.recv(0, peer, srcs[-1])
        b.send(1, peer, mine)
        b.recv(1, peer, b.span(peer))
    if nranks > 1:
        b.reduce(0, srcs, mine, last=True)
    return b.build()


def doubling(rank: int, nranks: int) -> Program:
    """all_reduce of a power of two of ranks: all of it to a partner twice as far each round."""
    b = Builder(Spec("all_reduce", rank, nranks), 2)
    whole = b.span(0, 2)
    theirs = b.span(0, 2, b.scratch(0, 2))
    for r in range(nranks.bit_length() - 1):
        peer = rank ^ (1 << r)
        b.send(r, peer, whole)
        b.recv(r, peer, theirs)
        last = 2 << r == nranks
        b.reduce(r, (whole, theirs) if rank < peer else (theirs, whole), whole, last=last)
    return b.build()


def pairwise(rank: int, nranks: int) -> Program:
    """all_to_all: in round r, to the rank r + 1 ahead and from the one as far behind."""
    b = Builder(Spec("all_to_all", rank, nranks), 2 * nranks, in_place=False)
    part = lambda r, buffer=1: b.span(2 * r, 2 * r + 2, buffer)  # noqa: E731
    b.copy(-1, part(rank, INPUT), part(rank))
    for r in range(nranks - 1):
        to, source = (rank + r + 1) % nranks, (rank - r - 1) % nranks
        b.send(r, to, part(to, INPUT))
        b.recv(r, source, part(source))
    return b.build()


def gather_doubling(rank: int, nranks: int) -> Program:
    """all_gather of a power of two of ranks: what there is so far, to a partner twice as far."""
    b = Builder(Spec("all_gather", rank, nranks), nranks)
    for r in range(nranks.bit_length() - 1):
        size, peer = 1 << r, rank ^ (1 << r)
        start, theirs = rank & -size, peer & -size
        b.send(r, peer, b.span(start, start + size))
        b.recv(r, peer, b.span(theirs, theirs + size))
    return b.build()

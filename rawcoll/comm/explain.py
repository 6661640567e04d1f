"""What a call would run, and why: counted from the schedule, not computed from a formula."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rawcoll.algorithms.base import Algorithm
from rawcoll.algorithms.catalog import algorithm_from, names_for
from rawcoll.comm.calls import Call
from rawcoll.comm.planner import AlgorithmLike, Chosen, Planner
from rawcoll.errors import InvalidArgument, RawcollError
from rawcoll.executor.layout import Sizes, layout_of
from rawcoll.schedule.check import check
from rawcoll.schedule.collectives import collective_of
from rawcoll.schedule.metrics import Metrics, metrics
from rawcoll.schedule.program import Partition, Program, Schedule, Spec
from rawcoll.schedule.text import digest
from rawcoll.types import DType, op_of

MOST_RANKS: Final = 64
"""Beyond this, all ranks' programs would take seconds to build: an explanation counts this rank alone."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An algorithm that was not taken: its costs, or why it cannot serve the call."""

    algorithm: str
    rounds: int
    max_sent_nbytes: int
    refusal: str

    def __str__(self) -> str:
        if self.refusal:
            return f"{self.algorithm}: refused: {self.refusal}"
        return f"{self.algorithm}: {self.rounds} rounds, at most {self.max_sent_nbytes} bytes sent by a rank"


@dataclass(frozen=True, slots=True)
class Explanation:
    """What would run for one call.

    Attributes:
        collective, count, dtype, op, root, nranks: the call.
        algorithm: what runs, with all parameters.
        reason: why.
        digest: hash of the schedule, the same wherever the same schedule runs.
        ranks: the ranks that are counted below: all, or this one alone beyond 64 ranks.
        rounds: transfers that follow one another.
        messages: messages of the counted ranks.
        sent_nbytes: bytes that each counted rank sends.
        links: (source, destination, bytes) of the counted ranks.
        roundings: rounding steps on the way of one element, where the arithmetic rounds; None where not
            counted.
        losers: the other algorithms of the collective.
    """

    collective: str
    count: int
    dtype: str
    op: str
    root: int
    nranks: int
    algorithm: str
    reason: str
    digest: str
    ranks: tuple[int, ...]
    rounds: int
    messages: int
    sent_nbytes: tuple[int, ...]
    links: tuple[tuple[int, int, int], ...]
    roundings: int | None
    losers: tuple[Candidate, ...]

    def __str__(self) -> str:
        most = max(self.sent_nbytes, default=0)
        head = (
            f"{self.collective} of {self.count} {self.dtype} over {self.nranks} ranks\n"
            f"  runs       {self.algorithm}  (schedule {self.digest})\n"
            f"  because    {self.reason}\n"
            f"  rounds     {self.rounds}\n"
            f"  messages   {self.messages}\n"
            f"  sent       at most {most} bytes by a rank, {sum(self.sent_nbytes)} in all\n"
            f"  roundings  {'not counted' if self.roundings is None else self.roundings}\n"
            "  time       not predicted: there is no cost model yet\n"
        )
        links = "".join(
            f"  link       {source} -> {destination}: {nbytes} bytes\n"
            for source, destination, nbytes in self.links[:16]
        )
        more = f"  link       ... {len(self.links) - 16} more\n" if len(self.links) > 16 else ""
        losers = "".join(f"  instead of {candidate}\n" for candidate in self.losers)
        return (head + links + more + losers).rstrip()


def explain(
    planner: Planner,
    collective: str,
    count: int,
    dtype: DType,
    op: str,
    root: int,
    algorithm: AlgorithmLike,
) -> Explanation:
    """See Communicator.explain."""
    call = _call(planner, collective, count, dtype, op, root)
    chosen = planner.chosen(call, algorithm)
    programs = _programs(chosen.algorithm, planner, call)
    costs = _costs(programs, call)
    whole = len(programs) == planner.nranks
    proof = check(Schedule(programs)) if whole else None
    return Explanation(
        collective=collective,
        count=count,
        dtype=dtype.name,
        op=op,
        root=root,
        nranks=planner.nranks,
        algorithm=chosen.text,
        reason=chosen.reason,
        digest=digest(Schedule(programs) if whole else programs[0]),
        ranks=tuple(program.spec.rank for program in programs),
        rounds=costs.rounds,
        messages=costs.messages,
        sent_nbytes=tuple(rank.sent_nbytes for rank in costs.ranks),
        links=tuple(
            (programs[source].spec.rank, peer, nbytes) for source, peer, nbytes in costs.links
        ),
        roundings=None if proof is None else proof.depth,
        losers=tuple(_losers(planner, call, chosen)),
    )


def _call(planner: Planner, collective: str, count: int, dtype: DType, op: str, root: int) -> Call:
    parts: tuple[int, ...] = ()
    if collective_of(collective).parts:
        share, rest = divmod(count, planner.nranks)
        parts = tuple(share + (rank < rest) for rank in range(planner.nranks))
    if count < 0 or not 0 <= root < planner.nranks:
        raise InvalidArgument(
            f"count, root: found {count} and {root}, expected a count that is not negative and a rank"
        )
    return Call(collective, root, op_of(op), dtype, Sizes(count, parts), in_place=True)


def _programs(algorithm: Algorithm, planner: Planner, call: Call) -> tuple[Program, ...]:
    ranks = range(planner.nranks) if planner.nranks <= MOST_RANKS else (planner.rank,)
    return tuple(
        algorithm.program(Spec(call.collective, rank, planner.nranks, call.root)) for rank in ranks
    )


def _costs(programs: tuple[Program, ...], call: Call) -> Metrics:
    partition: Partition = layout_of(programs[0], call.sizes, call.dtype.itemsize).partitions[1]
    return metrics(Schedule(programs), partition, call.dtype.itemsize)


def _losers(planner: Planner, call: Call, chosen: Chosen) -> list[Candidate]:
    found = []
    for name in names_for(call.collective):
        if name in (chosen.algorithm.name, "builtin"):
            continue
        try:
            other = planner.chosen(call, algorithm_from(name))
            costs = _costs(_programs(other.algorithm, planner, call), call)
            found.append(Candidate(other.text, costs.rounds, costs.max_sent_nbytes, ""))
        except RawcollError as error:
            found.append(Candidate(name, 0, 0, error.message))
    return found

"""Checking and timing one case: nccl-tests' loop, on every rank.

Owns the clock and the agreement of the ranks on one number. Knows nothing of sizes, tables or
reports.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from rawcoll.bench.case import RAW, Call, Case, Pool, bind, prepare, wrong_elements
from rawcoll.bench.options import Options

if TYPE_CHECKING:
    from rawcoll.comm.communicator import Communicator

_COMBINE: Final[dict[int, Callable[[Sequence[float]], float]]] = {
    0: lambda times: times[0],
    1: statistics.fmean,
    2: min,
    3: max,
}


@dataclass(frozen=True, slots=True)
class Timing:
    """One placement of one case, the same on all ranks.

    Attributes:
        seconds: of one call.
        wrong: wrong elements of all ranks; None if nothing was checked.
        wrong_ranks: ranks that had any.
        per_iteration: seconds of each iteration's calls, for each rank; empty unless asked for.
    """

    seconds: float
    wrong: int | None
    wrong_ranks: int
    per_iteration: tuple[tuple[float, ...], ...] = ()


def combine(times: Sequence[float], average: int) -> float:
    """One time from the ranks': rank 0's, the mean, the least or the largest (``-a``)."""
    return _COMBINE[average](times)


def measure(
    comm: Communicator, case: Case, pool: Pool, algorithm: str, options: Options, *, in_place: bool
) -> Timing:
    """Check, then time, one placement. Collective.

    Where the collective has no in place, an in-place measurement repeats the other and, as in
    nccl-tests, is not checked.
    """
    checked = options.check > 0 and (case.collective.in_place or not in_place)
    wrong, wrong_ranks = 0, 0
    if checked:
        for _ in range(options.check):
            wrong, wrong_ranks = check(comm, case, pool, algorithm, in_place=in_place)
            if wrong:
                break
        pool.reset(case)
    else:
        bind(comm, case, pool.arrays(case, 0, algorithm, in_place=in_place), algorithm)()
    seconds, per_iteration = _time(comm, case, pool, algorithm, options, in_place)
    return Timing(seconds, wrong if checked else None, wrong_ranks, per_iteration)


def check(
    comm: Communicator, case: Case, pool: Pool, algorithm: str, *, in_place: bool
) -> tuple[int, int]:
    """Run once on known input. Collective.

    Returns:
        Wrong elements summed over ranks, and how many ranks had any.
    """
    arrays = pool.arrays(case, 0, algorithm, in_place=in_place)
    prepare(case, arrays)
    bind(comm, case, arrays, algorithm)()
    wrong = comm.mpi.allgather(wrong_elements(case, arrays))
    return sum(wrong), sum(map(bool, wrong))


def warm_up(comm: Communicator, case: Case, pool: Pool, algorithm: str, options: Options) -> None:
    """The untimed calls of one size. Collective."""
    call = bind(comm, case, pool.arrays(case, 0, algorithm, in_place=False), algorithm)
    for _ in range(options.warmup):
        call()


def _time(
    comm: Communicator, case: Case, pool: Pool, algorithm: str, options: Options, in_place: bool
) -> tuple[float, tuple[tuple[float, ...], ...]]:
    steps = _steps(comm, case, pool, algorithm, options, in_place)
    comm.mpi.barrier()
    if options.per_iteration:
        laps = _lap_times(steps)
        total = sum(laps)
    else:
        laps = []
        total = _total_time(steps)
    everyone = comm.mpi.allgather((total, laps))
    seconds = combine([time for time, _ in everyone], options.average)
    per_iteration = tuple(tuple(times) for _, times in everyone) if laps else ()
    return seconds / (options.iters * options.agg), per_iteration


def _steps(
    comm: Communicator, case: Case, pool: Pool, algorithm: str, options: Options, in_place: bool
) -> list[Call]:
    """One function an iteration. What can be done before the clock starts is done here."""
    places = pool.places(case, options.iters * options.agg)
    calls = [
        bind(comm, case, pool.arrays(case, place, algorithm, in_place=in_place), algorithm)
        for place in range(places)
    ]
    order = cycle(calls)
    if options.agg == 1 and options.blocking != 1:
        return list(islice(order, options.iters))
    together = _one_by_one if algorithm == RAW or case.collective.name == "sendrecv" else _in_flight
    barrier = comm.mpi.barrier if options.blocking == 1 else None
    # As many in flight as have memory of their own: two that share an array would race.
    width = min(options.agg, places)
    return [
        together(list(islice(order, options.agg)), width, barrier) for _ in range(options.iters)
    ]


def _in_flight(calls: Sequence[Callable[..., Any]], width: int, barrier: Call | None) -> Call:
    def step() -> None:
        for first in range(0, len(calls), width):
            for work in [call(async_op=True) for call in calls[first : first + width]]:
                work.wait()
        if barrier is not None:
            barrier()

    return step


def _one_by_one(calls: Sequence[Call], _width: int, barrier: Call | None) -> Call:
    def step() -> None:
        for call in calls:
            call()
        if barrier is not None:
            barrier()

    return step


def _total_time(steps: Sequence[Call]) -> float:
    start = perf_counter()
    for step in steps:
        step()
    return perf_counter() - start


def _lap_times(steps: Sequence[Call]) -> list[float]:
    laps = []
    for step in steps:
        start = perf_counter()
        step()
        laps.append(perf_counter() - start)
    return laps

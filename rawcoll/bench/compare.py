"""Algorithms beside each other: the same arrays, the same minute, turn by turn.

A repeat times every algorithm once (A B C), the next begins with the next of them (B C A): what
slows the machine for a while meets all of them alike, and no algorithm always follows the same
other. What is reported comes from one repeat's ratios, never from two runs' means.

All repeats use the same arrays, unlike nccl-tests' table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Final

from rawcoll.bench.case import RAW, Call, Case, Pool, bind
from rawcoll.bench.choose import Choice
from rawcoll.bench.options import Options
from rawcoll.bench.rows import Cell, ComparedRow, Comparison
from rawcoll.bench.stats import median_ratio, median_with_quartiles
from rawcoll.bench.timing import check, combine
from rawcoll.errors import InvalidArgument

if TYPE_CHECKING:
    from rawcoll.comm.communicator import Communicator

# A repeat lasts at least this long, by calling several times: far above the clock and the barrier's
# skew.
_REPEAT_S: Final = 1e-3
_MOST_CALLS: Final = 256
_CALIBRATION_CALLS: Final = 3
# What belongs to the library below: no candidate for the best of rawcoll's own.
LIBRARY: Final = (RAW, "builtin")


def baseline_of(labels: Sequence[str], wanted: str | None) -> str:
    """The label that ratios are to.

    Raises:
        InvalidArgument: it is none of the labels.
    """
    if wanted is None:
        return next((label for label in LIBRARY if label in labels), labels[0])
    if wanted not in labels:
        raise InvalidArgument(
            f"baseline: not measured: found {wanted!r}, expected one of {', '.join(labels)}"
        )
    return wanted


def compare(
    comm: Communicator,
    choices: Sequence[Choice],
    cases: Sequence[Case],
    pool: Pool,
    options: Options,
    progress: Callable[[str], None],
    emit_row: Callable[[Comparison, ComparedRow], None],
) -> Comparison:
    """Measure all choices at all cases. Collective; a row is handed out as soon as it is known."""
    labels = tuple(choice.label for choice in choices)
    table = Comparison(labels, baseline_of(labels, options.baseline), ())
    for case in cases:
        progress(f"comparing at {case.nbytes} B")
        row = _row(comm, choices, case, pool, options, table.baseline)
        emit_row(table, row)
        table = Comparison(labels, table.baseline, (*table.rows, row))
    return table


def interleaved(
    calls: Sequence[Call], barrier: Call, repeats: int, calls_a_repeat: int
) -> list[list[float]]:
    """Seconds of one call, for each of ``calls`` and each repeat, on this rank. Collective."""
    times: list[list[float]] = [[] for _ in calls]
    turns = range(calls_a_repeat)
    for repeat in range(repeats):
        for turn in range(len(calls)):
            index = (turn + repeat) % len(calls)
            call = calls[index]
            barrier()
            start = perf_counter()
            for _ in turns:
                call()
            times[index].append((perf_counter() - start) / calls_a_repeat)
    return times


def calls_a_repeat(comm: Communicator, calls: Sequence[Call]) -> int:
    """How many calls the fastest of ``calls`` needs to fill a repeat; warms up. Collective."""
    fastest = min(
        min(times) for times in interleaved(calls, comm.mpi.barrier, _CALIBRATION_CALLS, 1)
    )
    mine = min(_MOST_CALLS, max(1, round(_REPEAT_S / max(fastest, 1e-9))))
    return int(comm.mpi.bcast(mine, root=0))


def _row(
    comm: Communicator,
    choices: Sequence[Choice],
    case: Case,
    pool: Pool,
    options: Options,
    baseline: str,
) -> ComparedRow:
    fitting = [choice for choice in choices if case in choice.plans]
    in_place = not options.out_of_place
    wrong = {choice.label: _wrong(comm, choice, case, pool, options) for choice in fitting}
    pool.reset(case)
    calls = [
        bind(comm, case, pool.arrays(case, 0, label, in_place=in_place), label)
        for label in (choice.label for choice in fitting)
    ]
    width = calls_a_repeat(comm, calls)
    everyone = comm.mpi.allgather(interleaved(calls, comm.mpi.barrier, options.iters, width))
    times = {
        choice.label: tuple(
            combine([ranks[index][repeat] for ranks in everyone], options.average)
            for repeat in range(options.iters)
        )
        for index, choice in enumerate(fitting)
    }
    base = times.get(baseline, ())
    return ComparedRow(
        case,
        tuple(
            _cell(choice, case, times[choice.label], base, wrong[choice.label])
            if case in choice.plans
            else None
            for choice in choices
        ),
    )


def _wrong(
    comm: Communicator, choice: Choice, case: Case, pool: Pool, options: Options
) -> int | None:
    if options.check == 0:
        return None
    return check(comm, case, pool, choice.label, in_place=not options.out_of_place)[0]


def _cell(
    choice: Choice,
    case: Case,
    times: tuple[float, ...],
    base: tuple[float, ...],
    wrong: int | None,
) -> Cell:
    speedup = median_ratio(base, times) if base else None
    return Cell(choice.plans[case], times, median_with_quartiles(times), speedup, wrong)

"""nccl-tests' run: all cases of one algorithm, in its order, with its warm-up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING

from rawcoll.bench.case import Case, Pool
from rawcoll.bench.choose import Choice
from rawcoll.bench.collectives import Collective
from rawcoll.bench.data import numpy_dtype
from rawcoll.bench.options import ALL_ROOTS, DTYPES, Options
from rawcoll.bench.rows import Row
from rawcoll.bench.timing import measure, warm_up
from rawcoll.errors import InvalidArgument

if TYPE_CHECKING:
    from rawcoll.comm.communicator import Communicator

Series = tuple[Case, ...]


def series_of(options: Options, collective: Collective, rank: int, nranks: int) -> list[Series]:
    """The cases of a run: for each element type, reduction and root, the sizes ascending.

    Raises:
        InvalidArgument: the root is no rank.
    """
    if collective.rooted and options.root >= nranks:
        raise InvalidArgument(f"root: no such rank: found {options.root}, expected below {nranks}")
    every = options.root == ALL_ROOTS and collective.rooted
    roots = range(nranks) if every else (max(options.root, 0),)
    ops = options.ops if collective.reduces else options.ops[:1]
    return [
        tuple(
            Case(
                collective,
                dtype,
                op,
                root,
                rank,
                nranks,
                collective.counts(nbytes, numpy_dtype(DTYPES[dtype]).itemsize, nranks),
            )
            for nbytes in options.sizes()
        )
        for dtype in options.dtypes
        for op in ops
        for root in roots
    ]


def sweep(
    comm: Communicator,
    choice: Choice,
    series: Sequence[Series],
    pool: Pool,
    options: Options,
    progress: Callable[[str], None],
) -> Iterator[Row]:
    """Measure one algorithm; a row as soon as it is known. Collective.

    Cases that the algorithm does not fit are left out.
    """
    for cases in series:
        fitting = [case for case in cases if case in choice.plans]
        for case in fitting[:1]:
            pool.reset(case)
        for case in fitting:
            progress(f"{choice.label}: warm-up, {case.nbytes} B")
            warm_up(comm, case, pool, choice.label, options)
        for _ in range(options.cycles) if options.cycles else count():
            for case in fitting:
                progress(f"{choice.label}: {case.dtype} {case.shown_op}, {case.nbytes} B")
                yield _row(comm, choice, case, pool, options)


def _row(comm: Communicator, choice: Choice, case: Case, pool: Pool, options: Options) -> Row:
    out_of_place = measure(comm, case, pool, choice.label, options, in_place=False)
    in_place = measure(comm, case, pool, choice.label, options, in_place=True)
    return Row(case, choice.plans[case], out_of_place, in_place)

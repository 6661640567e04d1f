"""All of rawcoll's all-reduces beside MPI's own, 8 B to 64 MiB, in place, float32.

Usage, under mpirun: ``python benchmarks/all_reduce.py [--repeats 20] [--register] [--mmap-threshold 1G]
[--quick]``

Every algorithm is checked at every size before it is timed; repeats are interleaved and ratios paired
(see ``rawcoll.bench.compare``). Writes ``results/all_reduce-MPI-RANKS[-shared][-mmap].json``. The figure
of merit is the geometric mean, over 1, 4, 16 and 64 MiB, of the best own algorithm's ratio to
``MPI_Allreduce(MPI_IN_PLACE)`` on the same arrays.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import common

from rawcoll.bench import report_compare
from rawcoll.bench.allocator import keep_freed_memory
from rawcoll.bench.case import RAW, Case, Pool
from rawcoll.bench.choose import choose
from rawcoll.bench.collectives import collective_of
from rawcoll.bench.compare import LIBRARY, compare
from rawcoll.bench.options import Options, parse_size
from rawcoll.bench.report_json import comparison_part
from rawcoll.bench.rows import ComparedRow, Comparison
from rawcoll.bench.stats import geometric_mean
from rawcoll.comm.init import init

SIZES = (8, 64, 512, 4 << 10, 32 << 10, 256 << 10, *(n * common.MIB for n in (1, 4, 16, 64)))
ALGORITHMS = ("all", "auto", *(f"two_shot(segments={n})" for n in (1, 2, 4, 16)))
MERIT_SIZES = tuple(n * common.MIB for n in (1, 4, 16, 64))


def cases_of(comm: Any, sizes: tuple[int, ...]) -> list[Case]:
    """A case for each size."""
    collective = collective_of("all_reduce")
    return [
        Case(
            collective,
            "float",
            "sum",
            0,
            comm.rank,
            comm.nranks,
            collective.counts(nbytes, 4, comm.nranks),
        )
        for nbytes in sizes
    ]


def best_own(table: Comparison, row: ComparedRow) -> tuple[str, float]:
    """Label and ratio of the best of rawcoll's own; ``auto`` is one of them under another name."""
    pairs = [
        (label, cell.speedup.value)
        for label, cell in zip(table.labels, row.cells, strict=True)
        if cell and cell.speedup and label not in (*LIBRARY, "auto")
    ]
    return max(pairs, key=lambda pair: pair[1])


def merit(table: Comparison) -> dict[str, Any]:
    """The figure of merit, and what it is made of."""
    rows = [row for row in table.rows if row.case.nbytes in MERIT_SIZES]
    best = {str(row.case.nbytes): best_own(table, row) for row in rows}
    automatic = table.labels.index("auto")
    chosen = [cell.speedup.value for row in rows if (cell := row.cells[automatic]) and cell.speedup]
    return {
        "best_own_ratio": geometric_mean([ratio for _, ratio in best.values()]) if best else None,
        "best_own": {
            size: {"label": label, "ratio": ratio} for size, (label, ratio) in best.items()
        },
        "auto_ratio": geometric_mean(chosen) if chosen else None,
    }


def main() -> int:
    """Run the suite on this rank; the exit status is 1 for wrong results."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--mmap-threshold", type=parse_size)
    parser.add_argument(
        "--register", action="store_true", help="arrays made by comm.empty, like nccl-tests' -R 1"
    )
    parser.add_argument("--quick", action="store_true", help="three sizes up to 1 MiB")
    given = parser.parse_args()
    if given.mmap_threshold:
        keep_freed_memory(given.mmap_threshold)
    comm = init()
    with comm:
        options = Options(iters=given.repeats, compare=True, algorithms=ALGORITHMS)
        cases = cases_of(comm, (8, 32 << 10, common.MIB) if given.quick else SIZES)
        choices = [c for c in choose(comm, options.algorithms, cases) if c.plans]

        def show(table: Comparison, row: ComparedRow) -> None:
            if comm.rank == 0:
                heading = [] if table.rows else report_compare.columns(table)
                print(*heading, report_compare.row_line(table, row), sep="\n", flush=True)

        registered = comm.empty if given.register else None
        pool = Pool(max(case.nbytes for case in cases), registered)
        table = compare(comm, choices, cases, pool, options, lambda _: None, show)
        if comm.rank == 0:
            run = common.describe_run(comm.nranks)
            document = {
                **run,
                "what": "all_reduce, float32, sum, in place; ratio: MPI's own time over this one's",
                "repeats": given.repeats,
                "mmap_threshold": given.mmap_threshold,
                "register": given.register,
                **merit(table),
                **comparison_part(table, options),
            }
            family = common.mpi_family(run["environment"]["mpi"])
            suffix = "-shared" if given.register else ""
            suffix += "-mmap" if given.mmap_threshold else ""
            name = f"all_reduce-{family}-{comm.nranks}{suffix}"
            print(
                f"best own / {RAW}: {document['best_own_ratio']:.2f}; "
                f"wrote {common.write_result(name + ('-quick' if given.quick else ''), document)}"
            )
        return int(comm.mpi.bcast(table.errors, root=0) > 0)


if __name__ == "__main__":
    sys.exit(main())

"""A warm 8-byte all-reduce: rawcoll's call, a plan bound to its arrays, and MPI's own, turn by turn.

Usage, under mpirun with 2 ranks: ``python benchmarks/latency.py [--repeats 200]``

Also counts what 1,000 warm calls allocate. Writes ``results/latency-MPI-RANKS.json``.
"""

from __future__ import annotations

import argparse
import gc
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import common
import numpy as np

from rawcoll.bench.stats import median_difference
from rawcoll.comm.init import init
from rawcoll.transport.mpi import raw_collective

CALLS_A_REPEAT = 100
MEASURED_CALLS = 1000


def allocations(call: Callable[[], Any]) -> dict[str, int]:
    """What 1,000 warm calls leave behind, their peak above that, and how many arrays they made.

    What counting itself allocates (the loop's integers) is taken off.
    """
    empty, found = _traced(lambda: None), _traced(call)
    return {
        "net_growth_nbytes": found[0] - empty[0],
        "peak_nbytes": found[1] - empty[1],
        "array_blocks_left": found[2],
    }


def _traced(call: Callable[[], Any]) -> tuple[int, int, int]:
    """Net growth and peak in bytes, and arrays alive, of 1,000 calls."""
    for _ in range(100):
        call()
    gc.collect()
    gc.disable()
    tracemalloc.start()
    call()
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    for _ in range(MEASURED_CALLS):
        call()
    after, peak = tracemalloc.get_traced_memory()
    arrays = _numpy_blocks()
    tracemalloc.stop()
    gc.enable()
    return after - before, peak - before, arrays


def _numpy_blocks() -> int:
    """Blocks of array memory that are alive and were allocated while tracing."""
    domain = np.lib.tracemalloc_domain
    snapshot = tracemalloc.take_snapshot().filter_traces([tracemalloc.DomainFilter(True, domain)])
    return sum(statistic.count for statistic in snapshot.statistics("filename"))


def main() -> None:
    """Run the suite on this rank."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=200)
    given = parser.parse_args()
    comm = init()
    with comm:
        # Zeros stay zeros under a sum: no overflow however often they are added.
        x, y, z = (np.zeros(2, np.float32) for _ in range(3))
        plan = comm.plan("all_reduce", y, algorithm="doubling")
        calls: dict[str, Callable[[], Any]] = {
            "mpi": raw_collective(comm.mpi, "all_reduce", None, z),
            "call": partial(comm.all_reduce, x),
            "plan_start_wait": lambda: plan.start().wait(),
            "plan_run": plan.run,
            "builtin": partial(comm.all_reduce, x, algorithm="builtin"),
        }
        for call in calls.values():
            for _ in range(CALLS_A_REPEAT):
                call()
        times = dict(
            zip(
                calls,
                common.paired_times(comm, list(calls.values()), given.repeats, CALLS_A_REPEAT),
                strict=True,
            )
        )
        memory = {
            name: allocations(calls[name]) for name in ("call", "plan_start_wait", "plan_run")
        }
        worst = {
            name: {
                key: max(rank[name][key] for rank in comm.mpi.allgather(memory)) for key in found
            }
            for name, found in memory.items()
        }
        if comm.rank == 0:
            write(comm, given.repeats, times, worst)
        plan.close()


def write(
    comm: Any, repeats: int, times: dict[str, list[float]], memory: dict[str, dict[str, int]]
) -> None:
    """Write the result, and its summary to the screen."""
    run = common.describe_run(comm.nranks)
    document = {
        **run,
        "what": "8-byte all_reduce, float32, in place, warm; microseconds a call, mean over ranks",
        "repeats": repeats,
        "calls_a_repeat": CALLS_A_REPEAT,
        "algorithm": str(comm.explain("all_reduce", 2, "float32").algorithm),
        "time_us": {name: common.summary_us(found) for name, found in times.items()},
        "above_mpi_us": {
            name: common.microseconds(median_difference(found, times["mpi"]))
            for name, found in times.items()
            if name != "mpi"
        },
        f"memory_of_{MEASURED_CALLS}_calls": memory,
    }
    for name, found in document["above_mpi_us"].items():
        print(f"{name:16} {found['value']:7.2f} us above MPI [{found['low']}, {found['high']}]")
    for name, counts in memory.items():
        print(f"{name:16} {counts}")
    family = common.mpi_family(run["environment"]["mpi"])
    print("wrote", common.write_result(f"latency-{family}-{comm.nranks}", document))


if __name__ == "__main__":
    main()

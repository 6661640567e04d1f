"""Every all-reduce algorithm that the MPI library has, beside rawcoll's, one job an algorithm.

Usage (not under mpirun): ``python benchmarks/mpi_algorithms.py [-n 2] [--repeats 20]``

An MPI reads its choice at start, so each algorithm is a job of its own; in each, the times of rawcoll's own
are taken turn by turn with it, so that all can be compared by their ratio to the same thing. Writes
``results/mpi_algorithms-MPI-RANKS.json``. An algorithm that the library refuses is recorded as such.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from functools import partial
from typing import Any

import common
import numpy as np

sys.path.insert(0, str(common.ROOT / "launch"))
import mpilaunch

SIZES = (8, 32 << 10, *(n * common.MIB for n in (1, 4, 16, 64)))
# By the number of coll_tuned_allreduce_algorithm; 0 leaves the choice to the library.
OPENMPI = (
    "default",
    "basic_linear",
    "nonoverlapping",
    "recursive_doubling",
    "ring",
    "segmented_ring",
    "rabenseifner",
    "allgather_reduce",
)
MPICH = (
    "auto",
    "nb",
    "recursive_doubling",
    "recursive_multiplying",
    "reduce_scatter_allgather",
    "tree",
    "recexch",
    "ring",
    "k_reduce_scatter_allgather",
)
MARK = "RESULT "


def settings(family: str) -> dict[str, dict[str, str]]:
    """The variables that choose each algorithm."""
    if family == "openmpi":
        dynamic = {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1"}
        chosen = {
            name: dynamic | {"OMPI_MCA_coll_tuned_allreduce_algorithm": str(number)}
            for number, name in enumerate(OPENMPI)
        }
        return {"default": {}} | {
            name: value for name, value in chosen.items() if name != "default"
        }
    # The device's own collectives would go before the algorithm that is asked for.
    device = {"MPIR_CVAR_DEVICE_COLLECTIVES": "none"}
    return {"default": {}} | {
        name: device | {"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": name} for name in MPICH
    }


def measure(repeats: int) -> None:
    """The job: MPI's all-reduce as the environment chose it, and rawcoll's."""
    from rawcoll.bench.stats import median_ratio
    from rawcoll.comm.init import init
    from rawcoll.transport.mpi import raw_collective

    comm = init()
    with comm:
        rows = []
        for nbytes in SIZES:
            x, y = (np.full(nbytes // 4, comm.rank + 1, np.float32) for _ in range(2))
            calls: list[common.Call] = [
                raw_collective(comm.mpi, "all_reduce", None, x),
                partial(comm.all_reduce, y),
            ]
            for call, array in zip(calls, (x, y), strict=True):
                call()
                assert (array == comm.nranks * (comm.nranks + 1) / 2).all()
                array.fill(0)
            theirs, ours = common.paired_times(comm, calls, repeats)
            ratio = median_ratio(theirs, ours)
            rows.append(
                {
                    "size": nbytes,
                    "mpi_us": common.summary_us(theirs),
                    "auto_us": common.summary_us(ours),
                    "mpi_over_auto": {"median": ratio.value, "low": ratio.low, "high": ratio.high},
                }
            )
        if comm.rank == 0:
            run = common.describe_run(comm.nranks)
            print(MARK + json.dumps({"run": run, "rows": rows}), flush=True)


def run_job(nranks: int, variables: dict[str, str], repeats: int, limit_s: float) -> dict[str, Any]:
    """One job; its rows, or why there are none."""
    mpirun = mpilaunch.find_mpirun()
    command = [
        *mpilaunch.mpirun_command(mpirun, nranks),
        sys.executable,
        __file__,
        "--job",
        "--repeats",
        str(repeats),
    ]
    environment = mpilaunch.clean_environment(os.environ) | variables
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"no result within {limit_s:g} s"}
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            found: dict[str, Any] = json.loads(line.removeprefix(MARK))
            return found
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return {"failed": said[-1] if said else f"exit status {done.returncode}"}


def main() -> None:
    """Run one job an algorithm, or be such a job."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", "--nranks", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--limit", type=float, default=300, help="seconds for one job")
    parser.add_argument("--job", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        measure(given.repeats)
        return
    family = mpilaunch.mpi_family(mpilaunch.find_mpirun())
    results, run = {}, None
    for name, variables in settings(family).items():
        found = run_job(given.nranks, variables, given.repeats, given.limit)
        run = run or found.get("run")
        results[name] = {"settings": variables}
        results[name] |= {"rows": found["rows"]} if "rows" in found else found
        print(name, results[name], flush=True)
    document = {
        **(run or common.describe_run()),
        "command": " ".join(["python", *sys.argv]),
        "what": "all_reduce, float32, sum, in place; ratio: MPI's time over rawcoll's auto",
        "repeats": given.repeats,
        "results": results,
    }
    print("wrote", common.write_result(f"mpi_algorithms-{family}-{given.nranks}", document))


if __name__ == "__main__":
    main()

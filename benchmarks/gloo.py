"""All-reduce by Gloo (PyTorch), by rawcoll and by MPI, in the same processes, turn by turn.

Usage, under mpirun: ``python benchmarks/gloo.py [--repeats 20]``. Needs PyTorch; without it, says so and
succeeds. Writes ``results/gloo-MPI-RANKS.json``.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import common
import numpy as np

from rawcoll.bench.stats import geometric_mean, median_ratio
from rawcoll.comm.init import init
from rawcoll.transport.mpi import raw_collective

SIZES = (8, 4 << 10, 256 << 10, *(n * common.MIB for n in (1, 4, 16, 64)))
MERIT_SIZES = tuple(n * common.MIB for n in (1, 4, 16, 64))


def start_gloo(comm: Any) -> None:
    """A process group over the loopback, met through a file that rank 0 names."""
    import torch.distributed as dist

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    folder = comm.mpi.bcast(tempfile.mkdtemp() if comm.rank == 0 else None, root=0)
    store = dist.FileStore(str(Path(folder) / "store"), comm.nranks)
    dist.init_process_group(
        "gloo",
        store=store,
        rank=comm.rank,
        world_size=comm.nranks,
        timeout=datetime.timedelta(seconds=120),
    )


def row(comm: Any, nbytes: int, repeats: int) -> dict[str, Any]:
    """One size: checked, then timed."""
    import torch
    import torch.distributed as dist

    arrays = [np.full(nbytes // 4, comm.rank + 1, np.float32) for _ in range(3)]
    tensor = torch.from_numpy(arrays[2])
    calls: dict[str, Callable[[], Any]] = {
        "mpi": raw_collective(comm.mpi, "all_reduce", None, arrays[0]),
        "auto": partial(comm.all_reduce, arrays[1]),
        "gloo": lambda: dist.all_reduce(tensor),
    }
    for call, array in zip(calls.values(), arrays, strict=True):
        call()
        assert (array == comm.nranks * (comm.nranks + 1) / 2).all()
        array.fill(0)  # stays 0 however often it is added
    times = common.paired_times(comm, list(calls.values()), repeats)
    ratio = median_ratio(times[2], times[1])
    return {
        "size": nbytes,
        "algorithm": str(comm.explain("all_reduce", nbytes // 4, "float32").algorithm),
        "time_us": {
            name: common.summary_us(found) for name, found in zip(calls, times, strict=True)
        },
        "gloo_over_auto": {"median": ratio.value, "low": ratio.low, "high": ratio.high},
    }


def main() -> int:
    """Run the suite on this rank."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=20)
    given = parser.parse_args()
    comm = init()
    with comm:
        if find_spec("torch") is None:
            if comm.rank == 0:
                print("gloo: PyTorch is not installed: nothing measured")
            return 0
        start_gloo(comm)
        rows = []
        for nbytes in SIZES:
            rows.append(row(comm, nbytes, given.repeats))
            if comm.rank == 0:
                print(rows[-1], flush=True)
        if comm.rank == 0:
            run = common.describe_run(comm.nranks)
            merit = [r["gloo_over_auto"]["median"] for r in rows if r["size"] in MERIT_SIZES]
            document = {
                **run,
                "what": "all_reduce, float32, sum, in place; ratio: Gloo's time over rawcoll's auto",
                "repeats": given.repeats,
                "gloo_over_auto": geometric_mean(merit),
                "results": rows,
            }
            family = common.mpi_family(run["environment"]["mpi"])
            print("wrote", common.write_result(f"gloo-{family}-{comm.nranks}", document))
        import torch.distributed as dist

        dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())

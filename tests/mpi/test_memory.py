"""Warm calls leave no memory behind.

A job of its own: what other cases leave to be collected would be counted.
"""

from __future__ import annotations

from support.cases import mpi_cases, skip


def case_warm_calls_allocate_nothing(comm):
    import gc
    import tracemalloc

    import numpy as np

    from rawcoll.kernels import host_kernels

    if host_kernels().name == "numpy":
        skip("numpy's kernels make temporary arrays")
    x = np.ones(2, np.float32)
    for _ in range(300):
        comm.all_reduce(x, op="max")
    gc.collect()
    tracemalloc.start()
    for _ in range(50):
        comm.all_reduce(x, op="max")
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    for _ in range(1000):
        comm.all_reduce(x, op="max")
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 128, after - before
    assert peak - before < 4096, peak - before


test_memory = mpi_cases(globals(), nranks=(2,), env={"RAWCOLL_CHECK": "0"})

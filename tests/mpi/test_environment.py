"""The environment's MPI works at all: what every other test under mpirun takes for granted."""

from __future__ import annotations

import os

from support.cases import each, mpi_cases


@each(count=[0, 1, 100_000])
def case_allreduce(mpi, count):
    import numpy as np

    mine, total = np.full(count, mpi.rank + 1), np.empty(count, int)
    mpi.Allreduce(mine, total)
    assert (total == mpi.size * (mpi.size + 1) // 2).all()


def case_ranks_do_not_use_each_others_cores():
    assert os.environ["OMP_NUM_THREADS"] == "1"


def case_arguments_are_checked():
    assert os.environ["RAWCOLL_CHECK"] == "1"


test_environment = mpi_cases(globals(), nranks=(1, 2, 4))

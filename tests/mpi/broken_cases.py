"""Cases that go wrong in every way that the runner must survive; run by test_runner.py."""

from __future__ import annotations

import os
import time

from support.cases import each, skip


@each(value=[1, 2])
def case_passes(mpi, value):
    assert mpi.allreduce(value) == value * mpi.size


def case_skips():
    skip("needs 9 ranks")


def case_fails_on_rank_1(mpi):
    mpi.Barrier()
    if mpi.rank == 1:
        raise ValueError("only here")


def case_after_a_failure(mpi):
    assert mpi.allreduce(1) == mpi.size


def case_one_rank_leaves_the_others_waiting(mpi):
    if mpi.rank == 1:
        raise ValueError("left early")
    mpi.recv(source=1)


def case_dies(mpi):
    if mpi.rank == 1:
        os._exit(7)
    mpi.Barrier()


def case_hangs(mpi):
    if mpi.rank == 0:
        time.sleep(600)


def case_after_a_hang(mpi):
    assert mpi.allreduce(1) == mpi.size

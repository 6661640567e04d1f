"""One message of more than 2 GiB, for real; pieces of any size are tested in test_collectives."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

PROGRAM = """
import numpy as np
import rawcoll

with rawcoll.init() as comm:
    x = np.full((1 << 31) + (1 << 27) + 3, 7 - comm.rank, np.uint8)
    if comm.rank == 0:
        x[1 << 31] = 5
        x[-1] = 9
    comm.broadcast(x, algorithm="binomial")
    assert (x[0], x[(1 << 31) - 1], x[1 << 31], x[-2], x[-1]) == (7, 7, 5, 7, 9)
    assert int(x.sum(dtype=np.int64)) == 7 * x.size
    print("arrived")
"""


@pytest.mark.slow
def test_more_than_2_gib_in_one_message(mpirun, tmp_path: Path) -> None:
    pages = os.sysconf("SC_AVPHYS_PAGES")
    if pages * os.sysconf("SC_PAGE_SIZE") < 8 << 30:
        pytest.skip("needs 8 GiB of free memory")
    script = tmp_path / "large.py"
    script.write_text(PROGRAM)
    assert mpirun(2, script, timeout=120, check=True).stdout.count("arrived") == 2

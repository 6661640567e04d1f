"""Examinations of ``rawcoll doctor`` that need no MPI: packages, kernels, processor, GPU, settings.

Owns what is looked at and what mends it. Prints nothing.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import rawcoll
from rawcoll.cli._findings import BROKEN, FINE, NOTE, WARNING, Finding
from rawcoll.comm.planner import Planner
from rawcoll.config import VARIABLES, debug_level, settings_from
from rawcoll.errors import RawcollError

_PATIENCE_S: Final = 60.0  # other jobs may have the cores
_NEEDED: Final = ("numpy", "ml_dtypes", "mpi4py")
_BUILD: Final = "pip install --force-reinstall --no-deps --no-binary rawcoll rawcoll"
_UNBIND: Final = (
    "mpirun --bind-to none (Open MPI), mpirun -bind-to none (MPICH), srun --cpu-bind=none"
    " --cpus-per-task=2 (Slurm)"
)


def packages() -> Iterator[Finding]:
    """rawcoll, Python and what rawcoll needs."""
    yield Finding(FINE, "rawcoll", f"{installed('rawcoll') or 'source'} in {_home()}")
    yield Finding(FINE, "Python", f"{platform.python_version()} at {sys.executable}")
    for name in _NEEDED:
        found = installed(name)
        if found:
            yield Finding(FINE, name, found)
        else:
            yield Finding(BROKEN, name, "not installed", f"pip install {name}")


def _home() -> Path:
    return Path(rawcoll.__file__).parent


def installed(package: str) -> str | None:
    """The installed version, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def kernels(environment: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """The compiled kernels with their instruction set, or numpy and why."""
    from rawcoll.kernels.host import host_kernels

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        name = host_kernels().name
    if name == "native":
        yield _compiled()
    elif environment.get("RAWCOLL_NATIVE") == "0":
        fact = "numpy, because RAWCOLL_NATIVE=0: the same bits, several times slower"
        yield Finding(WARNING, "kernels", fact, "unset RAWCOLL_NATIVE")
    else:
        fact = "numpy, because the compiled ones are missing: the same bits, several times slower"
        yield Finding(WARNING, "kernels", fact, f"{_BUILD} (in a checkout: pip install -e .)")


def _compiled() -> Finding:
    from rawcoll.native import _native

    build = _native.build_info()
    levels = ", ".join(_native.simd_levels())
    fact = f"compiled with {build['compiler']}, using {build['simd']} of {levels}"
    return Finding(FINE, "kernels", fact)


def cores() -> Iterator[Finding]:
    """How many cores this process may use."""
    usable, there = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    fact = f"{usable} of {there} in the affinity mask"
    if usable > 1:
        yield Finding(FINE, "cores", fact)
    elif there == 1:
        fact += ": the caller and the progress thread share it, asynchronous calls overlap nothing"
        yield Finding(WARNING, "cores", fact)
    else:
        fact += (
            f" (core {min(os.sched_getaffinity(0))}): the caller and the progress thread share it"
        )
        yield Finding(WARNING, "cores", fact, _UNBIND)


def gpu() -> Iterator[Finding]:
    """The GPU with its driver, and CuPy; this version uses neither."""
    cards = _nvidia()
    cupy = next(
        (name for name in ("cupy-cuda13x", "cupy-cuda12x", "cupy") if installed(name)), None
    )
    has_cupy = importlib.util.find_spec("cupy") is not None
    for card in cards or ["no NVIDIA driver found"]:
        yield Finding(NOTE, "GPU", card)
    yield Finding(
        NOTE, "CuPy", f"{cupy} {installed(cupy)}" if cupy and has_cupy else "not installed"
    )
    if cards:
        yield Finding(NOTE, "CUDA", "not used: this version of rawcoll runs on the host")


def _nvidia() -> list[str]:
    """A line a GPU, as nvidia-smi says; the driver's own line where that does not run."""
    query = ["--query-gpu=name,driver_version", "--format=csv,noheader"]
    smi = shutil.which("nvidia-smi")
    said = run_quietly([smi, *query]) if smi else None
    if said is not None and said.returncode == 0:
        return [f"{card.strip()} (name, driver)" for card in said.stdout.splitlines() if card]
    driver = Path("/proc/driver/nvidia/version")
    return [driver.read_text().splitlines()[0]] if driver.exists() else []


def run_quietly(
    command: list[str], environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str] | None:
    """A command's output and status; None where it does not start or does not end."""
    options: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace"}
    try:
        return subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
            check=False,
            **options,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def variables(environment: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """The RAWCOLL_* variables that are set, each known or not, readable or not."""
    names = sorted(name for name in environment if name.startswith("RAWCOLL_"))
    if not names:
        yield Finding(FINE, "RAWCOLL_*", f"none set (known: {', '.join(VARIABLES)})")
    for name in names:
        value = environment[name]
        try:
            _check_value(name, value)
        except RawcollError as error:
            yield Finding(BROKEN, name, f"={value}: {error.message}", f"unset {name}")
        else:
            yield Finding(FINE, name, f"={value} ({VARIABLES[name]})")


def _check_value(name: str, value: str) -> None:
    settings = settings_from({name: value})
    debug_level({name: value})
    Planner(0, 1, settings.algorithms)  # reads the algorithms

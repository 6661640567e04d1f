"""What ranks tell each other before the first call, and what is refused there.

Owns the comparison of the launcher's number of ranks with MPI's, and of versions, environment and device
over the ranks. A job that would run as N single ranks, or with ranks that disagree, ends here with the
cause named.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping
from typing import Any, Final

from rawcoll.comm.bootstrap import Bootstrap
from rawcoll.config import LOCAL_VARIABLES, Settings, settings_from
from rawcoll.errors import BackendUnavailable, RankMismatch, RawcollError

LAUNCHERS: Final = {
    "OMPI_COMM_WORLD_SIZE": "Open MPI's mpirun",
    "PMI_SIZE": "MPICH's mpirun",
    "SLURM_STEP_NUM_TASKS": "Slurm's srun",
    "WORLD_SIZE": "torchrun or a script",
}
"""Variables in which launchers say how many ranks they started."""


def check_launcher(nranks: int, library: str, environ: Mapping[str, str]) -> None:
    """Refuse a job whose launcher started another number of ranks than MPI joined.

    Raises:
        BackendUnavailable: launchers are seen, and none of them agrees with MPI.
    """
    found = {name: int(environ[name]) for name in LAUNCHERS if environ.get(name, "").isdigit()}
    if not found or nranks in found.values():
        return
    said = ", ".join(f"{name}={size} ({LAUNCHERS[name]})" for name, size in found.items())
    raise BackendUnavailable(
        f"init: number of ranks: found {nranks} in MPI, expected {said}: this process loaded "
        f"'{library}', which did not join that job; start it with the mpirun of the same MPI "
        "(python -m rawcoll doctor names it)"
    )


def agree_on_settings(bootstrap: Bootstrap, device: str, version: str, kernels: str) -> Settings:
    """Compare all ranks' surroundings; returns rank 0's settings. Collective.

    Raises:
        RankMismatch: on every rank, naming the field, the ranks and both values.
        InvalidArgument: on every rank, where a rank's environment does not parse.
    """
    problem = ""
    settings = Settings()
    try:
        settings = settings_from(os.environ)
    except RawcollError as error:
        problem = error.message
    own = _surroundings(device, version, kernels)
    gathered = [
        json.loads(data) for data in bootstrap.all_gather(json.dumps([problem, own]).encode())
    ]
    for rank, (text, _) in enumerate(gathered):
        if text:
            raise RankMismatch(f"rank {rank}: {text}", peers=(rank,))
    refuse_differences([fields for _, fields in gathered])
    return settings


def refuse_differences(fields: list[dict[str, Any]], what: str = "init") -> None:
    """Raise RankMismatch for the first field that is not the same on all ranks."""
    names = dict.fromkeys(name for entry in fields for name in entry)
    for name in names:
        values = [entry.get(name) for entry in fields]
        if any(value != values[0] for value in values):
            raise RankMismatch(
                f"{what}: {name} differs: found {describe(values)}, expected the same on all ranks",
                peers=range(len(values)),
            )


def describe(values: list[Any]) -> str:
    """``8 on ranks 0-2, 9 on rank 3``: the ranks of each value."""
    by_value: dict[str, list[int]] = {}
    for rank, value in enumerate(values):
        by_value.setdefault("unset" if value is None else str(value), []).append(rank)
    return ", ".join(f"{value} on {_ranks(ranks)}" for value, ranks in by_value.items())


def _ranks(ranks: list[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if ranks == list(range(ranks[0], ranks[-1] + 1)):
        return f"ranks {ranks[0]}-{ranks[-1]}"
    return "ranks " + ", ".join(map(str, ranks))


def _surroundings(device: str, version: str, kernels: str) -> dict[str, str]:
    """What must be the same everywhere. Kernels give the same bits, so a mixture is only slow."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if name.startswith("RAWCOLL_") and name not in LOCAL_VARIABLES
    }
    fields = {"rawcoll": version, "device": device, "byte order": sys.byteorder, **variables}
    return {**fields, "kernels": kernels, "python": ".".join(platform.python_version_tuple()[:2])}

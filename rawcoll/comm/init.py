"""``rawcoll.init``: from a started job to a communicator."""

from __future__ import annotations

import logging
import os
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from rawcoll.comm.bootstrap import AbortHook, MpiBootstrap, library_version
from rawcoll.comm.communicator import Communicator
from rawcoll.comm.handshake import agree_on_settings, check_launcher
from rawcoll.config import debug_level, timeout_from
from rawcoll.errors import BackendUnavailable, unknown_name
from rawcoll.executor.engine import process_engine
from rawcoll.kernels.host import host_kernels

_DEVICES: Final = ("auto", "host", "cuda")


def init(
    mpi_comm: Any = None, device: str = "auto", timeout_s: float | None = None
) -> Communicator:
    """Join the ranks of a job into a communicator. Collective.

    Args:
        mpi_comm: an mpi4py intracommunicator, duplicated here; None: all processes that MPI started.
        device: ``auto`` or ``host``: numpy and MPI. ``cuda`` is not there yet.
        timeout_s: seconds without progress after which a blocked call raises CollectiveTimeout; None:
            RAWCOLL_TIMEOUT_S, else 600.

    Raises:
        BackendUnavailable: no MPI, an MPI that does not serve threads, or a launcher that started another
            number of processes than MPI joined.
        RankMismatch: ranks differ in version, environment or device.
        InvalidArgument: an argument or a RAWCOLL_* variable that does not parse.
    """
    _configure_log()
    if device not in _DEVICES:
        raise unknown_name("device", device, _DEVICES)
    if device == "cuda":
        raise BackendUnavailable(
            "device: cuda: found no CUDA backend in this version, expected host"
        )
    if mpi_comm is None:
        bootstrap = MpiBootstrap.from_world()
        check_launcher(bootstrap.nranks, library_version(), os.environ)
    else:
        bootstrap = MpiBootstrap(mpi_comm)
    hook = AbortHook(bootstrap) if bootstrap.nranks > 1 else None
    settings = agree_on_settings(bootstrap, "host", _version(), host_kernels().name)
    limit = settings.timeout_s if timeout_s is None else timeout_from("timeout_s", timeout_s)
    comm = Communicator(bootstrap, settings, limit, hook)
    process_engine().yields |= _is_oversubscribed(comm)
    return comm


def _is_oversubscribed(comm: Communicator) -> bool:
    """Whether the node has more ranks than this process may use cores: then idle ranks must yield."""
    topology = comm.topology
    ranks = topology.nodes[topology.node_of(comm.rank)]
    return len(ranks) > len(os.sched_getaffinity(0))


def _configure_log() -> None:
    level = debug_level(os.environ)
    log = logging.getLogger("rawcoll")
    if level is not None and not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("rawcoll %(levelname)s %(message)s"))
        log.addHandler(handler)
        log.setLevel(level)


def _version() -> str:
    try:
        return version("rawcoll")
    except PackageNotFoundError:  # a source tree on the path
        return "source"

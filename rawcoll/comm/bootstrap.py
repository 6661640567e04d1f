"""How ranks find each other before a transport exists: three functions, over MPI.

Owns the only start of MPI and the calls that other bootstraps would have to offer: broadcast bytes,
all-gather bytes, barrier.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from rawcoll.errors import BackendUnavailable

if TYPE_CHECKING:
    from rawcoll.transport.base import Transport
    from rawcoll.transport.mpi import MpiTransport


class Bootstrap(Protocol):
    """What a communicator needs of the world outside before and beside its transport."""

    @property
    def rank(self) -> int:
        """This rank."""

    @property
    def nranks(self) -> int:
        """How many ranks there are."""

    def broadcast(self, data: bytes) -> bytes:
        """Rank 0's bytes, on every rank. Collective."""

    def all_gather(self, data: bytes) -> list[bytes]:
        """Every rank's bytes, in rank order. Collective."""

    def barrier(self) -> None:
        """Return when all ranks have called. Collective."""


class MpiBootstrap:
    """Over a communicator of mpi4py.

    Args:
        comm: the caller's; it is duplicated, never used for messages.
    """

    def __init__(self, comm: Any) -> None:
        self.comm = comm.Dup()
        self.rank: int = self.comm.rank
        self.nranks: int = self.comm.size

    @classmethod
    def from_world(cls) -> MpiBootstrap:
        """Over all processes that MPI started.

        Raises:
            BackendUnavailable: mpi4py or an MPI library is missing, or does not serve threads.
        """
        return cls(_mpi().COMM_WORLD)

    def broadcast(self, data: bytes) -> bytes:
        """See Bootstrap."""
        found: bytes = self.comm.bcast(data)
        return found

    def all_gather(self, data: bytes) -> list[bytes]:
        """See Bootstrap."""
        found: list[bytes] = self.comm.allgather(data)
        return found

    def barrier(self) -> None:
        """See Bootstrap."""
        self.comm.Barrier()

    def transport(self) -> MpiTransport:
        """A transport on a private duplicate. Collective."""
        # Its module starts MPI when imported, which `import rawcoll` must not.
        from rawcoll.transport.mpi import MpiTransport

        return MpiTransport(self.comm.Dup())

    def wired_transport(self, *, shared_memory: bool) -> Transport:
        """The same, with messages sent by native code where every rank has it. Collective.

        Args:
            shared_memory: whether messages between ranks of one node may go through it.
        """
        far = self.transport()
        node = self.comm.Split_type(_mpi().COMM_TYPE_SHARED)
        if not all(self.comm.allgather(far.functions() is not None)):
            node.Free()
            return far
        from rawcoll.transport.wired import WiredTransport

        return WiredTransport.over(far, node, shared_memory=shared_memory)

    def split(self, color: int | None, key: int) -> MpiBootstrap | None:
        """The ranks of the same color, ordered by key; None without a color. Collective."""
        mpi = _mpi()
        part = self.comm.Split(mpi.UNDEFINED if color is None else color, key)
        if part == mpi.COMM_NULL:
            return None
        found = MpiBootstrap(part)
        part.Free()
        return found

    def nodes(self) -> tuple[tuple[int, ...], ...]:
        """The ranks that share memory, by what MPI calls shared, in rank order. Collective."""
        shared = self.comm.Split_type(_mpi().COMM_TYPE_SHARED)
        node = tuple(shared.allgather(self.rank))
        shared.Free()
        return tuple(sorted(set(self.comm.allgather(node))))

    def close(self) -> None:
        """Free the duplicate. Collective."""
        self.comm.Free()

    def abort(self, status: int = 1) -> None:
        """End the whole job from this rank alone."""
        sys.stdout.flush()
        sys.stderr.flush()
        _mpi().COMM_WORLD.Abort(status)


class AbortHook:
    """While open, an exception that nothing catches on one rank ends the job, after it is printed.

    Chains: whatever hooks were there before still run first.
    """

    def __init__(self, bootstrap: MpiBootstrap) -> None:
        self._bootstrap = bootstrap
        self._pid = os.getpid()
        self._except = sys.excepthook
        self._thread = threading.excepthook
        sys.excepthook = self._on_exception
        threading.excepthook = self._on_thread_exception

    def close(self) -> None:
        """Stand aside; the hooks stay chained where others were added on top of them."""
        self._pid = -1
        if sys.excepthook == self._on_exception:
            sys.excepthook = self._except
        if threading.excepthook == self._on_thread_exception:
            threading.excepthook = self._thread

    def _on_exception(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        self._except(kind, error, trace)
        self._abort(kind, error)

    def _on_thread_exception(self, found: threading.ExceptHookArgs) -> None:
        self._thread(found)
        if found.exc_value is not None:
            self._abort(found.exc_type, found.exc_value)

    def _abort(self, kind: type[BaseException], error: BaseException) -> None:
        if self._pid != os.getpid() or not _is_running():
            return
        line = traceback.format_exception_only(kind, error)[-1].strip()
        sys.stderr.write(f"rawcoll: rank {self._bootstrap.rank}: uncaught {line}; ending the job\n")
        self._bootstrap.abort()


def library_version() -> str:
    """The MPI library's own words, in one line."""
    return " ".join(_mpi().Get_library_version().split("\n")[0].split())


def _is_running() -> bool:
    mpi = _mpi()
    return bool(mpi.Is_initialized()) and not mpi.Is_finalized()


def _mpi() -> Any:
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise BackendUnavailable(
            f"mpi: cannot be loaded: found {error}, expected mpi4py and an MPI library "
            "(pip install 'rawcoll[mpich]')"
        ) from error
    if not MPI.Is_finalized() and MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise BackendUnavailable(
            f"mpi: thread level: found {MPI.Query_thread()}, expected MPI_THREAD_MULTIPLE "
            f"({MPI.THREAD_MULTIPLE}): let mpi4py initialise MPI, or ask for it"
        )
    return MPI

"""Messages over MPI through mpi4py, and MPI's own collectives.

Two private duplicates of the caller's communicator: one for messages, one for MPI's collectives, so that
neither meets the caller's traffic or the other. Larger messages than MPI's counts allow travel in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from mpi4py import MPI

from rawcoll.device.host import Memory
from rawcoll.transport.base import Message, NativeCall, Pending
from rawcoll.transport.mpi_errors import mapped, transport_error
from rawcoll.transport.mpi_functions import native_mpi
from rawcoll.transport.mpi_native import NativeCollectives

if TYPE_CHECKING:
    from rawcoll.native import _native

_MAX_MESSAGE_NBYTES: Final = 1 << 30
"""Below 2^31, beyond which a count of bytes does not fit every MPI's 32-bit count."""

_from_address = MPI.memory.fromaddress
_BYTE = MPI.BYTE


class MpiTransport:
    """One rank's end of an MPI communicator.

    Args:
        comm: a communicator that this object owns; freed by ``close``.
        max_message_nbytes: size of the pieces of larger messages, the same on all ranks.
    """

    def __init__(self, comm: MPI.Intracomm, max_message_nbytes: int = _MAX_MESSAGE_NBYTES) -> None:
        self._comm = comm
        self._collectives = NativeCollectives(comm)
        self._max_nbytes = max_message_nbytes
        self.rank: int = comm.rank
        self.nranks: int = comm.size
        self.wires = None
        self._isend = comm.Isend
        self._irecv = comm.Irecv

    def post(
        self, sends: Sequence[Message], recvs: Sequence[Message], bases: Sequence[int], tag: int
    ) -> Pending:
        """See Transport. Receives first: a message that finds its place open is not buffered."""
        requests: list[MPI.Request] = []
        limit = self._max_nbytes
        try:
            for slot, offset, nbytes, peer in recvs:
                if nbytes <= limit:
                    memory = _from_address(bases[slot] + offset, nbytes)
                    requests.append(self._irecv((memory, nbytes, _BYTE), peer, tag))
                else:
                    self._start(self._irecv, (slot, offset, nbytes, peer), bases, tag, requests)
            for slot, offset, nbytes, peer in sends:
                if nbytes <= limit:
                    memory = _from_address(bases[slot] + offset, nbytes)
                    requests.append(self._isend((memory, nbytes, _BYTE), peer, tag))
                else:
                    self._start(self._isend, (slot, offset, nbytes, peer), bases, tag, requests)
        except MPI.Exception as error:
            raise transport_error("post", error, self.rank) from error
        return MpiPending(requests, recvs, sends, self)

    def allocate(self, nbytes: int) -> Memory:
        """See Transport."""
        return Memory(nbytes)

    def prepare_native(self, ranks: tuple[int, ...]) -> None:
        """See Transport."""
        self._collectives.prepare(ranks)

    def native(self, call: NativeCall, *, blocking: bool) -> Pending:
        """See Transport."""
        with mapped(call.collective, self.rank):
            return self._collectives.start(call, blocking=blocking)

    def close(self) -> None:
        """Free the communicators. Collective."""
        self._collectives.close()
        self._comm.Free()

    def functions(self) -> _native.Mpi | None:
        """The same messages for native code (``rawcoll.native._native.Mpi``); None without the extension."""
        return native_mpi(self._comm, self._max_nbytes)

    def npieces(self, nbytes: int) -> int:
        """How many pieces a message of ``nbytes`` travels in."""
        return -(-nbytes // self._max_nbytes)

    def _start(
        self,
        start: Callable[..., Any],
        message: Message,
        bases: Sequence[int],
        tag: int,
        requests: list[MPI.Request],
    ) -> None:
        """Start a message, in pieces where it is large; pieces match in order, like messages."""
        slot, offset, nbytes, peer = message
        address = bases[slot] + offset
        while nbytes > self._max_nbytes:
            size = self._max_nbytes
            requests.append(start((_from_address(address, size), size, _BYTE), peer, tag))
            address += size
            nbytes -= size
        requests.append(start((_from_address(address, nbytes), nbytes, _BYTE), peer, tag))


class MpiPending:
    """Requests under way: those of the receives, then those of the sends."""

    __slots__ = ("_done", "_recvs", "_requests", "_sends", "_transport")

    def __init__(
        self,
        requests: list[MPI.Request],
        recvs: Sequence[Message],
        sends: Sequence[Message],
        transport: MpiTransport,
    ) -> None:
        self._requests = requests
        self._recvs = recvs
        self._sends = sends
        self._transport = transport
        self._done = 0

    def test(self) -> bool:
        """See Pending. Tests the first open request only: that makes progress on all."""
        requests, done = self._requests, self._done
        try:
            while done < len(requests):
                if not requests[done].Test():
                    self._done = done
                    return False
                done += 1
        except MPI.Exception as error:
            rank, peer = self._transport.rank, self._peers()[done]
            raise transport_error("message", error, rank, peer) from error
        self._done = done
        return True

    def missing(self) -> tuple[int, ...]:
        """See Pending."""
        open_peers = (
            peer
            for request, peer in zip(self._requests, self._peers(), strict=True)
            if request != MPI.REQUEST_NULL and not request.Test()
        )
        return tuple(sorted(set(open_peers)))

    def _peers(self) -> list[int]:
        """The peer of each request."""
        return [
            peer
            for _, _, nbytes, peer in (*self._recvs, *self._sends)
            for _ in range(self._transport.npieces(nbytes))
        ]


def raw_collective(
    comm: Any, collective: str, src: Any, dst: Any, op: str = "sum", root: int = 0
) -> Callable[[], None]:
    """MPI's own collective on numpy arrays, without any of rawcoll: a baseline for measurements.

    Args:
        comm: an mpi4py communicator.
        collective: rawcoll's name of it.
        src: the input, or None for in place.
        dst: the output.
        op: ``sum``, ``prod``, ``min`` or ``max``.
        root: of rooted collectives.

    Returns:
        A callable that runs it once, blocking.
    """
    source = MPI.IN_PLACE if src is None else src
    operation = {"sum": MPI.SUM, "prod": MPI.PROD, "min": MPI.MIN, "max": MPI.MAX}.get(op)
    calls: dict[str, Callable[[], None]] = {
        "all_reduce": lambda: comm.Allreduce(source, dst, operation),
        "reduce": lambda: comm.Reduce(
            source if comm.rank == root or src is not None else dst, dst, operation, root
        ),
        "broadcast": lambda: comm.Bcast(dst, root),
        "all_gather": lambda: comm.Allgather(source, dst),
        "reduce_scatter": lambda: comm.Reduce_scatter_block(source, dst, operation),
        "all_to_all": lambda: comm.Alltoall(source, dst),
        "gather": lambda: comm.Gather(src if comm.rank != root else source, dst, root),
        "scatter": lambda: comm.Scatter(src, dst, root),
        "barrier": comm.Barrier,
    }
    return calls[collective]

"""Messages sent by native code: through shared memory between ranks of one node, by MPI to all others.

Owns the shared memory. The way that each message takes is in ``native/host/wires.h``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rawcoll.device.host import Memory
from rawcoll.native import _native
from rawcoll.transport.base import Message, NativeCall, Pending
from rawcoll.transport.mpi import MpiTransport
from rawcoll.transport.segments import SharedSegments

_ARENA_NBYTES: Final = 8 << 20
_NENTRIES: Final = 1024
"""Messages under way from one rank to one other; a sender waits where there are more."""


class WiredTransport:
    """One rank's end. Made by ``over``.

    Args:
        far: carries what does not go through shared memory, and the collectives of the library below;
            owned, closed by ``close``.
        node: mpi4py communicator of the ranks that share memory; owned.
        segments: their mailboxes; None: every message goes over MPI.
    """

    def __init__(self, far: MpiTransport, node: Any, segments: SharedSegments | None) -> None:
        self._far = far
        self._node = node
        self.rank = far.rank
        self.nranks = far.nranks
        self._shared: list[SharedSegments] = []
        box, numbers = None, [_native.FAR] * far.nranks
        if segments is not None:
            self._shared.append(segments)
            for number, rank in enumerate(node.allgather(far.rank)):
                numbers[rank] = number
            numbers[far.rank] = _native.FAR
            arena_nbytes = _arena_nbytes(node.size)
            box = _native.Mailbox(segments.addresses, node.rank, _NENTRIES, arena_nbytes)
        self.near = tuple(rank for rank, number in enumerate(numbers) if number != _native.FAR)
        """The peers that messages reach through shared memory."""
        self.wires: _native.Wires | None = _native.Wires(numbers, box, far.functions())

    @classmethod
    def over(cls, far: MpiTransport, node: Any, *, shared_memory: bool) -> WiredTransport:
        """Native messages in the place of mpi4py's. Collective.

        Args:
            far: over all ranks, all of which have its functions for native code; taken over.
            node: mpi4py communicator of the ranks that share memory; taken over.
            shared_memory: whether it may be used; else every message goes over MPI.
        """
        segments = None
        if shared_memory and node.size > 1:
            nbytes = _native.mailbox_nbytes(node.size, _NENTRIES, _arena_nbytes(node.size))
            segments = SharedSegments.create(node, nbytes)
        return cls(far, node, segments)

    def post(
        self, sends: Sequence[Message], recvs: Sequence[Message], bases: Sequence[int], tag: int
    ) -> Pending:
        """See Transport."""
        assert self.wires is not None
        return _native.Posted(self.wires, sends, recvs, bases, tag)

    def allocate(self, nbytes: int) -> Memory:
        """See Transport: memory that the neighbours have mapped too."""
        if not nbytes or not self._shared:
            return Memory(nbytes)
        segments = SharedSegments.create(self._node, nbytes)
        if segments is None:
            return Memory(nbytes)
        self._shared.append(segments)
        assert self.wires is not None
        self.wires.add_region(segments.addresses[self._node.rank], nbytes, segments.addresses)
        return segments.memory(self._node.rank)

    def prepare_native(self, ranks: tuple[int, ...]) -> None:
        """See Transport."""
        self._far.prepare_native(ranks)

    def native(self, call: NativeCall, *, blocking: bool) -> Pending:
        """See Transport."""
        return self._far.native(call, blocking=blocking)

    def close(self) -> None:
        """See Transport."""
        self.wires = None
        self._shared.clear()
        self._node.Free()
        self._far.close()


def _arena_nbytes(nranks: int) -> int:
    """What of a segment holds messages: less where many ranks have one each."""
    return _ARENA_NBYTES // max(1, nranks // 8)

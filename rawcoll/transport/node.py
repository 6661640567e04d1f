"""Messages between ranks of one node through shared memory, all others over MPI.

A small message is staged by its sender in shared memory, once for all its receivers on the node; the send
is complete then. A receiver copies it, or, where the slot is lent, leaves it there for the kernels to read.
Both ends decide by size and peer alike which way a message goes. Owns the shared segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rawcoll.errors import TransportError
from rawcoll.transport import _mailbox
from rawcoll.transport.base import Message, NativeCall, Pending, Prepared
from rawcoll.transport.mpi import MpiTransport
from rawcoll.transport.segments import SharedSegments

MOST_NBYTES: Final = 1 << 20
"""Larger messages go over MPI, which copies once where this copies twice: beyond the caches that decides."""
_ARENA_NBYTES: Final = 8 << 20
_NENTRIES: Final = 1024
"""Messages under way from one rank to one other; a sender waits where there are more."""


class NodeTransport:
    """One rank's end: shared memory beside MPI. Made by ``beside``.

    Args:
        far: carries what does not go through shared memory; owned, closed by ``close``.
        ranks: the ranks of this node, in the order of the segments.
        segments: their shared memory; owned.
        arena_nbytes: what of a segment holds messages.
    """

    def __init__(
        self, far: MpiTransport, ranks: Sequence[int], segments: SharedSegments, arena_nbytes: int
    ) -> None:
        self._far = far
        self.rank = far.rank
        self.nranks = far.nranks
        self.near = {rank: number for number, rank in enumerate(ranks) if rank != far.rank}
        """The peers on this node, and their numbers there."""
        self._segments = segments
        own = list(ranks).index(far.rank)
        self.box = _mailbox.Mailbox(segments.addresses, own, _NENTRIES, arena_nbytes)

    @classmethod
    def beside(cls, far: MpiTransport, node: Any) -> NodeTransport | None:
        """Shared memory beside ``far``; None where the node has none to share. Collective.

        Args:
            far: over all ranks.
            node: mpi4py communicator of the ranks that share memory.
        """
        ranks: list[int] = node.allgather(far.rank)
        arena_nbytes = _ARENA_NBYTES // max(1, len(ranks) // 8)
        nbytes = _mailbox.segment_nbytes(len(ranks), _NENTRIES, arena_nbytes)
        segments = SharedSegments.create(node, nbytes)
        return None if segments is None else cls(far, ranks, segments, arena_nbytes)

    def post(
        self,
        sends: Sequence[Message],
        recvs: Sequence[Message],
        bases: list[int],
        tag: int,
        lent: frozenset[int] = frozenset(),
    ) -> Pending:
        """See Transport."""
        near = self.near
        near_sends = [m for m in sends if m[2] <= MOST_NBYTES and m[3] in near]
        near_recvs = [m for m in recvs if m[2] <= MOST_NBYTES and m[3] in near]
        if not near_sends and not near_recvs:
            return self._far.post(sends, recvs, bases, tag)
        far = None
        if len(near_sends) < len(sends) or len(near_recvs) < len(recvs):
            far = self._far.post(
                [m for m in sends if m[2] > MOST_NBYTES or m[3] not in near],
                [m for m in recvs if m[2] > MOST_NBYTES or m[3] not in near],
                bases,
                tag,
            )
        pending = NodePending(self, near_sends, near_recvs, bases, tag, lent, far)
        pending.send()
        return pending

    def prepare(
        self,
        sends: Sequence[Message],
        recvs: Sequence[Message],
        bases: list[int],
        tag: int,
        lent: frozenset[int] = frozenset(),
    ) -> Prepared:
        """See Transport: there is nothing to prepare in shared memory."""
        if any(m[2] <= MOST_NBYTES and m[3] in self.near for m in (*sends, *recvs)):
            return _Repost(self, sends, recvs, bases, tag, lent)
        return self._far.prepare(sends, recvs, bases, tag)

    def prepare_native(self, ranks: tuple[int, ...]) -> None:
        """See Transport."""
        self._far.prepare_native(ranks)

    def native(self, call: NativeCall, *, blocking: bool) -> Pending:
        """See Transport."""
        return self._far.native(call, blocking=blocking)

    def close(self) -> None:
        """See Transport."""
        del self.box
        self._segments.close()
        self._far.close()


class NodePending:
    """A transfer under way, of which some messages go through shared memory."""

    __slots__ = ("_bases", "_borrowed", "_far", "_lent", "_recvs", "_sends", "_tag", "_transport")

    def __init__(
        self,
        transport: NodeTransport,
        sends: list[Message],
        recvs: list[Message],
        bases: list[int],
        tag: int,
        lent: frozenset[int],
        far: Pending | None,
    ) -> None:
        self._transport = transport
        self._sends = sends
        self._recvs = recvs
        self._bases = bases
        self._tag = tag
        self._lent = lent
        self._far = far
        self._borrowed: list[tuple[int, int, int, int]] = []
        """Peer's number, ticket, slot, and the slot's own base."""

    def test(self) -> bool:
        """See Pending."""
        if self._sends:
            self.send()
        if self._recvs:
            self._receive()
        if self._far is not None and self._far.test():
            self._far = None
        return not self._sends and not self._recvs and self._far is None

    def wait(self) -> None:
        """See Pending."""
        while not self.test():
            pass

    def missing(self) -> tuple[int, ...]:
        """See Pending."""
        peers = {message[3] for message in (*self._sends, *self._recvs)}
        return tuple(sorted(peers.union(() if self._far is None else self._far.missing())))

    def release(self) -> None:
        """See Pending."""
        for number, ticket, slot, base in self._borrowed:
            self._bases[slot] = base
            self._transport.box.release(number, ticket)
        self._borrowed.clear()

    def send(self) -> None:
        """Stage what there is room for: the same bytes once, whoever gets them."""
        transport, bases = self._transport, self._bases
        while self._sends:
            slot, offset, nbytes, _ = self._sends[0]
            same = [m for m in self._sends if m[0] == slot and m[1] == offset and m[2] == nbytes]
            peers = [transport.near[m[3]] for m in same]
            if not transport.box.send(peers, self._tag, bases[slot] + offset, nbytes):
                return
            self._sends = (
                [m for m in self._sends if m not in same] if len(same) > 1 else self._sends[1:]
            )

    def _receive(self) -> None:
        left: list[Message] = []
        for message in self._recvs:
            # Messages of one peer match in order: behind one that is not there none is taken.
            if (left and any(m[3] == message[3] for m in left)) or not self._take(message):
                left.append(message)
        self._recvs = left

    def _take(self, message: Message) -> bool:
        slot, offset, nbytes, peer = message
        transport, bases = self._transport, self._bases
        number = transport.near[peer]
        try:
            if slot not in self._lent:
                return transport.box.receive(number, self._tag, bases[slot] + offset, nbytes)
            found = transport.box.borrow(number, self._tag, nbytes)
        except ValueError as error:
            raise TransportError(
                f"message from rank {peer} to rank {transport.rank}: sizes differ: {error}",
                rank=transport.rank,
                peers=(peer,),
            ) from error
        if found is None:
            return False
        self._borrowed.append((number, found[1], slot, bases[slot]))
        bases[slot] = found[0]
        return True


class _Repost:
    """The same post again."""

    def __init__(self, transport: NodeTransport, *arguments: Any) -> None:
        self._transport = transport
        self._arguments = arguments

    def start(self) -> Pending:
        """See Prepared."""
        return self._transport.post(*self._arguments)

    def free(self) -> None:
        """See Prepared."""

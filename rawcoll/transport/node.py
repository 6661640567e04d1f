"""Messages between ranks of one node through shared memory, all others over MPI.

Every message between neighbours is announced in the receiver's mailbox. It is then read where it stands,
when the sender's array is shared memory (``allocate``); or staged by the sender, once for all its receivers
on the node; or, too large for that, sent over MPI. A receiver copies what it reads, or, where the slot is
lent, leaves it there for the kernels. Owns the shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rawcoll.device.host import Memory
from rawcoll.errors import TransportError
from rawcoll.transport import _mailbox
from rawcoll.transport.base import Message, NativeCall, Pending, Prepared
from rawcoll.transport.mpi import MpiTransport
from rawcoll.transport.segments import SharedSegments

MOST_STAGED_NBYTES: Final = 1 << 20
"""Larger messages go over MPI, which copies once where staging copies twice."""
LEAST_IN_PLACE_NBYTES: Final = 16 << 10
"""Smaller messages are staged: a copy costs less than waiting for the receiver to have read them."""
_ARENA_NBYTES: Final = 8 << 20
_MOST_PERSISTENT_NBYTES: Final = 4 << 10
_NENTRIES: Final = 1024
"""Messages under way from one rank to one other; a sender waits where there are more."""


@dataclass(frozen=True, slots=True)
class _Region:
    """Shared memory of this rank's that messages may be read from."""

    start: int
    stop: int
    number: int


class NodeTransport:
    """One rank's end: shared memory beside MPI. Made by ``beside``.

    Args:
        far: carries what does not go through shared memory; owned, closed by ``close``.
        node: mpi4py communicator of the ranks that share memory; owned.
        segments: their mailboxes; owned.
        arena_nbytes: what of a segment holds messages.
    """

    def __init__(
        self, far: MpiTransport, node: Any, segments: SharedSegments, arena_nbytes: int
    ) -> None:
        self.far = far
        self.rank = far.rank
        self.nranks = far.nranks
        self._node = node
        self._shared = [segments]
        self._regions: list[_Region] = []
        ranks: list[int] = node.allgather(far.rank)
        self.near = {rank: number for number, rank in enumerate(ranks) if rank != far.rank}
        """The peers on this node, and their numbers there."""
        self.box = _mailbox.Mailbox(segments.addresses, node.rank, _NENTRIES, arena_nbytes)

    @classmethod
    def beside(cls, far: MpiTransport, node: Any) -> NodeTransport | None:
        """Shared memory beside ``far``; None where the node has none to share. Collective.

        Args:
            far: over all ranks.
            node: mpi4py communicator of the ranks that share memory; taken over where one is made.
        """
        arena_nbytes = _ARENA_NBYTES // max(1, node.size // 8)
        nbytes = _mailbox.segment_nbytes(node.size, _NENTRIES, arena_nbytes)
        segments = SharedSegments.create(node, nbytes)
        return None if segments is None else cls(far, node, segments, arena_nbytes)

    def post(
        self,
        sends: Sequence[Message],
        recvs: Sequence[Message],
        bases: list[int],
        tag: int,
        lent: frozenset[int] = frozenset(),
        early: bool = False,
    ) -> Pending:
        """See Transport."""
        pending = NodePending(self, bases, tag, lent, early)
        pending.start(sends, recvs)
        return pending

    def prepare(
        self,
        sends: Sequence[Message],
        recvs: Sequence[Message],
        bases: list[int],
        tag: int,
        lent: frozenset[int] = frozenset(),
        early: bool = False,
    ) -> Prepared:
        """See Transport. Persistent MPI messages cost least where there is little to copy."""
        small = _Split(
            sends, recvs, lambda m: m[2] <= _MOST_PERSISTENT_NBYTES or m[3] not in self.near
        )
        over_mpi = self.far.prepare(small.sends, small.recvs, bases, tag)
        if not small.other_sends and not small.other_recvs:
            return over_mpi
        return _Repost(
            self, over_mpi, small.other_sends, small.other_recvs, (bases, tag, lent, early)
        )

    def allocate(self, nbytes: int) -> Memory:
        """See Transport: memory that the neighbours have mapped too."""
        segments = SharedSegments.create(self._node, nbytes) if nbytes else None
        if segments is None:
            return Memory(nbytes)
        self._shared.append(segments)
        start = segments.addresses[self._node.rank]
        number = self.box.add_region(segments.addresses)
        self._regions.append(_Region(start, start + nbytes, number))
        return segments.memory(self._node.rank)

    def region_of(self, address: int, nbytes: int) -> _Region | None:
        """The shared memory that holds a message, or None."""
        for region in self._regions:
            if region.start <= address and address + nbytes <= region.stop:
                return region
        return None

    def prepare_native(self, ranks: tuple[int, ...]) -> None:
        """See Transport."""
        self.far.prepare_native(ranks)

    def native(self, call: NativeCall, *, blocking: bool) -> Pending:
        """See Transport."""
        return self.far.native(call, blocking=blocking)

    def close(self) -> None:
        """See Transport."""
        del self.box
        self._regions.clear()
        self._shared.clear()
        self._node.Free()
        self.far.close()


class NodePending:
    """A transfer under way, of which some messages go through shared memory."""

    __slots__ = (
        "_bases",
        "_borrowed",
        "_coming",
        "_early",
        "_going",
        "_lent",
        "_read",
        "_recvs",
        "_sends",
        "_tag",
        "_transport",
    )

    def __init__(
        self,
        transport: NodeTransport,
        bases: list[int],
        tag: int,
        lent: frozenset[int],
        early: bool,
    ) -> None:
        self._transport = transport
        self._bases = bases
        self._tag = tag
        self._lent = lent
        self._early = early
        self._sends: list[Message] = []
        """Not announced yet."""
        self._recvs: list[Message] = []
        """Not announced to us yet."""
        self._going: list[Pending] = []
        """Sends over MPI."""
        self._coming: list[Pending] = []
        """Receives over MPI."""
        self._read: list[tuple[int, int]] = []
        """Peer's number and ticket of the sends that are read where they stand."""
        self._borrowed: list[tuple[int, int, int, int]] = []
        """Peer's number, ticket, slot, and the slot's own base."""

    def start(
        self, sends: Sequence[Message], recvs: Sequence[Message], beside: Pending | None = None
    ) -> None:
        """Post everything; what goes to other nodes goes over MPI at once.

        Args:
            sends, recvs: as posted.
            beside: other messages of the same transfer, under way already.
        """
        if beside is not None:
            self._coming.append(beside)
        near = self._transport.near
        if len(near) + 1 == self._transport.nranks:
            self._recvs, self._sends = [*recvs], [*sends]
        else:
            for message in recvs:
                if message[3] in near:
                    self._recvs.append(message)
                else:
                    self._coming.append(self._over_mpi((), (message,)))
            for message in sends:
                if message[3] in near:
                    self._sends.append(message)
                else:
                    self._going.append(self._over_mpi((message,), ()))
        if self._sends:
            self._send()

    def arrived(self) -> bool:
        """See Pending."""
        if self._sends:
            self._send()
        if self._recvs:
            self._receive()
        if self._coming:
            self._coming = [pending for pending in self._coming if not pending.test()]
        return not self._recvs and not self._coming

    def test(self) -> bool:
        """See Pending."""
        if not self.arrived() or self._sends:
            return False
        if self._read:
            box = self._transport.box
            self._read = [sent for sent in self._read if not box.is_done(*sent)]
        if self._going:
            self._going = [pending for pending in self._going if not pending.test()]
        return not self._read and not self._going

    def wait(self) -> None:
        """See Pending."""
        while not self.test():
            pass

    def missing(self) -> tuple[int, ...]:
        """See Pending."""
        peers = {message[3] for message in (*self._sends, *self._recvs)}
        ranks = {number: rank for rank, number in self._transport.near.items()}
        peers.update(ranks[number] for number, _ in self._read)
        for pending in (*self._coming, *self._going):
            peers.update(pending.missing())
        return tuple(sorted(peers))

    def release(self) -> None:
        """See Pending."""
        for number, ticket, slot, base in self._borrowed:
            self._bases[slot] = base
            self._transport.box.release(number, ticket)
        self._borrowed.clear()

    def _over_mpi(self, sends: Sequence[Message], recvs: Sequence[Message]) -> Pending:
        return self._transport.far.post(sends, recvs, self._bases, self._tag)

    def _send(self) -> None:
        """Announce what there is room for: the same bytes once, whoever gets them."""
        while self._sends:
            if len(self._sends) == 1:
                if self._announce(self._sends[0], self._sends):
                    self._sends = []
                return
            slot, offset, nbytes, _ = first = self._sends[0]
            same = [m for m in self._sends if m[0] == slot and m[1] == offset and m[2] == nbytes]
            if not self._announce(first, same):
                return
            self._sends = [m for m in self._sends if m not in same]

    def _announce(self, message: Message, same: list[Message]) -> bool:
        transport, box = self._transport, self._transport.box
        slot, offset, nbytes, _ = message
        address = self._bases[slot] + offset
        peers = [transport.near[one[3]] for one in same]
        if self._early and nbytes >= LEAST_IN_PLACE_NBYTES:
            region = transport.region_of(address, nbytes)
            if region is not None:
                where = address - region.start
                tickets = box.send_in_place(peers, self._tag, region.number, where, nbytes)
                self._read += zip(peers, tickets, strict=False)
                return bool(tickets)
        if nbytes <= MOST_STAGED_NBYTES and box.send(peers, self._tag, address, nbytes):
            return True
        if not box.send_in_place(peers, self._tag, _mailbox.ELSEWHERE, 0, nbytes):
            return False
        self._going.append(self._over_mpi(same, ()))
        return True

    def _receive(self) -> None:
        if len(self._recvs) == 1:
            if self._take(self._recvs[0]):
                self._recvs = []
            return
        left: list[Message] = []
        for message in self._recvs:
            # Messages of one peer match in order: behind one that is not there none is taken.
            if (left and any(one[3] == message[3] for one in left)) or not self._take(message):
                left.append(message)
        self._recvs = left

    def _take(self, message: Message) -> bool:
        """Take a message that is announced; one that travels otherwise is now expected there."""
        slot, offset, nbytes, peer = message
        number, box = self._transport.near[peer], self._transport.box
        try:
            if slot in self._lent:
                lent = box.borrow(number, self._tag, nbytes)
                if lent is None:
                    return False
                comes_elsewhere = not lent[0]
                if not comes_elsewhere:
                    self._borrowed.append((number, lent[1], slot, self._bases[slot]))
                    self._bases[slot] = lent[0]
            else:
                found = box.receive(number, self._tag, self._bases[slot] + offset, nbytes)
                if not found:
                    return False
                comes_elsewhere = found == _mailbox.COMES_ELSEWHERE
        except ValueError as error:
            raise self._sizes_differ(peer, error) from error
        if comes_elsewhere:
            self._coming.append(self._over_mpi((), (message,)))
        return True

    def _sizes_differ(self, peer: int, error: ValueError) -> TransportError:
        rank = self._transport.rank
        return TransportError(
            f"message from rank {peer} to rank {rank}: sizes differ: {error}",
            rank=rank,
            peers=(peer,),
        )


class _Split:
    """Messages of one transfer, parted by a question that both ends of a message answer alike."""

    def __init__(
        self,
        sends: Sequence[Message],
        recvs: Sequence[Message],
        question: Callable[[Message], bool],
    ) -> None:
        self.sends = [message for message in sends if question(message)]
        self.recvs = [message for message in recvs if question(message)]
        self.other_sends = [message for message in sends if not question(message)]
        self.other_recvs = [message for message in recvs if not question(message)]


@dataclass(frozen=True, slots=True)
class _Repost:
    """Persistent MPI messages, and the rest of the transfer posted again beside them."""

    transport: NodeTransport
    over_mpi: Prepared
    sends: list[Message]
    recvs: list[Message]
    arguments: tuple[list[int], int, frozenset[int], bool]

    def start(self) -> Pending:
        """See Prepared."""
        pending = NodePending(self.transport, *self.arguments)
        pending.start(self.sends, self.recvs, self.over_mpi.start())
        return pending

    def free(self) -> None:
        """See Prepared."""
        self.over_mpi.free()

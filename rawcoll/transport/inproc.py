"""All ranks in one process: the reference transport, on which deadlocks are found exactly.

A ``Switch`` joins the ranks' transports. Under ``rendezvous`` a message moves only when both ends have
posted it, which is the strictest behaviour a library may show; nothing here is buffered.
"""

from __future__ import annotations

import ctypes
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from rawcoll.device.host import Memory
from rawcoll.errors import BackendUnavailable, TransportError
from rawcoll.transport.base import Message, NativeCall, Pending


@dataclass(slots=True)
class _Posted:
    """One end of a message that waits for the other end."""

    address: int
    nbytes: int
    transfer: InprocPending


class InprocPending:
    """A transfer under way; complete when nothing of it is left."""

    def __init__(self) -> None:
        self._left: dict[int, int] = defaultdict(int)

    def expect(self, peer: int) -> None:
        """Count one more message to or from ``peer``."""
        self._left[peer] += 1

    def complete(self, peer: int) -> None:
        """One message with ``peer`` is complete."""
        self._left[peer] -= 1
        if not self._left[peer]:
            del self._left[peer]

    def test(self) -> bool:
        """See Pending."""
        return not self._left

    def missing(self) -> tuple[int, ...]:
        """See Pending."""
        return tuple(sorted(self._left))


class Switch:
    """Joins ``nranks`` in-process transports."""

    def __init__(self, nranks: int) -> None:
        self.nranks = nranks
        self._sends: dict[tuple[int, int, int], deque[_Posted]] = defaultdict(deque)
        self._recvs: dict[tuple[int, int, int], deque[_Posted]] = defaultdict(deque)

    def transport(self, rank: int) -> InprocTransport:
        """The end of ``rank``."""
        return InprocTransport(self, rank)

    def send(self, source: int, destination: int, tag: int, posted: _Posted) -> None:
        """Post the sending end of a message."""
        self._join(self._recvs, self._sends, (source, destination, tag), posted)

    def recv(self, source: int, destination: int, tag: int, posted: _Posted) -> None:
        """Post the receiving end of a message."""
        self._join(self._sends, self._recvs, (source, destination, tag), posted)

    def _join(
        self,
        waiting: dict[tuple[int, int, int], deque[_Posted]],
        own: dict[tuple[int, int, int], deque[_Posted]],
        key: tuple[int, int, int],
        posted: _Posted,
    ) -> None:
        if not waiting[key]:
            own[key].append(posted)
            return
        other = waiting[key].popleft()
        send, recv = (other, posted) if waiting is self._sends else (posted, other)
        if send.nbytes != recv.nbytes:
            raise TransportError(
                f"message from rank {key[0]} to rank {key[1]}: sizes differ: found "
                f"{send.nbytes} bytes sent, expected {recv.nbytes}"
            )
        ctypes.memmove(recv.address, send.address, send.nbytes)
        send.transfer.complete(key[1])
        recv.transfer.complete(key[0])


class InprocTransport:
    """One rank's end of a Switch."""

    def __init__(self, switch: Switch, rank: int) -> None:
        self._switch = switch
        self.rank = rank
        self.wires = None

    @property
    def nranks(self) -> int:
        """See Transport."""
        return self._switch.nranks

    def post(
        self, sends: Sequence[Message], recvs: Sequence[Message], bases: Sequence[int], tag: int
    ) -> Pending:
        """See Transport."""
        pending = InprocPending()
        for _, _, _, peer in (*sends, *recvs):
            pending.expect(peer)
        for slot, offset, nbytes, peer in sends:
            self._switch.send(self.rank, peer, tag, _Posted(bases[slot] + offset, nbytes, pending))
        for slot, offset, nbytes, peer in recvs:
            self._switch.recv(peer, self.rank, tag, _Posted(bases[slot] + offset, nbytes, pending))
        return pending

    def allocate(self, nbytes: int) -> Memory:
        """See Transport."""
        return Memory(nbytes)

    def prepare_native(self, ranks: tuple[int, ...]) -> None:  # noqa: ARG002 - see Transport
        """There is no library below.

        Raises:
            BackendUnavailable: always.
        """
        raise BackendUnavailable(
            "algorithm: builtin: found the in-process transport, expected one with a library below"
        )

    def native(self, call: NativeCall, *, blocking: bool) -> Pending:  # noqa: ARG002 - see Transport
        """See ``prepare_native``, which comes first and refuses."""
        raise BackendUnavailable(f"{call.collective}: found no library below")

    def close(self) -> None:
        """See Transport."""

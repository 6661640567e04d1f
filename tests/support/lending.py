"""A transport that lends: received messages stay in memory of its own until they are released.

Owns a stand-in for shared memory in one process. What is released is overwritten at once, so that a kernel
which still reads it gives a wrong result.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from rawcoll.comm.world import World
from rawcoll.device.host import Memory
from rawcoll.transport.base import Message, Pending
from rawcoll.transport.inproc import InprocTransport


@dataclass
class _Loan:
    slot: int
    memory: Memory
    base: int


class LendingPending:
    def __init__(self, pending: Pending, bases: list[int], loans: list[_Loan]) -> None:
        self._pending = pending
        self._bases = bases
        self._loans = loans
        self._arrived = False

    def test(self) -> bool:
        if not self._pending.test():
            return False
        if not self._arrived:
            self._arrived = True
            for loan in self._loans:
                self._bases[loan.slot] = loan.memory.address
        return True

    def arrived(self) -> bool:
        return self.test()

    def wait(self) -> None:
        self._pending.wait()

    def missing(self) -> tuple[int, ...]:
        return self._pending.missing()

    def release(self) -> None:
        for loan in self._loans:
            assert self._bases[loan.slot] == loan.memory.address, "lent twice at a time"
            self._bases[loan.slot] = loan.base
            ctypes.memset(loan.memory.address, 0xA5, loan.memory.nbytes)


class LendingTransport:
    def __init__(self, transport: InprocTransport) -> None:
        self._transport = transport
        self.rank, self.nranks = transport.rank, transport.nranks
        self.nlent = 0

    def post(
        self,
        sends: Sequence[Message],
        recvs: Sequence[Message],
        bases: list[int],
        tag: int,
        lent: frozenset[int] = frozenset(),
        early: bool = False,
    ) -> Pending:
        places = list(bases)
        loans = []
        for slot, offset, nbytes, _ in recvs:
            if slot in lent:
                assert offset == 0
                memory = Memory(nbytes)
                loans.append(_Loan(slot, memory, bases[slot]))
                places[slot] = memory.address
        self.nlent += len(loans)
        return LendingPending(self._transport.post(sends, recvs, places, tag), bases, loans)


class LendingWorld(World):
    """A World whose transports lend; ``nlent`` says how many messages were."""

    def __init__(self, nranks: int) -> None:
        super().__init__(nranks)
        self._transports = [LendingTransport(transport) for transport in self._transports]

    @property
    def nlent(self) -> int:
        return sum(transport.nlent for transport in self._transports)

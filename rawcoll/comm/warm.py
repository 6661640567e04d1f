"""Blocking calls in place that were made before: everything but the addresses is at hand.

Owns the shortest way from a call to its first message: no validation that the call before has not done,
no look-up by value, no new objects.
"""

from __future__ import annotations

import threading
from typing import Final

from rawcoll.comm.scratch import ScratchPool
from rawcoll.device.host import Memory
from rawcoll.executor.cursor import Cursor
from rawcoll.executor.plan import Plan

MOST_OWN_NBYTES: Final = 64 << 10
"""Scratch up to here is kept with the call; larger blocks are borrowed from those that all calls share."""


class WarmCall:
    """A call whose cursor is kept. One execution at a time: who runs it holds ``running``.

    Args:
        plan: of the call.
        cursor: on ``bases``.
        bases: its addresses; the first two are the caller's array.
        pool: lends the scratch.
    """

    __slots__ = ("_bases", "_own", "_pool", "cursor", "plan", "running")

    def __init__(self, plan: Plan, cursor: Cursor, bases: list[int], pool: ScratchPool) -> None:
        self.plan = plan
        self.cursor = cursor
        self.running = threading.Lock()
        self._bases = bases
        self._pool = pool
        self._own: Memory | None = None
        if plan.scratch_nbytes <= MOST_OWN_NBYTES:
            self._own = Memory(plan.scratch_nbytes)
            bases[:] = plan.bases(0, 0, self._own.address)

    def begin(self, address: int, tag: int) -> Memory:
        """Put the cursor at the beginning, for an array at ``address``; returns the scratch in use."""
        bases, memory = self._bases, self._own
        if memory is None:
            memory = self._pool.take(self.plan.scratch_nbytes)
            bases[:] = self.plan.bases(address, address, memory.address)
        else:
            bases[0] = bases[1] = address
        self.cursor.restart(tag)
        return memory

    def end(self, memory: Memory) -> None:
        """Give back what ``begin`` returned."""
        if memory is not self._own:
            self._pool.give_back(memory)

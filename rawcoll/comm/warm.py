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
        cursor: of the plan; it has no addresses yet.
        pool: lends the scratch.
    """

    __slots__ = ("_own", "_pool", "_scratch", "cursor", "plan", "running")

    def __init__(self, plan: Plan, cursor: Cursor, pool: ScratchPool) -> None:
        self.plan = plan
        self.cursor = cursor
        self.running = threading.Lock()
        self._pool = pool
        self._own: Memory | None = None
        self._scratch = 0
        if plan.scratch_nbytes <= MOST_OWN_NBYTES:
            self._own = Memory(plan.scratch_nbytes)
            self._place(self._own)

    def begin(self, address: int, tag: int) -> Memory:
        """Put the cursor at the beginning, for an array at ``address``; returns the scratch in use."""
        memory = self._own
        if memory is None:
            memory = self._pool.take(self.plan.scratch_nbytes)
            if memory.address != self._scratch:
                self._place(memory)
        self.cursor.walk.place_array(address)
        self.cursor.restart(tag)
        return memory

    def end(self, memory: Memory) -> None:
        """Give back what ``begin`` returned."""
        if memory is not self._own:
            self._pool.give_back(memory)

    def _place(self, scratch: Memory) -> None:
        self._scratch = scratch.address
        self.cursor.walk.place(self.plan.bases(0, 0, scratch.address))

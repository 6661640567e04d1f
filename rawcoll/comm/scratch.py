"""Scratch memory of a communicator: blocks lent to executions and taken back.

A warm call finds the block that the call before gave back: nothing is allocated, and the pages and cache
lines are warm.
"""

from __future__ import annotations

import threading
from typing import Final

from rawcoll.device.host import Memory

_MOST_FREE: Final = 4


class ScratchPool:
    """Lends memory blocks. Safe to use from any thread."""

    def __init__(self) -> None:
        self._free: list[Memory] = []
        self._lock = threading.Lock()

    def take(self, nbytes: int) -> Memory:
        """The smallest free block of at least ``nbytes``, or a new one."""
        with self._lock:
            best = -1
            for index, memory in enumerate(self._free):
                if memory.nbytes >= nbytes and (
                    best < 0 or memory.nbytes < self._free[best].nbytes
                ):
                    best = index
            if best >= 0:
                return self._free.pop(best)
        return Memory(nbytes)

    def give_back(self, memory: Memory) -> None:
        """Return a block; the smallest one beyond a few is let go."""
        with self._lock:
            self._free.append(memory)
            if len(self._free) > _MOST_FREE:
                self._free.remove(min(self._free, key=lambda block: block.nbytes))

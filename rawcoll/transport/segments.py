"""Memory that the ranks of one node share: one segment a rank, mapped by all.

Owns the files behind it, which lie in memory and lose their names as soon as every rank has opened them, so
that nothing stays behind whatever becomes of the job.
"""

from __future__ import annotations

import mmap
import os
import secrets
from typing import Any, Final, Self

import numpy as np

from rawcoll.device.host import Memory

_FOLDER: Final = "/dev/shm"
_MODE: Final = 0o600


class SharedSegments:
    """The segments of one node's ranks.

    Attributes:
        addresses: of each rank's segment in this process, at a page.
    """

    def __init__(self, maps: list[mmap.mmap]) -> None:
        self._maps = maps
        self.addresses = [int(np.frombuffer(one, np.uint8).ctypes.data) for one in maps]

    @classmethod
    def create(cls, node: Any, nbytes: int) -> Self | None:
        """Make and map segments of ``nbytes`` zeroes; None where any rank cannot. Collective.

        Args:
            node: mpi4py communicator of the ranks that share memory.
            nbytes: of one segment. Reserved, since memory that is missing later kills the process.
        """
        path = f"{_FOLDER}/rawcoll-{secrets.token_hex(16)}"
        own = _created(path, nbytes)
        try:
            paths: list[str | None] = node.allgather(None if own is None else path)
            maps = [own if there == path else _opened(there, nbytes) for there in paths]
            is_mapped = all(one is not None for one in maps)
            if not all(node.allgather(is_mapped)):
                return None
        finally:
            if own is not None:
                os.unlink(path)
        return cls([one for one in maps if one is not None])

    def memory(self, number: int) -> Memory:
        """One rank's segment, as memory that outlives this object."""
        return Memory.over(self._maps[number])


def _created(path: str, nbytes: int) -> mmap.mmap | None:
    try:
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, _MODE)
    except OSError:
        return None
    try:
        os.posix_fallocate(fd, 0, nbytes)
        return mmap.mmap(fd, nbytes)
    except OSError:
        os.unlink(path)
        return None
    finally:
        os.close(fd)


def _opened(path: str | None, nbytes: int) -> mmap.mmap | None:
    if path is None:
        return None
    try:
        fd = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        return mmap.mmap(fd, nbytes)
    except (OSError, ValueError):
        return None
    finally:
        os.close(fd)

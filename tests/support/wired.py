"""Ranks in one process whose messages go through native code: shared memory that all of them see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rawcoll.comm.world import World
from rawcoll.device.host import Memory
from rawcoll.native import _native
from support.fake_mpi import FakeMpi


class Node:
    """Wires of ranks, those of the first ``nnear`` joined by shared memory.

    Args:
        nranks: how many.
        nentries, arena_nbytes: of a mailbox.
        nnear: None: all.
        mpi: for the others, and for what does not fit.
    """

    def __init__(
        self,
        nranks: int,
        nentries: int = 8,
        arena_nbytes: int = 4096,
        nnear: int | None = None,
        mpi: FakeMpi | None = None,
    ) -> None:
        nnear = nranks if nnear is None else nnear
        self.mpi = FakeMpi() if mpi is None else mpi
        nbytes = _native.mailbox_nbytes(nnear, nentries, arena_nbytes)
        self._segments = [Memory(nbytes) for _ in range(nnear)]
        for segment in self._segments:
            segment.array(np.dtype(np.uint8), nbytes)[:] = 0
        addresses = [segment.address for segment in self._segments]
        self.wires: list[Any] = []
        for rank in range(nranks):
            is_near = rank < nnear
            numbers = [
                peer if is_near and peer < nnear and peer != rank else _native.FAR
                for peer in range(nranks)
            ]
            box = _native.Mailbox(addresses, rank, nentries, arena_nbytes) if is_near else None
            self.wires.append(_native.Wires(numbers, box, self.mpi.of(rank)))

    def share(self, arrays: Sequence[np.ndarray[Any, Any]]) -> None:
        """Let messages be read where they stand in the neighbours' arrays, one each, of one size."""
        addresses = [array.ctypes.data for array in arrays]
        for wires, array in zip(self.wires, arrays, strict=True):
            wires.add_region(array.ctypes.data, array.nbytes, addresses)


class WiredTransport:
    """What a walk needs of a transport: its wires."""

    def __init__(self, rank: int, nranks: int, wires: Any) -> None:
        self.rank, self.nranks, self.wires = rank, nranks, wires

    def post(self, *_: object) -> Any:
        raise AssertionError("the walk is native")


class WiredWorld(World):
    """A World on a Node's wires, so that all its walks are native."""

    def __init__(self, node: Node) -> None:
        self.node = node
        super().__init__(len(node.wires))

    def _connect(self) -> Sequence[Any]:
        return [
            WiredTransport(rank, self.nranks, wires) for rank, wires in enumerate(self.node.wires)
        ]

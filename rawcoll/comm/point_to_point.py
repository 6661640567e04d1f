"""send, recv and sendrecv, and groups of them: each group is one transfer.

Owns a transport that no collective uses, so that point-to-point calls never touch the order of
collectives.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rawcoll.comm.calls import Place, peer_of, refuse_other_overlap
from rawcoll.device.arrays import HostArray, host_array
from rawcoll.errors import InvalidArgument
from rawcoll.executor.cursor import Cursor
from rawcoll.executor.plan import Plan
from rawcoll.executor.table import Table, WireRow
from rawcoll.executor.walk import walk_of
from rawcoll.kernels.protocol import Kernels
from rawcoll.transport.base import Message, Transport
from rawcoll.types import DTYPES, Op


class PointToPoint:
    """One rank's point-to-point calls.

    Args:
        transport: used for nothing else.
        kernels: of the host.
        wait: blocks until a cursor has finished, and raises its error; its second argument is what
            owns the memory of the messages.
    """

    def __init__(
        self, transport: Transport, kernels: Kernels, wait: Callable[[Cursor, object], None]
    ) -> None:
        self._transport = transport
        self._kernels = kernels
        self._wait = wait
        self._place = Place(transport.rank, transport.nranks)
        self._open = _Open()

    def send(self, x: Any, peer: int) -> None:
        """Send ``x`` to ``peer``."""
        peer = peer_of(self._place, "peer", peer)
        source = host_array("x", x)
        with self._transfer() as group:
            group.send(source, peer)

    def recv(self, x: Any, peer: int) -> Any:
        """Receive into ``x`` from ``peer``; returns ``x``."""
        peer = peer_of(self._place, "peer", peer)
        target = host_array("x", x, writeable=True)
        with self._transfer() as group:
            group.recv(target, peer)
        return x

    def sendrecv(self, x: Any, out: Any, dst: int, src: int) -> Any:
        """Send ``x`` to ``dst`` while receiving into ``out`` from ``src``; returns ``out``."""
        dst, src = peer_of(self._place, "dst", dst), peer_of(self._place, "src", src)
        source, target = host_array("x", x), host_array("out", out, writeable=True)
        refuse_other_overlap(source, target)
        with self._transfer() as group:
            group.send(source, dst)
            group.recv(target, src)
        return out

    @contextmanager
    def group(self) -> Iterator[None]:
        """Collect the calls of the block; they progress together at its end."""
        if self._open.group is not None:
            raise InvalidArgument("group: nested: found a group in a group, expected one")
        self._open.group = group = _Group()
        try:
            yield
        finally:
            self._open.group = None
        self._run(group)

    @contextmanager
    def _transfer(self) -> Iterator[_Group]:
        if self._open.group is not None:
            yield self._open.group
            return
        group = _Group()
        yield group
        self._run(group)

    def _run(self, group: _Group) -> None:
        if not group.sends and not group.recvs:
            return
        rows = (WireRow(0, 0, tuple(group.sends), tuple(group.recvs), None),)
        plan = Plan.of("group", Table(rows, ()), DTYPES["uint8"], Op.SUM, self._place.nranks)
        walk = walk_of(plan, self._transport, self._kernels)
        walk.place(group.bases)
        self._wait(Cursor(walk, 0), group)


class _Open(threading.local):
    """The group that the calling thread is in."""

    group: _Group | None = None


class _Group:
    """Messages of one transfer: every array is a slot of its own."""

    def __init__(self) -> None:
        self.sends: list[Message] = []
        self.recvs: list[Message] = []
        self.bases: list[int] = []
        self._keep: list[object] = []

    def send(self, array: HostArray, peer: int) -> None:
        """Add a message to ``peer``; none for an empty array, which the other end drops too."""
        self._add(self.sends, array, peer)

    def recv(self, array: HostArray, peer: int) -> None:
        """Add a message from ``peer``."""
        self._add(self.recvs, array, peer)

    def _add(self, messages: list[Message], array: HostArray, peer: int) -> None:
        if array.nbytes:
            messages.append((len(self.bases), 0, array.nbytes, peer))
            self.bases.append(array.address)
            self._keep.append(array.owner)

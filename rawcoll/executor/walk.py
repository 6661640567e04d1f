"""The walk over a plan's table: one execution of one rank's part, resumable at any row.

Two positions advance independently: the wire, with one transfer in flight at a time and in index order,
and the kernels, which run on the stepping thread. So a transfer is posted before the reduction of the
segment before it, and goes on beside it.

Two walks do the same: one here, on any transport and any kernels, and ``native/host/walk.h`` without the
interpreter, where the transport has wires and the kernels are the extension's.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, Protocol

from rawcoll.executor.plan import Bases, Plan
from rawcoll.kernels.protocol import Kernels
from rawcoll.transport.base import Pending, Transport

STILL, MOVED, FINISHED = range(3)
"""What a step may answer."""

_ASKS: Final = 24
"""About ten microseconds: longer than a small message takes, shorter than anybody else notices."""


class Patience(IntEnum):
    """How a step waits before it says that nothing moves: coming back costs more than asking again.

    NONE: not at all. SPIN: some ten microseconds. YIELD: giving up the core each time.
    """

    NONE = 0
    SPIN = 1
    YIELD = 2


class Walk(Protocol):
    """One execution of a plan; a step never blocks."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""

    @property
    def round(self) -> int | None:
        """The round under way, or None after the last transfer."""

    @property
    def missing(self) -> tuple[int, ...]:
        """The peers whose messages of the present transfer are not complete."""

    def place(self, bases: Bases, /) -> None:
        """Set the address of each slot. Only between executions; the memory outlives them."""

    def place_array(self, address: int, /) -> None:
        """Set the addresses of input and output alone, to one array in place."""

    def restart(self, tag: int, /) -> None:
        """Be at the beginning again. Only after an execution that has finished well.

        Args:
            tag: the same on all ranks, different from that of every other execution in flight.
        """

    def step(self, patience: int, /) -> int:
        """Do all that can be done without waiting: STILL, MOVED or FINISHED."""


def walk_of(plan: Plan, transport: Transport, kernels: Kernels) -> Walk:
    """The walk for a plan: native where plan, transport and kernels allow it."""
    if plan.native is None or transport.wires is None or kernels.name != "native":
        return PythonWalk(plan, transport, kernels)
    from rawcoll.native import _native

    return _native.Walk(transport.wires, plan.native)


class PythonWalk:
    """See Walk.

    Args:
        plan: what to run.
        transport: carries the messages.
        kernels: run the local rows.
    """

    def __init__(self, plan: Plan, transport: Transport, kernels: Kernels) -> None:
        self._plan = plan
        self._transport = transport
        self._kernels = kernels
        self._bases: Bases = []
        self._tag = 0
        self._wires = 0
        self._locals = 0
        self._pending: Pending | None = None

    @property
    def is_empty(self) -> bool:
        """See Walk."""
        return not self._plan.table.wire and not self._plan.table.local

    @property
    def round(self) -> int | None:
        """See Walk."""
        wire = self._plan.table.wire
        return wire[self._wires].round if self._wires < len(wire) else None

    @property
    def missing(self) -> tuple[int, ...]:
        """See Walk."""
        return () if self._pending is None else self._pending.missing()

    def place(self, bases: Bases) -> None:
        """See Walk."""
        self._bases = list(bases)

    def place_array(self, address: int) -> None:
        """See Walk."""
        self._bases[:2] = address, address

    def restart(self, tag: int) -> None:
        """See Walk."""
        self._tag = tag
        self._wires = self._locals = 0

    def step(self, patience: int) -> int:
        """See Walk. Whoever yields does so between steps."""
        asks = _ASKS if patience == Patience.SPIN else 0
        wire, local = self._plan.table.wire, self._plan.table.local
        moved = False
        while True:
            if (
                self._pending is None
                and self._wires < len(wire)
                and wire[self._wires].need <= self._locals
            ):
                self._pending = self._post(self._wires)
                moved = True
            ran = self._locals < len(local) and local[self._locals].need <= self._wires
            if ran:
                self._plan.run_local(local[self._locals], self._bases, self._kernels)
                self._locals += 1
                moved = True
            pending = self._pending
            if pending is None:
                if not ran:
                    return FINISHED
            elif any(pending.test() for _ in range(1 if ran else 1 + asks)):
                self._pending = None
                self._wires += 1
                moved = True
            elif not ran:
                return MOVED if moved else STILL

    def _post(self, number: int) -> Any:
        row = self._plan.table.wire[number]
        if row.native is not None:
            call = self._plan.native_call(row.native, self._bases)
            return self._transport.native(call, blocking=False)
        return self._transport.post(row.sends, row.recvs, self._bases, self._tag)

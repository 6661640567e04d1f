"""The cursor: one execution of a plan, resumable at any row, never blocking in a step.

Two positions advance independently: the wire, with one transfer in flight at a time and in index order,
and the kernels, which run on the stepping thread. So a transfer is posted before the reduction of the
segment before it, and goes on beside it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from rawcoll.executor.plan import Bases, Plan
from rawcoll.executor.table import WireRow
from rawcoll.kernels.protocol import Kernels
from rawcoll.transport.base import Pending, Prepared, Transport


class Cursor:
    """One execution of ``plan``.

    Args:
        plan: what to run.
        bases: address of each slot; the memory must stay valid until the cursor has finished.
        transport: carries the messages.
        kernels: run the local rows.
        tag: the same on all ranks, different from that of every other execution in flight.
        after: an earlier execution that must finish first, or None.
        prepared: one for each wire row, where its messages were prepared beforehand; else None.
    """

    def __init__(
        self,
        plan: Plan,
        bases: Bases,
        transport: Transport,
        kernels: Kernels,
        tag: int,
        after: Cursor | None = None,
        prepared: Sequence[Prepared] | None = None,
    ) -> None:
        self._plan = plan
        self._wire, self._local = plan.table.wire, plan.table.local
        self._run_local = plan.run_local
        self._bases = bases
        self._transport = transport
        self._kernels = kernels
        self._tag = tag
        self._after = after
        self._prepared = prepared
        self._wires = 0
        self._locals = 0
        self._pending: Pending | None = None
        self._has_arrived = False
        """Whether the transfer under way has brought all it brings; then only its sends are."""
        self._lent: deque[tuple[int, Pending]] = deque()
        """Transfers whose lent memory kernels still read, and the number of local rows that end it."""
        self._stepping = threading.Lock()
        self._then: list[Callable[[BaseException | None], None]] = []
        self.patience = 0
        """How often a step asks again before it reports that nothing moves: more where the caller has
        nothing else to do, since coming back costs more than asking."""
        self.error: BaseException | None = None
        self._empty = not self._wire and not self._local
        self.finished = self._empty

    def restart(self, tag: int) -> None:
        """Be at the beginning again. Only for a cursor that has finished well."""
        self._tag = tag
        self._wires = self._locals = 0
        self.finished = self._empty

    def free(self) -> None:
        """Give prepared messages back. Only for a cursor that has finished well."""
        for prepared in self._prepared or ():
            prepared.free()

    @property
    def round(self) -> int | None:
        """The round under way, or None before the first and after the last transfer."""
        number = self._wires - 1 if self._pending is not None and self._has_arrived else self._wires
        return self._wire[number].round if number < len(self._wire) else None

    @property
    def missing(self) -> tuple[int, ...]:
        """The peers whose messages of the present transfer are not complete."""
        with self._stepping:  # MPI wants a request to be tested by one thread at a time
            pending = self._pending
            return () if pending is None else pending.missing()

    def when_finished(self, callback: Callable[[BaseException | None], None]) -> None:
        """Call ``callback`` with the error or None, at once if the cursor has finished."""
        with self._stepping:
            if not self.finished:
                self._then.append(callback)
                return
        callback(self.error)

    def step(self) -> bool:
        """Do all that can be done without waiting. Returns whether anything moved.

        An error ends the cursor and is kept in ``error``; it is not raised here. Returns False when
        another thread is stepping.
        """
        if not self._stepping.acquire(blocking=False):
            return False
        try:
            if self.finished:
                return False
            return self._advance()
        except Exception as error:  # kept for whoever waits
            self._finish(error)
            return True
        except BaseException as error:  # an interrupt is for whoever steps, too
            self._finish(error)
            raise
        finally:
            self._stepping.release()

    def fail(self, error: BaseException) -> None:
        """End the cursor with ``error``; its messages are abandoned."""
        with self._stepping:
            if not self.finished:
                self._finish(error)

    def _advance(self) -> bool:
        if self._after is not None:
            if not self._after.finished:
                return False
            self._after = None
        wire, local = self._wire, self._local
        pending, wires, locals_ = self._pending, self._wires, self._locals
        moved = False
        while True:
            if pending is None and wires < len(wire) and wire[wires].need <= locals_:
                pending = self._pending = self._post(wires)
                self._has_arrived = False
                moved = True
            ran = locals_ < len(local) and local[locals_].need <= wires
            if ran:
                self._run_local(local[locals_], self._bases, self._kernels)
                locals_ = self._locals = locals_ + 1
                moved = True
                if self._lent:
                    self._give_back()
            if pending is not None:
                if not self._has_arrived and self._arrives(wire[wires], pending):
                    wires = self._wires = wires + 1
                    moved = True
                elif self._has_arrived and pending.test():
                    pending = self._pending = None
                    moved = True
                elif not ran and not self._is_worth_waiting(pending):
                    return moved
            elif not ran:
                self._finish(None)
                return True

    def _arrives(self, row: WireRow, pending: Pending) -> bool:
        """Ask whether kernels may go on with what the transfer brings."""
        self._has_arrived = pending.arrived() if row.early else pending.test()
        if self._has_arrived and row.lent:
            self._lent.append((row.release, pending))
            self._give_back()
        return self._has_arrived

    def _give_back(self) -> None:
        """Release what was lent to kernels that have all run."""
        while self._lent and self._lent[0][0] <= self._locals:
            self._lent.popleft()[1].release()

    def _is_worth_waiting(self, pending: Pending) -> bool:
        """Ask again a few times where the caller is patient; the next round of the loop sees it done."""
        if self._has_arrived or not self._wire[self._wires].early:
            return any(pending.test() for _ in range(self.patience))
        return any(pending.arrived() for _ in range(self.patience))

    def _post(self, number: int) -> Pending:
        if self._prepared is not None:
            return self._prepared[number].start()
        row = self._wire[number]
        if row.native is not None:
            call = self._plan.native_call(row.native, self._bases)
            return self._transport.native(call, blocking=False)
        return self._transport.post(
            row.sends, row.recvs, self._bases, self._tag, row.lent, row.early
        )

    def _finish(self, error: BaseException | None) -> None:
        self.error = error
        self._pending = None
        self.finished = True
        for callback in self._then:
            callback(error)
        self._then.clear()

"""The progress engine: steps all executions of the process that are under way.

Owns one background thread, started with the first asynchronous call, and the choice of how to wait: a
blocked caller steps everything itself and spins; the thread backs off while nothing moves, so that it
does not take a core from the caller's computation. Knows no transport and no collective.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Final

from rawcoll.device.host import Task
from rawcoll.executor.walk import Patience

_SPINS_BETWEEN_CLOCKS: Final = 256
"""Idle steps of a blocked caller between two looks at the clock, which costs as much as a step."""
_FIRST_NAP_S: Final = 20e-6
_LONGEST_NAP_S: Final = 300e-6
"""Tried on two cores: naps of 0.1 ms leave 0.73 of the overlap, 0.3 ms leave 0.80."""


class Engine:
    """Steps tasks until they finish.

    Args:
        clock: seconds, monotonic.
        nap: sleeps for some seconds.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        nap: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self._nap = nap
        self._tasks: list[Task] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._drivers = 0
        self.yields = False
        """Whether an idle caller gives up the core: set where ranks outnumber cores."""

    @property
    def patience(self) -> Patience:
        """How a step waits whose caller blocks."""
        return Patience.YIELD if self.yields else Patience.SPIN

    def submit(self, task: Task) -> None:
        """Have ``task`` stepped in the background until it has finished. Does not block."""
        with self._changed:
            if task not in self._tasks:
                self._tasks.append(task)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="rawcoll", daemon=True)
                self._thread.start()
            self._changed.notify()

    def drive(self, task: Task, timeout_s: float) -> bool:
        """Step ``task``, and whatever else is under way, on the caller's thread.

        Returns:
            True when the task has finished, False when nothing moved for ``timeout_s``.
        """
        self._drivers += 1
        try:
            return self._drive(task, timeout_s)
        finally:
            self._drivers -= 1

    def _drive(self, task: Task, timeout_s: float) -> bool:
        deadline = None
        idle = 0
        while not task.finished:
            moved = task.step()
            if self._tasks:
                moved |= self._step_all()
            if moved:
                idle, deadline = 0, None
                continue
            idle += 1
            if self.yields:
                os.sched_yield()
            if idle % _SPINS_BETWEEN_CLOCKS == 0:
                now = self._clock()
                if deadline is None:
                    deadline = now + timeout_s
                elif now >= deadline:
                    return False
        return True

    def _step_all(self) -> bool:
        moved = False
        for task in tuple(self._tasks):
            moved |= task.step()
            if task.finished:
                self._drop(task)
        return moved

    def _drop(self, task: Task) -> None:
        with self._changed:
            # Asked again under the lock: it may have been given more to do and submitted meanwhile.
            if task.finished and task in self._tasks:
                self._tasks.remove(task)

    def _work(self) -> None:
        nap_s = _FIRST_NAP_S
        while True:
            with self._changed:
                while not self._tasks:
                    self._changed.wait()
            if not self._drivers and self._step_all():
                nap_s = _FIRST_NAP_S
                continue
            self._nap(nap_s)
            nap_s = min(2 * nap_s, _LONGEST_NAP_S)


@cache
def process_engine() -> Engine:
    """The engine of this process."""
    return Engine()

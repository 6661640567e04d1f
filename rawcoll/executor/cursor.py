"""The cursor: one execution under way, as everybody else sees it.

Owns its end: who is told, what went wrong, and that one thread steps it at a time. What a step does is in
``walk``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from rawcoll.executor.walk import FINISHED, STILL, Patience, Walk


class Cursor:
    """One execution of a walk that has its addresses.

    Args:
        walk: what to step; the memory at its addresses must stay valid until the cursor has finished.
        tag: the same on all ranks, different from that of every other execution in flight.
        after: an earlier execution that must finish first, or None.
    """

    def __init__(self, walk: Walk, tag: int, after: Cursor | None = None) -> None:
        self.walk = walk
        self._after = after
        self._stepping = threading.Lock()
        self._then: list[Callable[[BaseException | None], None]] = []
        self.patience: int = Patience.NONE
        """How a step waits; more than not at all only where the caller has nothing else to do."""
        self.error: BaseException | None = None
        self._empty = walk.is_empty
        self.finished = self._empty
        walk.restart(tag)

    def restart(self, tag: int) -> None:
        """Be at the beginning again. Only for a cursor that has finished well."""
        self.walk.restart(tag)
        self.finished = self._empty

    @property
    def round(self) -> int | None:
        """The round under way, or None before the first and after the last transfer."""
        return self.walk.round

    @property
    def missing(self) -> tuple[int, ...]:
        """The peers whose messages of the present transfer are not complete."""
        with self._stepping:  # MPI wants a request to be tested by one thread at a time
            return () if self.finished else self.walk.missing

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
            if self.finished or (self._after is not None and not self._is_next()):
                return False
            progress = self.walk.step(self.patience)
            if progress == FINISHED:
                self._finish(None)
            return progress != STILL
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

    def _is_next(self) -> bool:
        """Whether the execution before has finished."""
        if self._after is not None and self._after.finished:
            self._after = None
        return self._after is None

    def _finish(self, error: BaseException | None) -> None:
        self.error = error
        self.finished = True
        if self._then:
            for callback in self._then:
                callback(error)
            self._then.clear()

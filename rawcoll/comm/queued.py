"""A call in a stream: a cursor that takes its turn behind everything enqueued before it.

Owns what nobody else would do for it: the time limit of a call that no caller waits for, and telling the
stream what went wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from rawcoll.device.host import Stream
from rawcoll.executor.cursor import Cursor


class Queued:
    """The task that stands in a stream for a cursor.

    Args:
        cursor: the execution.
        timeout_s: how long it may stand still once its turn has come.
        expired: ends the cursor with an error.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        cursor: Cursor,
        timeout_s: float,
        expired: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cursor = cursor
        self._timeout_s = timeout_s
        self._expired = expired
        self._clock = clock
        self._idle_since: float | None = None

    @property
    def finished(self) -> bool:
        """See Task."""
        return self._cursor.finished

    def step(self) -> bool:
        """See Task. Raises what the cursor ended with, for the stream to keep."""
        moved = self._cursor.step()
        if moved:
            self._idle_since = None
        elif not self._cursor.finished:
            self._look_at_clock()
        if self._cursor.error is not None:
            raise self._cursor.error
        return moved

    def _look_at_clock(self) -> None:
        now = self._clock()
        if self._idle_since is None:
            self._idle_since = now
        elif now - self._idle_since > self._timeout_s:
            self._expired()


class ThroughStream:
    """What somebody steps who waits for a cursor in a stream: the stream, as far as the cursor."""

    def __init__(self, stream: Stream, cursor: Cursor) -> None:
        self._stream = stream
        self._cursor = cursor

    @property
    def finished(self) -> bool:
        """See Task."""
        return self._cursor.finished

    def step(self) -> bool:
        """See Task."""
        return self._stream.step()

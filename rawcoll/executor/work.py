"""Work: an execution in flight, as the caller holds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rawcoll.executor.cursor import Cursor


class Work:
    """Handle of an asynchronous call. Keeps the caller's arrays alive until it has finished.

    Args:
        cursor: the execution.
        result: what the call returns.
        wait: blocks until the cursor has finished and raises what went wrong.
        keep: objects that own memory in use.
    """

    def __init__(
        self, cursor: Cursor, result: Any, wait: Callable[[Cursor], None], keep: object
    ) -> None:
        self._cursor = cursor
        self._result = result
        self._wait = wait
        self._keep: object = keep
        cursor.when_finished(self._release)

    @property
    def result(self) -> Any:
        """The array that the call fills; its contents are valid after ``wait``."""
        return self._result

    def wait(self) -> Any:
        """Order the caller after this work: on the host the caller blocks. Returns the result.

        Raises:
            CollectiveTimeout: the communicator's time limit has passed.
            TransportError: the library below failed.
        """
        self._wait(self._cursor)
        return self._result

    def synchronize(self) -> Any:
        """Block the host until the work is complete; raises like ``wait``. Returns the result."""
        return self.wait()

    def done(self) -> bool:
        """Whether the work has finished, well or not. Never blocks."""
        return self._cursor.finished

    def _release(self, _error: BaseException | None) -> None:
        self._keep = None

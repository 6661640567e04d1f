"""Watches blocking calls of the library below, which nothing can interrupt.

A blocked MPI collective cannot raise; past the time limit the job ends with the reason printed instead.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_LOOK_EVERY_S: Final = 0.5


class Guard:
    """One thread that looks at the call that is blocked now, if any.

    Args:
        timeout_s: how long a call may block.
        expired: called with the call's name when it has blocked for longer; ends the job.
    """

    def __init__(self, timeout_s: float, expired: Callable[[str], None]) -> None:
        self._timeout_s = timeout_s
        self._expired = expired
        self._inside: tuple[str, float] | None = None
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def watching(self, name: str) -> Iterator[None]:
        """Watch the block, which may hang in the library below."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._look, name="rawcoll-guard", daemon=True)
            self._thread.start()
        self._inside = (name, time.monotonic())
        try:
            yield
        finally:
            self._inside = None

    def close(self) -> None:
        """End the thread."""
        self._closed.set()

    def _look(self) -> None:
        while not self._closed.wait(min(_LOOK_EVERY_S, self._timeout_s)):
            inside = self._inside
            if inside is not None and time.monotonic() - inside[1] > self._timeout_s:
                self._expired(inside[0])
                return

"""The host as a device: memory, and Stream and Event with the meaning they have on a GPU.

A stream is a queue of tasks that run strictly in order; different streams run side by side. Nothing
here owns a thread: whoever wants a task done steps it, the progress engine in the background or a
caller that waits. The calling thread itself is the default stream: what it calls is done when the call
returns.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from mmap import mmap
from typing import Any, Final, Protocol, Self

import numpy as np
import numpy.typing as npt

ALIGNMENT: Final = 64
"""Bytes; one cache line, and the widest vector."""
_NAP_S: Final = 50e-6


class Task(Protocol):
    """Work that advances in steps and never blocks in one."""

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""

    def step(self) -> bool:
        """Do what can be done now; returns whether anything moved."""


class Memory:
    """Bytes on the host, aligned to a cache line, owned by this object.

    Args:
        nbytes: size; zero is legal.
    """

    __slots__ = ("_owner", "address", "nbytes")

    def __init__(self, nbytes: int) -> None:
        self._owner = np.empty(nbytes + ALIGNMENT, np.uint8)
        base = int(self._owner.ctypes.data)
        self.address = -(-base // ALIGNMENT) * ALIGNMENT
        self.nbytes = nbytes

    @classmethod
    def over(cls, buffer: mmap) -> Self:
        """The bytes of a mapping, which stays as long as this object; it begins at a page."""
        self = cls.__new__(cls)
        self._owner = np.frombuffer(buffer, np.uint8)
        self.address = int(self._owner.ctypes.data)
        self.nbytes = len(buffer)
        return self

    def array(self, dtype: np.dtype[Any], shape: int | Sequence[int]) -> npt.NDArray[Any]:
        """The memory as an array, which keeps it alive."""
        first = self.address - int(self._owner.ctypes.data)
        return self._owner[first : first + self.nbytes].view(dtype).reshape(shape)


class Stream:
    """A queue of tasks, run in order. Safe to use from any thread.

    A task that raises is over, and the stream goes on with the next one; the first such exception is
    raised once, by the next ``synchronize`` of the stream or of an event in it.
    """

    def __init__(self) -> None:
        self._tasks: deque[Task] = deque()
        self._stepping = threading.Lock()
        self._error: BaseException | None = None

    def enqueue(self, task: Task) -> None:
        """Add a task at the end. It starts when all before it have finished."""
        self._tasks.append(task)

    def launch(self, function: Callable[[], None]) -> None:
        """Add a call of ``function``, on whatever thread comes to it."""
        self.enqueue(_HostFunction(function))

    def record_event(self) -> Event:
        """A new event, complete when everything now in the stream is."""
        event = Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """What is added from now on starts only after ``event``; the caller does not wait."""
        self.enqueue(_EventWait(event))

    @property
    def finished(self) -> bool:
        """Whether the stream is empty (``cudaStreamQuery``)."""
        return not self._tasks

    def step(self) -> bool:
        """Advance the first task, and those after it as far as they go. Returns whether any moved."""
        if not self._stepping.acquire(blocking=False):
            return False
        try:
            return self._advance()
        finally:
            self._stepping.release()

    def synchronize(self) -> None:
        """Block the caller until the stream is empty; raises what went wrong in it."""
        step_until(self, lambda: self.finished)
        self.raise_error()

    def raise_error(self) -> None:
        """Raise the exception that is kept, if any, and forget it."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _advance(self) -> bool:
        moved = False
        while self._tasks:
            task = self._tasks[0]
            try:
                moved |= task.step()
                over = task.finished
            except BaseException as error:  # kept for whoever synchronizes
                self._error = self._error or error
                over = True
            if not over:
                return moved
            self._tasks.popleft()
            moved = True
        return moved


class Event:
    """A point in a stream. Complete from the start until it is recorded, as in CUDA."""

    def __init__(self) -> None:
        self._marker = _Marker()
        self._marker.finished = True
        self._stream: Stream | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Mark the present end of ``stream``; None is the calling thread, which is never behind."""
        marker = _Marker()
        self._marker, self._stream = marker, stream
        if stream is None:
            marker.finished = True
        else:
            stream.enqueue(marker)

    def query(self) -> bool:
        """Whether the marked point has been reached. Advances the stream, so that asking again helps."""
        marker, stream = self._marker, self._stream
        if stream is not None and not marker.finished:
            stream.step()
        return marker.finished

    def synchronize(self) -> None:
        """Block the caller until the marked point has been reached; raises what went wrong before it."""
        marker, stream = self._marker, self._stream
        if stream is not None:
            step_until(stream, lambda: marker.finished)
            stream.raise_error()


def step_until(task: Task, reached: Callable[[], bool]) -> None:
    """Step ``task`` on the calling thread until ``reached``, with naps while nothing moves."""
    while not reached():
        if not task.step():
            time.sleep(_NAP_S)


class _Marker:
    """A task without work: it finishes when the stream comes to it."""

    def __init__(self) -> None:
        self.finished = False

    def step(self) -> bool:
        self.finished = True
        return True


class _EventWait:
    """Holds up its stream until the event's state at the time of the call is reached.

    Steps the other stream meanwhile: nobody else may be doing so.
    """

    def __init__(self, event: Event) -> None:
        self._marker = event._marker
        self._stream = event._stream

    @property
    def finished(self) -> bool:
        return self._marker.finished

    def step(self) -> bool:
        if not self._marker.finished and self._stream is not None:
            return self._stream.step()
        return False


class _HostFunction:
    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function
        self.finished = False

    def step(self) -> bool:
        self.finished = True
        self._function()
        return True

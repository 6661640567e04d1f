"""A plan bound to its arrays: validated, scheduled and connected once, started many times."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from rawcoll.comm.calls import Bound
from rawcoll.comm.planner import AlgorithmLike
from rawcoll.comm.runner import Runner
from rawcoll.errors import InvalidArgument


class BoundPlan:
    """A collective fixed to its arrays; its own Work while it runs. Made by ``comm.plan``.

    The arrays stay alive as long as the plan. All ranks make, start and close the plan alike.
    """

    def __init__(self, runner: Runner, bound: Bound, algorithm: AlgorithmLike) -> None:
        self._runner = runner
        self._bound = bound
        self._plan, self._cursor, self._memory, self._tag = runner.bind(bound, algorithm)
        self._active = False
        self._closed = False

    @property
    def result(self) -> Any:
        """The array that each run fills."""
        return self._bound.result

    def start(self) -> BoundPlan:
        """Begin a run that proceeds in the background; returns this plan as its Work.

        Raises:
            InvalidArgument: the run before has not been waited for, or the plan is closed.
        """
        self._begin()
        self._cursor.when_finished(self._keep_alive)
        self._runner.submit(self._cursor)
        return self

    def run(self) -> Any:
        """Begin a run and wait for it on the caller's thread; returns the result."""
        self._begin()
        return self.wait()

    def wait(self) -> Any:
        """Block until the run is complete; returns the result.

        Raises:
            CollectiveTimeout: nothing moved within the communicator's time limit.
            TransportError: the library below failed.
        """
        if self._active:
            self._runner.wait(self._cursor, self._plan.collective)
            self._active = False
        return self._bound.result

    def synchronize(self) -> Any:
        """The same as ``wait`` on the host."""
        return self.wait()

    def done(self) -> bool:
        """Whether the run has finished. Never blocks."""
        return not self._active or self._cursor.finished

    def close(self) -> None:
        """Wait for a run under way and give everything back. Idempotent."""
        if not self._closed:
            self.wait()
            self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()

    def _keep_alive(self, _error: BaseException | None) -> None:
        """Nothing: the cursor holds this method, so the arrays outlast a run that nobody waits for."""

    def _begin(self) -> None:
        self._runner.check_open()
        if self._closed:
            raise InvalidArgument("plan: closed: found a start after close()")
        if self._active:
            raise InvalidArgument(
                "plan: active: found a start before the run before was waited for"
            )
        self._cursor.restart(self._tag)
        self._active = True

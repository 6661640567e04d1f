"""Runs calls on one rank: plans them, gives them scratch and a place in the order, waits for them.

Owns everything of a communicator that is in motion: sequence numbers, executions in flight, scratch, the
time limit, and the state after a failure. Knows nothing of shapes and counts.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final

from rawcoll.comm.calls import Bound
from rawcoll.comm.guard import Guard
from rawcoll.comm.planner import AlgorithmLike, Planned, Planner
from rawcoll.comm.queued import Queued, ThroughStream
from rawcoll.comm.scratch import ScratchPool
from rawcoll.comm.signature import Exchange, fields_of
from rawcoll.comm.warm import WarmCall
from rawcoll.device.host import Memory, Stream, Task
from rawcoll.errors import CollectiveTimeout, InvalidArgument, RawcollError, TransportError
from rawcoll.executor.cursor import Cursor
from rawcoll.executor.engine import Engine
from rawcoll.executor.plan import Plan
from rawcoll.executor.walk import walk_of
from rawcoll.executor.work import Work
from rawcoll.kernels.protocol import Kernels
from rawcoll.transport.base import Transport

_MIN_TAGS: Final = 1 << 14
"""MPI promises tags up to 32767: one half for calls, one for bound plans."""

_log = logging.getLogger("rawcoll")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a runner works with; all of it outlives the runner.

    Attributes:
        transport: for the schedules' messages.
        kernels: of the host.
        engine: of the process.
        timeout_s: time limit of a call without progress, in seconds.
        abort: ends the job.
    """

    transport: Transport
    kernels: Kernels
    engine: Engine
    timeout_s: float
    abort: Callable[[], None]


class Runner:
    """Runs calls in the order in which they are made.

    Args:
        surroundings: see there.
        planner: makes plans.
        exchange: compares signatures before each call, or None.
    """

    def __init__(
        self, surroundings: Surroundings, planner: Planner, exchange: Exchange | None
    ) -> None:
        self._transport = surroundings.transport
        self._kernels = surroundings.kernels
        self._engine = surroundings.engine
        self._timeout_s = surroundings.timeout_s
        self._abort = surroundings.abort
        self._planner = planner
        self._exchange = exchange
        self._scratch = ScratchPool()
        self._guard = Guard(self._timeout_s, self._blocked_too_long)
        self._sequence = itertools.count()
        self._plan_tags = itertools.count()
        self._lock = threading.Lock()
        self._native: Cursor | None = None
        self._native_ranks: set[tuple[int, ...]] = set()
        self._in_flight: dict[Cursor, Task] = {}
        self._abandoned: list[object] = []
        self._refusal: RawcollError | None = None
        os.register_at_fork(after_in_child=_refuse_in_child(weakref.ref(self)))

    def run(
        self, bound: Bound, algorithm: AlgorithmLike, stream: Stream | None, async_op: bool
    ) -> Any:
        """Run a call: the result, or a Work for it.

        Raises:
            RawcollError: what planning, the comparison of signatures or the execution found.
        """
        self.check_open()
        if stream is not None and not isinstance(stream, Stream):
            raise InvalidArgument(
                f"stream: found {type(stream).__name__}, expected rawcoll.Stream for host arrays"
            )
        planned = self._planner.planned(bound.call, algorithm)
        sequence = next(self._sequence)
        if self._exchange is not None:
            self._compare(self._exchange, bound, planned, sequence)
        plan = planned.plan
        if plan.table.has_native:
            return self._run_native(bound, plan, sequence, stream, async_op)
        if stream is None and not async_op:
            self.execute(plan, bound.src, bound.dst, sequence, bound.keep)
            return bound.result
        return self._enqueue(bound, plan, sequence, stream, async_op)

    def warm(self, bound: Bound, algorithm: AlgorithmLike) -> WarmCall | None:
        """What ``rerun`` takes, if calls like this one may go that way."""
        plan = self._planner.planned(bound.call, algorithm).plan
        if self._exchange is not None or plan.table.has_native:
            return None
        cursor = Cursor(walk_of(plan, self._transport, self._kernels), 0)
        cursor.patience = self._engine.patience
        return WarmCall(plan, cursor, self._scratch)

    def rerun(self, warm: WarmCall, address: int, owner: object) -> bool:
        """Run a warm call on an array in place; returns when it is done.

        False, and nothing has been done, where another thread is running it.
        """
        if self._refusal is not None:
            raise self._refusal
        if not warm.running.acquire(blocking=False):
            return False
        sequence = next(self._sequence)
        memory = warm.begin(address, sequence % _MIN_TAGS)
        cursor = warm.cursor
        self._drive(cursor, cursor, warm.plan.collective, (memory, owner))
        if cursor.error is not None or not cursor.finished:
            self._settle(cursor, warm.plan.collective, sequence, (memory, owner))
        warm.end(memory)
        warm.running.release()
        return True

    def execute(self, plan: Plan, src: int, dst: int, sequence: int, keep: object) -> None:
        """Run a plan on the caller's thread; returns when it is done."""
        nbytes = plan.scratch_nbytes
        memory = self._scratch.take(nbytes)
        cursor = self._cursor(plan, src, dst, memory, sequence % _MIN_TAGS)
        cursor.patience = self._engine.patience
        self.wait(cursor, plan.collective, sequence, (memory, keep))
        self._scratch.give_back(memory)

    def bind(self, bound: Bound, algorithm: AlgorithmLike) -> tuple[Plan, Cursor, Memory, int]:
        """A cursor that can be restarted, its own scratch and its tag.

        Raises:
            InvalidArgument: the algorithm has native steps, which cannot be prepared.
        """
        self.check_open()
        planned = self._planner.planned(bound.call, algorithm)
        plan = planned.plan
        if self._exchange is not None:
            self._compare(self._exchange, bound, planned, next(self._sequence))
        if plan.table.has_native:
            raise InvalidArgument("plan: algorithm: found native steps, expected none (builtin)")
        memory = Memory(plan.scratch_nbytes)
        tag = _MIN_TAGS + next(self._plan_tags) % _MIN_TAGS
        cursor = self._cursor(plan, bound.src, bound.dst, memory, tag)
        cursor.patience = self._engine.patience
        return plan, cursor, memory, tag

    def submit(self, cursor: Cursor) -> None:
        """Have a cursor stepped in the background."""
        self._engine.submit(cursor)

    def wait(
        self, cursor: Cursor, collective: str, sequence: int | None = None, keep: object = None
    ) -> None:
        """Block until a cursor has finished; raise what went wrong.

        Raises:
            CollectiveTimeout: nothing moved within the time limit.
            TransportError: the library below failed.
        """
        task = self._in_flight.get(cursor, cursor) if self._in_flight else cursor
        self._drive(task, cursor, collective, keep)
        self._settle(cursor, collective, sequence, keep)

    def check_open(self) -> None:
        """Raise when the communicator can no longer be used."""
        if self._refusal is not None:
            raise self._refusal

    def close(self) -> None:
        """Wait for what is in flight; nothing can be run afterwards."""
        for cursor in tuple(self._in_flight):
            self.wait(cursor, "close")
        self.refuse(InvalidArgument("communicator: closed: found a call after close()"))

    @property
    def has_failed(self) -> bool:
        """Whether a call has ended with an error, so that ranks may be at different points."""
        return isinstance(self._refusal, TransportError)

    def end_watch(self) -> None:
        """Nothing blocks any more."""
        self._guard.close()

    def watching(self, what: str) -> AbstractContextManager[None]:
        """End the job when the block, which waits for other ranks, does not end in time."""
        return self._guard.watching(what)

    def refuse(self, error: RawcollError) -> None:
        """From now on every call raises ``error``."""
        self._refusal = error

    def _compare(self, exchange: Exchange, bound: Bound, planned: Planned, sequence: int) -> None:
        cursor = exchange.start(fields_of(bound.call, planned.chosen.text, sequence))
        self.wait(cursor, bound.call.collective, sequence)
        exchange.compare()

    def _run_native(
        self, bound: Bound, plan: Plan, sequence: int, stream: Stream | None, async_op: bool
    ) -> Any:
        """Native calls go into the library below in the same order on all ranks: one by one."""
        self._prepare_native(plan)
        row = plan.table.wire[0]
        alone = len(plan.table.wire) == 1 and not plan.table.local and row.native is not None
        if not alone or async_op or stream is not None:
            if stream is None and not async_op:
                work = self._enqueue(bound, plan, sequence, None, True)
                return work.wait()
            return self._enqueue(bound, plan, sequence, stream, async_op)
        before = self._native
        if before is not None:
            self.wait(before, plan.collective, sequence)
        assert row.native is not None
        with self._guard.watching(f"builtin {plan.collective}"):
            call = plan.native_call(row.native, [bound.src, bound.dst])
            self._transport.native(call, blocking=True)
        return bound.result

    def _prepare_native(self, plan: Plan) -> None:
        for row in plan.table.wire:
            if row.native is not None and row.native.ranks not in self._native_ranks:
                self._transport.prepare_native(row.native.ranks)
                self._native_ranks.add(row.native.ranks)

    def _enqueue(
        self, bound: Bound, plan: Plan, sequence: int, stream: Stream | None, async_op: bool
    ) -> Any:
        memory = self._scratch.take(plan.scratch_nbytes)
        with self._lock:
            after = self._native if plan.table.has_native else None
            cursor = self._cursor(plan, bound.src, bound.dst, memory, sequence % _MIN_TAGS, after)
            if plan.table.has_native:
                self._native = cursor
            task: Task = cursor
            if stream is not None:
                cursor.finished = False  # a call with nothing to do takes its turn too
                task = ThroughStream(stream, cursor)
            self._in_flight[cursor] = task
        collective = plan.collective

        def settled(error: BaseException | None) -> None:
            self._in_flight.pop(cursor, None)
            if error is None:
                self._scratch.give_back(memory)
            else:
                self._abandoned.append((memory, bound.keep))
                self._fail(error, collective)

        cursor.when_finished(settled)
        if stream is None:
            self._engine.submit(cursor)
        else:
            expired = lambda: cursor.fail(self._timed_out(cursor, collective, sequence))  # noqa: E731
            stream.enqueue(Queued(cursor, self._timeout_s, expired))
            self._engine.submit(stream)
        # Not bound.keep here: the Work lets go of it at the end, and ``settled`` keeps it after an error.
        wait = lambda found: self.wait(found, collective, sequence)  # noqa: E731
        work = Work(cursor, bound.result, wait, bound.keep)
        return work if async_op else bound.result

    def _cursor(
        self, plan: Plan, src: int, dst: int, scratch: Memory, tag: int, after: Cursor | None = None
    ) -> Cursor:
        """A cursor for one execution on the caller's arrays."""
        walk = walk_of(plan, self._transport, self._kernels)
        walk.place(plan.bases(src, dst, scratch.address))
        return Cursor(walk, tag, after)

    def _drive(self, task: Task, cursor: Cursor, collective: str, keep: object) -> None:
        """Step a cursor, or the stream that it is in, until it has finished or its time is over."""
        try:
            self._engine.drive(task, self._timeout_s)
        except BaseException as error:  # an interrupt: the messages are still under way
            self._abandoned.append((cursor, keep))
            cursor.fail(error)
            self._fail(error, collective)
            raise

    def _settle(self, cursor: Cursor, collective: str, sequence: int | None, keep: object) -> None:
        """Raise what a cursor ended with; one that has not ended is out of time."""
        if not cursor.finished:
            self._abandoned.append((cursor, keep))
            cursor.fail(self._timed_out(cursor, collective, sequence))
        if cursor.error is not None:
            self._fail(cursor.error, collective)
            raise cursor.error

    def _timed_out(
        self, cursor: Cursor, collective: str, sequence: int | None
    ) -> CollectiveTimeout:
        missing = cursor.missing
        rank = self._transport.rank
        peers = ", ".join(map(str, missing)) or "none"
        return CollectiveTimeout(
            f"{collective}: no progress: found {self._timeout_s:g} s without any on rank {rank} in "
            f"round {cursor.round} of call {sequence}; not heard from: {peers}",
            rank=rank,
            collective=collective,
            sequence=sequence,
            round=cursor.round,
            peers=missing,
        )

    def _fail(self, error: BaseException, collective: str) -> None:
        """After a failure messages of the broken call may be under way: nothing may follow it."""
        if self._refusal is None:
            refusal = TransportError(
                f"communicator: unusable: an earlier {collective} failed: {error}",
                rank=self._transport.rank,
                collective=collective,
            )
            refusal.__cause__ = error
            self._refusal = refusal

    def _blocked_too_long(self, what: str) -> None:
        _log.critical(
            "rank %d: %s: no end: found %g s inside the library below, which cannot be "
            "interrupted; ending the job",
            self._transport.rank, what, self._timeout_s,
        )  # fmt: skip
        self._abort()


def _refuse_in_child(runner: weakref.ref[Runner]) -> Callable[[], None]:
    """A forked child has the parent's communicator but not its place in the job."""

    def refuse() -> None:
        found = runner()
        if found is not None:
            found.refuse(
                InvalidArgument(
                    "communicator: found a forked child, expected the process that made it"
                )
            )

    return refuse

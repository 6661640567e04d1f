"""The communicator: the public face of all collectives, on one rank.

Owns the public signatures and the life of a communicator. What arguments mean is in ``calls``, what runs
in ``runner``.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from rawcoll.comm import calls
from rawcoll.comm.bootstrap import AbortHook, MpiBootstrap
from rawcoll.comm.bound import BoundPlan
from rawcoll.comm.calls import Bound, Place
from rawcoll.comm.explain import Explanation, explain
from rawcoll.comm.planner import AlgorithmLike, Planner
from rawcoll.comm.point_to_point import PointToPoint
from rawcoll.comm.runner import Runner, Surroundings
from rawcoll.comm.signature import Exchange
from rawcoll.comm.warm import WarmCall
from rawcoll.config import Settings
from rawcoll.device.arrays import NUMPY_DTYPES, dtype_from
from rawcoll.device.host import Stream
from rawcoll.errors import InvalidArgument, unknown_name
from rawcoll.executor.engine import process_engine
from rawcoll.kernels.host import host_kernels
from rawcoll.topology import Topology

ArrayLike = Any
"""numpy, or anything with DLPack, contiguous, in host memory."""

_MOST_WARM: Final = 256


class Communicator:
    """Collectives among the ranks of one job. Made by ``rawcoll.init`` and ``split``.

    All ranks make the same calls in the same order, with the same counts, types, operations and
    algorithms. A call returns when its result is complete; with ``async_op`` it returns a Work at once
    and proceeds in the background, beside others.

    Common arguments of the collectives:
        x: contiguous array on the host; see ``rawcoll.types`` for element types.
        out: array for the result; None as each method says.
        op: ``sum``, ``prod``, ``min``, ``max`` or ``avg``.
        algorithm: ``auto``, a name, ``name(parameter=value)``, a value of ``rawcoll.algorithms``, or a
            function that builds one with a Builder.
        stream: None: the calling thread; a ``rawcoll.Stream``: the call is ordered there and the caller
            does not wait.
        async_op: return a Work instead of the result.

    Common errors:
        InvalidArgument: before anything is enqueued; the arrays are untouched, the communicator usable.
        ScheduleError: an algorithm whose constraints are not met, or that does not prove.
        RankMismatch: with RAWCOLL_CHECK=1, ranks called with different values.
        CollectiveTimeout: nothing moved within the time limit; the communicator is unusable afterwards.
        TransportError: MPI failed; the communicator is unusable afterwards.
    """

    def __init__(
        self,
        bootstrap: MpiBootstrap,
        settings: Settings,
        timeout_s: float,
        hook: AbortHook | None,
    ) -> None:
        self._bootstrap = bootstrap
        self._settings = settings
        self._timeout_s = timeout_s
        self._hook = hook
        self._closed = False
        self._pid = os.getpid()
        self._topology = Topology(bootstrap.nodes())
        self._place = Place(bootstrap.rank, bootstrap.nranks)
        self._kernels = host_kernels()
        self._address = self._kernels.address
        wired = bootstrap.wired_transport(shared_memory=settings.shared_memory)
        self._transports = [wired, bootstrap.transport()]
        surroundings = Surroundings(
            self._transports[0], self._kernels, process_engine(), timeout_s, bootstrap.abort
        )
        exchange = None
        if settings.check:
            self._transports.append(bootstrap.transport())
            exchange = Exchange(self._transports[2], self._kernels)
        self._planner = Planner(self.rank, self.nranks, settings.algorithms)
        self._runner = Runner(surroundings, self._planner, exchange)
        self._point_to_point = PointToPoint(
            self._transports[1],
            self._kernels,
            lambda cursor, keep: self._runner.wait(cursor, "point-to-point", None, keep),
        )
        self._warm: dict[tuple[Any, int, str, AlgorithmLike], WarmCall] = {}
        self._token = np.zeros(1, np.uint8)

    @property
    def rank(self) -> int:
        """This rank."""
        return self._place.rank

    @property
    def nranks(self) -> int:
        """How many ranks there are."""
        return self._place.nranks

    @property
    def size(self) -> int:
        """The same as ``nranks``."""
        return self._place.nranks

    @property
    def device(self) -> str:
        """Where collectives run: ``host``."""
        return "host"

    @property
    def topology(self) -> Topology:
        """Which ranks share a node."""
        return self._topology

    @property
    def mpi(self) -> Any:
        """The private duplicate of the MPI communicator (mpi4py), for small messages between calls."""
        return self._bootstrap.comm

    def empty(self, shape: int | Sequence[int], dtype: Any = "float32") -> npt.NDArray[Any]:
        """A new uninitialised array, of one size on all ranks. Collective.

        Ranks of one node share its memory, so that peers read it where it stands: the fastest array to
        communicate. The memory is given back when array and communicator are both gone.
        """
        kind = dtype_from("dtype", dtype)
        memory = self._transports[0].allocate(int(np.prod(shape)) * kind.itemsize)
        return memory.array(NUMPY_DTYPES[kind.name], shape)

    def all_reduce(
        self,
        x: ArrayLike,
        out: ArrayLike | None = None,
        op: str = "sum",
        algorithm: AlgorithmLike = "auto",
        codec: object = None,
        residual: object = None,
        stream: Stream | None = None,
        async_op: bool = False,
    ) -> Any:
        """Reduce over all ranks; every rank gets the result.

        Args:
            x: any shape, the same on all ranks.
            out: as many elements of the same type; None or ``x`` itself: in place.
            op, algorithm, stream, async_op: see the class.
            codec, residual: None.

        Returns:
            ``out``, or ``x`` in place; the same bits on all ranks.
        """
        if out is None and stream is None and not async_op and codec is residual is None:
            warm = self._warm_call(x, op, algorithm)
            if warm is not None and self._runner.rerun(warm, self._address(x), x):
                return x
        _refuse_codec(codec, residual)
        bound = calls.all_reduce(self._place, x, out, op)
        result = self._runner.run(bound, algorithm, stream, async_op)
        if out is None and type(x) is np.ndarray:
            self._remember(x, op, algorithm, bound)
        return result

    def reduce(
        self,
        x: ArrayLike,
        out: ArrayLike | None = None,
        op: str = "sum",
        root: int = 0,
        algorithm: AlgorithmLike = "auto",
        stream: Stream | None = None,
        async_op: bool = False,
    ) -> Any:
        """Reduce over all ranks; ``root`` gets the result.

        Args:
            x: any shape, the same on all ranks.
            out: at the root as many elements of the same type; None or ``x``: in place. Elsewhere unused.
            root: who gets the result.
            op, algorithm, stream, async_op: see the class.

        Returns:
            ``out`` or ``x`` at the root; None elsewhere, where ``x`` is unchanged.
        """
        bound = calls.reduce(self._place, x, out, op, root)
        return self._runner.run(bound, algorithm, stream, async_op)

    def broadcast(
        self,
        x: ArrayLike | None,
        root: int = 0,
        out: ArrayLike | None = None,
        algorithm: AlgorithmLike = "auto",
        stream: Stream | None = None,
        async_op: bool = False,
    ) -> Any:
        """The root's array to every rank.

        Args:
            x: the data at the root; elsewhere the array to fill, or unused when ``out`` is given.
            root: whose data it is.
            out: array for the result; None: ``x``.
            algorithm, stream, async_op: see the class.

        Returns:
            ``out``, or ``x``.
        """
        bound = calls.broadcast(self._place, x, root, out)
        return self._runner.run(bound, algorithm, stream, async_op)

    def all_gather(
        self,
        x: ArrayLike,
        out: ArrayLike | None = None,
        counts: Sequence[int] | None = None,
        algorithm: AlgorithmLike = "auto",
        stream: Stream | None = None,
        async_op: bool = False,
    ) -> Any:
        """Every rank's array to every rank, one after the other.

        Args:
            x: this rank's part; may be its own part of ``out``.
            out: contiguous, as many elements as all parts; None: a new array of shape
                ``(nranks, *x.shape)``, or flat with ``counts``.
            counts: elements of each rank's part, the same on all ranks; None: equal.
            algorithm, stream, async_op: see the class.

        Returns:
            ``out`` or the new array.
        """
        bound = calls.all_gather(self._place, x, out, counts)
        return self._runner.run(bound, algorithm, stream, async_op)

    def reduce_scatter(
        self,
        x: ArrayLike,
        out: ArrayLike | None = None,
        counts: Sequence[int] | None = None,
        op: str = "sum",
        algorithm: AlgorithmLike = "auto",
        stream: Stream | None = None,
        async_op: bool = False,
    ) -> Any:
        """Reduce over all ranks; each rank gets its part of the result.

        Args:
            x: all parts, one after the other; unchanged outside ``out``.
            out: this rank's part; may be its own part of ``x``. None: a new array, flat with ``counts``;
                else of x's shape with the leading axis dropped where it is ``nranks`` long, or divided.
            counts: elements of each rank's part, the same on all ranks; None: equal.
            op, algorithm, stream, async_op: see the class.

        Returns:
            ``out`` or the new array.
        """
        bound = calls.reduce_scatter(self._place, x, out, counts, op)
        return self._runner.run(bound, algorithm, stream, async_op)

    def all_to_all(
        self,
        x: ArrayLike,
        out: ArrayLike | None = None,
        send_counts: Sequence[int] | None = None,
        recv_counts: Sequence[int] | None = None,
        algorithm: AlgorithmLike = "auto",
        stream: Stream | None = None,
        async_op: bool = False,
    ) -> Any:
        """Part d of this rank's array to rank d, for every d; the parts of all ranks in rank order.

        Args:
            x: the parts for all ranks.
            out: the parts from all ranks; not in x's memory. None: a new array, of x's shape, or flat
                with counts.
            send_counts, recv_counts: elements to and from each rank; None: equal.
            algorithm, stream, async_op: see the class.

        Returns:
            ``out`` or the new array.
        """
        bound = calls.all_to_all(self._place, x, out, send_counts, recv_counts)
        return self._runner.run(bound, algorithm, stream, async_op)

    def gather(
        self,
        x: ArrayLike,
        out: ArrayLike | None = None,
        root: int = 0,
        algorithm: AlgorithmLike = "auto",
        stream: Stream | None = None,
        async_op: bool = False,
    ) -> Any:
        """Every rank's array to the root, one after the other.

        Args:
            x: this rank's part, the same count on all ranks.
            out: at the root, contiguous, ``nranks`` times as many elements; None: a new array of shape
                ``(nranks, *x.shape)``. Elsewhere unused.
            root: who gets it.
            algorithm, stream, async_op: see the class.

        Returns:
            ``out`` or the new array at the root, None elsewhere.
        """
        bound = calls.gather(self._place, x, out, root)
        return self._runner.run(bound, algorithm, stream, async_op)

    def scatter(
        self,
        x: ArrayLike | None,
        out: ArrayLike | None = None,
        root: int = 0,
        algorithm: AlgorithmLike = "auto",
        stream: Stream | None = None,
        async_op: bool = False,
    ) -> Any:
        """Part r of the root's array to rank r, for every r.

        Args:
            x: at the root all parts; elsewhere an array of the same shape and type whose contents are
                not read, or None when ``out`` is given.
            out: this rank's part; None: a new array, shaped as in ``reduce_scatter``.
            root: whose data it is.
            algorithm, stream, async_op: see the class.

        Returns:
            ``out`` or the new array.
        """
        bound = calls.scatter(self._place, x, out, root)
        return self._runner.run(bound, algorithm, stream, async_op)

    def barrier(self, algorithm: AlgorithmLike = "auto") -> None:
        """Return when all ranks have called."""
        self._runner.run(calls.barrier(self._token), algorithm, None, False)

    def send(self, x: ArrayLike, peer: int) -> None:
        """Send an array to ``peer``, which receives as many bytes. May wait for the receive."""
        self._runner.check_open()
        self._point_to_point.send(x, peer)

    def recv(self, x: ArrayLike, peer: int) -> Any:
        """Receive into ``x`` from ``peer``; returns ``x``."""
        self._runner.check_open()
        return self._point_to_point.recv(x, peer)

    def sendrecv(self, x: ArrayLike, out: ArrayLike, dst: int, src: int) -> Any:
        """Send ``x`` to ``dst`` while receiving into ``out`` from ``src``; returns ``out``."""
        self._runner.check_open()
        return self._point_to_point.sendrecv(x, out, dst, src)

    def group(self) -> AbstractContextManager[None]:
        """Collect the point-to-point calls of the block; they progress together at its end."""
        self._runner.check_open()
        return self._point_to_point.group()

    def plan(
        self,
        collective: str,
        *arrays: ArrayLike,
        graph: bool = False,
        algorithm: AlgorithmLike = "auto",
        **arguments: Any,
    ) -> BoundPlan:
        """A collective bound to its arrays, to be started many times. Collective.

        Args:
            collective: name of the method that the plan stands for.
            arrays: its positional arguments; ``x``, then ``out``.
            graph: capture as a CUDA graph; False on the host.
            algorithm: see the class; not ``builtin``.
            arguments: its other arguments, but ``stream`` and ``async_op``.
        """
        if graph:
            raise InvalidArgument("graph: found True, expected False: the host has no graphs")
        return BoundPlan(self._runner, self._bound(collective, arrays, arguments), algorithm)

    def explain(
        self,
        collective: str,
        count: int,
        dtype: Any = "float32",
        *,
        op: str = "sum",
        root: int = 0,
        algorithm: AlgorithmLike = "auto",
    ) -> Explanation:
        """What a call would run, and why. Local: does not communicate.

        Args:
            collective: its name.
            count: elements of the whole array (for all_gather, gather: of all parts).
            dtype: element type.
            op, root, algorithm: as in the call.
        """
        return explain(
            self._planner, collective, count, dtype_from("dtype", dtype), op, root, algorithm
        )

    def split(self, color: int | None, key: int = 0) -> Communicator | None:
        """A communicator of the ranks that give the same ``color``, ordered by ``key``, then rank.

        Collective over this communicator. None for ranks that give None.
        """
        self._runner.check_open()
        with self._runner.watching("split"):
            part = self._bootstrap.split(color, key)
        return None if part is None else Communicator(part, self._settings, self._timeout_s, None)

    def close(self) -> None:
        """Wait for everything in flight and give all back. Collective, orderly, idempotent.

        After a failed call local only: other ranks may never come.
        """
        if self._is_child():
            raise InvalidArgument(
                "communicator: found a forked child, expected the process that made it"
            )
        if self._closed:
            return
        self._closed = True
        if self._runner.has_failed:
            return
        self._runner.close()
        with self._runner.watching("close"):
            self._bootstrap.barrier()
            for transport in self._transports:
                transport.close()
            self._bootstrap.close()
        self._runner.end_watch()
        if self._hook is not None:
            self._hook.close()

    def abort(self) -> None:
        """End the whole job now, from this rank alone, with a status that is not zero."""
        self._bootstrap.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_child():  # which leaves the block too, and is none of the ranks
            return
        if error is None or (isinstance(error, SystemExit) and not error.code):
            self.close()
        elif self.nranks > 1:
            traceback.print_exception(error)
            self._bootstrap.abort(_exit_status(error))

    def _is_child(self) -> bool:
        return os.getpid() != self._pid

    def _warm_call(self, x: Any, op: str, algorithm: AlgorithmLike) -> WarmCall | None:
        """The warm call for these arguments, where the array is as it should be."""
        if type(x) is not np.ndarray or not x.flags.carray:
            return None
        try:
            return self._warm.get((x.dtype, x.size, op, algorithm))
        except (
            TypeError
        ):  # an argument that does not hash is refused, with a message, by the long way
            return None

    def _remember(self, x: Any, op: str, algorithm: AlgorithmLike, bound: Bound) -> None:
        """Make the next call like this one a warm one."""
        warm = self._runner.warm(bound, algorithm)
        if warm is not None:
            if len(self._warm) >= _MOST_WARM:
                self._warm.clear()
            self._warm[x.dtype, x.size, op, algorithm] = warm

    def _bound(self, collective: str, arrays: tuple[Any, ...], arguments: dict[str, Any]) -> Bound:
        if collective not in calls.BINDERS:
            raise unknown_name("collective", collective, calls.BINDERS)
        return calls.BINDERS[collective](self._place, *arrays, **arguments)


def _exit_status(error: BaseException) -> int:
    """What the job ends with: the status of ``sys.exit(status)``, else 1."""
    code = error.code if isinstance(error, SystemExit) else 1
    return code if isinstance(code, int) else 1


def _refuse_codec(codec: object, residual: object) -> None:
    if codec is not None or residual is not None:
        raise InvalidArgument(
            "codec, residual: found a value, expected None: there are no codecs yet"
        )

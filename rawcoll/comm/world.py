"""All ranks of a communicator in one process: cursors on one thread, no MPI.

Owns the reference way to run a collective, for tests and for looking at algorithms: the same validation,
plans, tables and cursors as on a real communicator, over the in-process transport. A schedule that cannot
end is found at once, not by a time limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rawcoll.comm import calls
from rawcoll.comm.calls import Bound, Place
from rawcoll.comm.planner import AlgorithmLike, Planner
from rawcoll.device.host import Memory
from rawcoll.errors import TransportError, unknown_name
from rawcoll.executor.cursor import Cursor
from rawcoll.executor.walk import walk_of
from rawcoll.kernels.host import host_kernels
from rawcoll.kernels.protocol import Kernels
from rawcoll.transport.base import Transport
from rawcoll.transport.inproc import Switch

Order = Callable[[Sequence[int]], int]
"""Which of the ranks that can still move is stepped next."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A collective under way on all ranks.

    Attributes:
        cursors: one a rank, to be stepped until all have finished.
        results: what each rank's call returns.
        keep: owners of the memory in use.
    """

    cursors: list[Cursor]
    results: list[Any]
    keep: object


class World:
    """``nranks`` ranks in this process.

    Args:
        nranks: how many.
        kernels: None: those of the host.
    """

    def __init__(self, nranks: int, kernels: Kernels | None = None) -> None:
        self.nranks = nranks
        self._kernels = host_kernels() if kernels is None else kernels
        self._transports = self._connect()
        self._planners = [Planner(rank, nranks) for rank in range(nranks)]
        self._sequence = 0

    def _connect(self) -> Sequence[Transport]:
        """A transport for each rank, joined to all others."""
        switch = Switch(self.nranks)
        return [switch.transport(rank) for rank in range(self.nranks)]

    def run(
        self,
        collective: str,
        arguments: Sequence[dict[str, Any]],
        algorithm: AlgorithmLike = "auto",
        order: Order | None = None,
    ) -> list[Any]:
        """One collective on all ranks.

        Args:
            collective: name of the method of Communicator.
            arguments: for each rank its arguments, but ``algorithm``, ``stream`` and ``async_op``.
            algorithm: see Communicator.
            order: picks who is stepped; None: one after the other.

        Returns:
            Each rank's result.

        Raises:
            TransportError: no rank can move.
        """
        begun = self.begin(collective, arguments, algorithm)
        run_all(begun.cursors, order)
        return begun.results

    def begin(
        self,
        collective: str,
        arguments: Sequence[dict[str, Any]],
        algorithm: AlgorithmLike = "auto",
    ) -> Begun:
        """One collective on all ranks, of which nothing has been done yet; see ``run``."""
        bounds = [self._bound(collective, rank, given) for rank, given in enumerate(arguments)]
        started = [self._start(rank, bound, algorithm) for rank, bound in enumerate(bounds)]
        self._sequence += 1
        return Begun(
            [cursor for cursor, _ in started],
            [bound.result for bound in bounds],
            (bounds, [memory for _, memory in started]),
        )

    def _start(
        self, rank: int, bound: Bound, algorithm: AlgorithmLike = "auto"
    ) -> tuple[Cursor, Memory]:
        """A cursor of one rank, not yet stepped, and the scratch that it needs as long as it runs."""
        plan = self._planners[rank].planned(bound.call, algorithm).plan
        memory = Memory(plan.scratch_nbytes)
        walk = walk_of(plan, self._transports[rank], self._kernels)
        walk.place(plan.bases(bound.src, bound.dst, memory.address))
        return Cursor(walk, self._sequence), memory

    def _bound(self, collective: str, rank: int, arguments: dict[str, Any]) -> Bound:
        if collective not in calls.BINDERS:
            raise unknown_name("collective", collective, calls.BINDERS)
        return calls.BINDERS[collective](Place(rank, self.nranks), **arguments)


def run_all(cursors: Sequence[Cursor], order: Order | None = None) -> None:
    """Step cursors until all have finished.

    Raises:
        TransportError: none of them can move.
        RawcollError: what a cursor failed with.
    """
    stuck: set[int] = set()
    while True:
        open_ranks = [rank for rank, cursor in enumerate(cursors) if not cursor.finished]
        if not open_ranks:
            return
        movable = [rank for rank in open_ranks if rank not in stuck]
        if not movable:
            raise TransportError(f"deadlock: found no rank that can move: {_state(cursors)}")
        rank = movable[0] if order is None else order(movable)
        if cursors[rank].step():
            stuck.clear()
        stuck.add(rank)
        error = cursors[rank].error
        if error is not None:
            raise error


def _state(cursors: Sequence[Cursor]) -> str:
    return "; ".join(
        f"rank {rank} round {cursor.round} waits for {cursor.missing}"
        for rank, cursor in enumerate(cursors)
        if not cursor.finished
    )

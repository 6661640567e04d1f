"""Ranks as threads: a communicator with numpy for a network, for tests of the harness itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rawcoll.errors import ScheduleError

_REDUCE = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}


class Board:
    """Where the ranks of a job leave values for each other."""

    def __init__(self, nranks: int) -> None:
        self.nranks = nranks
        self.barrier = threading.Barrier(nranks, timeout=20)
        self._values: list[Any] = [None] * nranks

    def exchange(self, rank: int, value: Any) -> list[Any]:
        self._values[rank] = value
        self.barrier.wait()
        values = list(self._values)
        self.barrier.wait()
        return values


class FakeMpi:
    """The three calls of an mpi4py communicator that the harness makes."""

    def __init__(self, board: Board, rank: int) -> None:
        self._board, self._rank = board, rank

    def allgather(self, value: Any) -> list[Any]:
        return self._board.exchange(self._rank, value)

    def bcast(self, value: Any, root: int = 0) -> Any:
        return self._board.exchange(self._rank, value)[root]

    def barrier(self) -> None:
        self._board.barrier.wait()


@dataclass
class FakeComm:
    """A communicator; the algorithm ``broken`` gives wrong results, ``picky`` fits no case."""

    board: Board
    rank: int

    def __post_init__(self) -> None:
        self.nranks = self.board.nranks
        self.mpi = FakeMpi(self.board, self.rank)
        self.calls = 0

    def explain(self, collective: str, count: int, dtype: str, **options: Any) -> Any:
        algorithm = options["algorithm"]
        if algorithm == "picky":
            raise ScheduleError(f"picky: found {self.nranks} ranks, expected none")
        return SimpleNamespace(algorithm=f"{algorithm}!", digest="d1", sent_nbytes=(count,) * 2)

    def _everyone(self, x: Any) -> list[Any]:
        self.calls += 1
        return self.board.exchange(self.rank, x.copy())

    def _give(self, out: Any, value: Any, algorithm: str, async_op: bool = False) -> Any:
        out[:] = value
        if algorithm == "broken" and self.rank == 1 and out.size:
            out[-1] = out[-1] + out.dtype.type(1)
        return SimpleNamespace(wait=lambda: out) if async_op else out

    def _reduced(self, x: Any, op: str) -> Any:
        everyone = self._everyone(x)
        total = everyone[0]
        for other in everyone[1:]:
            # What a broken algorithm leaves behind may grow without bound.
            with np.errstate(over="ignore"):
                total = _REDUCE.get(op, np.add)(total, other).astype(x.dtype)
        if op == "avg" and np.issubdtype(x.dtype, np.integer):
            return (np.sign(total) * (np.abs(total) // self.nranks)).astype(x.dtype)
        if op == "avg":
            wide = np.float64 if x.dtype == np.float64 else np.float32
            total = (total.astype(wide) * wide(1 / self.nranks)).astype(x.dtype)
        return total

    def all_reduce(self, x: Any, out: Any, op: str, algorithm: str, async_op: bool = False) -> Any:
        target = x if out is None else out
        return self._give(target, self._reduced(x, op), algorithm, async_op)

    def reduce(self, x: Any, out: Any, op: str, root: int, algorithm: str) -> Any:
        total = self._reduced(x, op)
        if self.rank == root:
            self._give(x if out is None else out, total, algorithm)

    def broadcast(self, x: Any, out: Any, root: int, algorithm: str) -> Any:
        return self._give(x if out is None else out, self._everyone(x)[root], algorithm)

    def all_gather(self, x: Any, out: Any, algorithm: str) -> Any:
        return self._give(out, np.concatenate(self._everyone(x)), algorithm)

    def reduce_scatter(self, x: Any, out: Any, op: str, algorithm: str) -> Any:
        first = self.rank * out.size
        return self._give(out, self._reduced(x, op)[first : first + out.size], algorithm)

    def all_to_all(self, x: Any, out: Any, algorithm: str) -> Any:
        part = x.size // self.nranks
        first = self.rank * part
        parts = [other[first : first + part] for other in self._everyone(x)]
        return self._give(out, np.concatenate(parts), algorithm)

    def gather(self, x: Any, out: Any, root: int, algorithm: str) -> Any:
        everyone = self._everyone(x)
        if self.rank == root:
            self._give(out, np.concatenate(everyone), algorithm)

    def scatter(self, x: Any, out: Any, root: int, algorithm: str) -> Any:
        first = self.rank * out.size
        return self._give(out, self._everyone(x)[root][first : first + out.size], algorithm)

    def sendrecv(self, x: Any, out: Any, dst: int, src: int) -> Any:
        assert dst == (self.rank + 1) % self.nranks
        return self._give(out, self._everyone(x)[src], "auto")


@pytest.fixture
def run_ranks() -> Callable[..., list[Any]]:
    """Run ``body(comm)`` on ``nranks`` threads; their results in rank order."""

    def run(nranks: int, body: Callable[[Any], Any]) -> list[Any]:
        board = Board(nranks)

        def one(rank: int) -> Any:
            try:
                return body(FakeComm(board, rank))
            except Exception as error:
                board.barrier.abort()
                return error

        with ThreadPoolExecutor(nranks) as pool:
            results = list(pool.map(one, range(nranks)))
        errors = [result for result in results if isinstance(result, Exception)]
        # A rank that only waited for one that failed has nothing to say.
        errors.sort(key=lambda error: isinstance(error, threading.BrokenBarrierError))
        if errors:
            raise errors[0]
        return results

    return run

"""One measurement's arrays and calls: which memory is input, which is output, what must be in it.

Owns the meaning of in place and out of place for each collective. Knows nothing of time and of
reports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rawcoll.bench.collectives import Collective, Counts
from rawcoll.bench.data import Array, Kind, bits_of, count_wrong, fill, neutral, numpy_dtype
from rawcoll.bench.options import DTYPES

if TYPE_CHECKING:
    from rawcoll.comm.communicator import Communicator

# Arrays begin at multiples of this: a cache line, which all that is compared gets alike.
ALIGNMENT_NBYTES: Final = 64
# The name under which MPI's own collective is called without any of rawcoll.
RAW: Final = "mpi"

Call = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Case:
    """What is measured, as one rank sees it.

    Attributes:
        collective: which one.
        dtype: nccl-tests' name of the element type.
        op: the reduction; meaningless where the collective does not reduce.
        root: the root; meaningless where there is none.
        rank, nranks: of the communicator.
        counts: elements.
    """

    collective: Collective
    dtype: str
    op: str
    root: int
    rank: int
    nranks: int
    counts: Counts

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return numpy_dtype(DTYPES[self.dtype]).itemsize

    @property
    def nbytes(self) -> int:
        """nccl-tests' size."""
        return self.counts.largest * self.itemsize

    @property
    def kind(self) -> Kind:
        """What the numbers depend on."""
        return Kind(DTYPES[self.dtype], self.op if self.collective.reduces else None, self.nranks)

    @property
    def shown_op(self) -> str:
        """The table's redop."""
        return self.op if self.collective.reduces else self.collective.redop

    @property
    def shown_root(self) -> int:
        """The table's root."""
        return self.root if self.collective.rooted else -1


@dataclass(frozen=True, slots=True)
class Arrays:
    """The memory of one call. ``result`` is also the input's memory where ``in_place``."""

    source: Array
    result: Array
    in_place: bool


class Pool:
    """Two pieces of memory that calls take their arrays from, all pages touched.

    Like nccl-tests, consecutive calls use consecutive pieces, so that small arrays do not stay in
    the cache; a call as large as the pool always gets the same memory.

    Args:
        nbytes: of one piece.
        registered: makes arrays of bytes that the communicator serves best; None: plain numpy ones.
    """

    def __init__(self, nbytes: int, registered: Callable[[int, str], Array] | None = None) -> None:
        self.nbytes = max(nbytes, ALIGNMENT_NBYTES)
        self._send, self._recv = (self._made(registered) for _ in range(2))

    def _made(self, registered: Callable[[int, str], Array] | None) -> Array:
        if registered is None:
            return _aligned(self.nbytes)
        memory = registered(self.nbytes, "uint8")
        memory.fill(0)
        return memory

    def reset(self, case: Case) -> None:
        """Fill with a value that repeated calls in place keep."""
        dtype = numpy_dtype(DTYPES[case.dtype])
        for memory in (self._send, self._recv):
            whole = memory.size // dtype.itemsize * dtype.itemsize
            memory[:whole].view(dtype).fill(neutral(case.kind.op))

    def places(self, case: Case, most: int) -> int:
        """How many calls get arrays of their own, ``most`` at most."""
        return max(1, min(most, self.nbytes // max(_stride(case), 1)))

    def arrays(self, case: Case, place: int, algorithm: str, *, in_place: bool) -> Arrays:
        """The arrays of the call at ``place``."""
        start = place * _stride(case)
        dtype = numpy_dtype(DTYPES[case.dtype])
        send, recv = (
            memory[start : start + case.nbytes].view(dtype) for memory in (self._send, self._recv)
        )
        counts = case.counts
        if not in_place or not case.collective.in_place:
            return Arrays(send[: counts.send], recv[: counts.recv], in_place=False)
        # MPI's own reduce_scatter leaves the result at the start of the array.
        part = 0 if algorithm == RAW and case.collective.parts_out else case.rank
        own = slice(part * counts.count, (part + 1) * counts.count)
        return Arrays(
            recv[own] if case.collective.parts_in else recv,
            recv[own] if case.collective.parts_out else recv,
            in_place=True,
        )


def _aligned(nbytes: int) -> Array:
    memory = np.zeros(nbytes + ALIGNMENT_NBYTES, np.uint8)
    memory.fill(0)  # np.zeros maps pages without touching them
    start = -memory.ctypes.data % ALIGNMENT_NBYTES
    return memory[start : start + nbytes]


def _stride(case: Case) -> int:
    return -(-case.nbytes // ALIGNMENT_NBYTES) * ALIGNMENT_NBYTES


def prepare(case: Case, arrays: Arrays) -> None:
    """Write the input, after filling the output with bits that no result has everywhere."""
    arrays.result.view(np.uint8).fill(0xA5)
    fill(arrays.source, case.kind, case.rank)


def wrong_elements(case: Case, arrays: Arrays) -> int:
    """How many elements of this rank's output are wrong."""
    name, count, result = case.collective.name, case.counts.count, arrays.result
    if name in ("reduce", "gather") and case.rank != case.root:
        return 0
    if case.collective.reduces:
        start = case.rank * count if case.collective.parts_out else 0
        return count_wrong(result, case.kind, start, None)
    if name in ("broadcast", "scatter"):
        start = case.rank * count if name == "scatter" else 0
        return count_wrong(result, case.kind, start, case.root)
    if name == "sendrecv":
        return count_wrong(result, case.kind, 0, (case.rank - 1) % case.nranks)
    start = case.rank * count if name == "all_to_all" else 0
    parts = (result[peer * count : (peer + 1) * count] for peer in range(case.nranks))
    return sum(count_wrong(part, case.kind, start, peer) for peer, part in enumerate(parts))


def bind(comm: Communicator, case: Case, arrays: Arrays, algorithm: str) -> Callable[..., Any]:
    """The communicator's call on these arrays.

    Args:
        comm: the communicator.
        case: what is called.
        arrays: its memory.
        algorithm: a text that the communicator takes as one, or RAW.

    Returns:
        A function of no arguments; all but RAW also take ``async_op``.
    """
    if algorithm == RAW:
        return _bind_raw(comm, case, arrays)
    name = case.collective.name
    method = getattr(comm, name)
    if name == "sendrecv":
        right, left = (case.rank + 1) % case.nranks, (case.rank - 1) % case.nranks
        return partial(method, arrays.source, arrays.result, right, left)
    options: dict[str, Any] = {"algorithm": algorithm}
    if case.collective.reduces:
        options["op"] = case.op
    if case.collective.rooted:
        options["root"] = case.root
    return partial(method, arrays.source, out=_out(case, arrays), **options)


def _out(case: Case, arrays: Arrays) -> Array | None:
    """``out`` of a call: None where there is no result, or where it is the input's memory whole."""
    name = case.collective.name
    if arrays.in_place and name in ("all_reduce", "reduce", "broadcast"):
        return None
    if name in ("reduce", "gather") and case.rank != case.root:
        return None
    return arrays.result


def _bind_raw(comm: Communicator, case: Case, arrays: Arrays) -> Call:
    from rawcoll.transport.mpi import raw_collective

    source, result = arrays.source, arrays.result
    if arrays.in_place and case.collective.parts_out:
        result = source
    if not case.collective.reduces:
        # MPI has no 16-bit floats; what is only moved may go as integers.
        source, result = bits_of(source), bits_of(result)
    name = case.collective.name
    call: Call = raw_collective(
        comm.mpi, name, None if arrays.in_place else source, result, op=case.op, root=case.root
    )
    if name != "broadcast" or arrays.in_place or case.rank != case.root:
        return call

    def copy_then_broadcast() -> None:
        # MPI's broadcast is in place only: this is what a caller would have to write.
        np.copyto(result, source)
        call()

    return copy_then_broadcast

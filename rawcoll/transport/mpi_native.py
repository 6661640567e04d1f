"""MPI's own collectives as native steps: one call each, blocking or not.

Owns the mapping of element types and operations to MPI's, an own MPI operation for 16-bit floats (which
MPI lacks), and the division of an average (which MPI lacks too). Bits of these collectives are MPI's
affair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import accumulate
from typing import Any, Final

from mpi4py import MPI

from rawcoll.device.host import Memory
from rawcoll.kernels.host import host_kernels
from rawcoll.transport.base import NativeCall, Pending
from rawcoll.transport.mpi_errors import mapped
from rawcoll.types import DType, Kind, Op

_DATATYPES: Final = {
    "int8": MPI.INT8_T,
    "int16": MPI.INT16_T,
    "int32": MPI.INT32_T,
    "int64": MPI.INT64_T,
    "uint8": MPI.UINT8_T,
    "uint16": MPI.UINT16_T,
    "uint32": MPI.UINT32_T,
    "uint64": MPI.UINT64_T,
    "float16": MPI.UINT16_T,
    "bfloat16": MPI.UINT16_T,
    "float32": MPI.FLOAT,
    "float64": MPI.DOUBLE,
}
_OPS: Final = {
    Op.SUM: MPI.SUM,
    Op.PROD: MPI.PROD,
    Op.MIN: MPI.MIN,
    Op.MAX: MPI.MAX,
}
_from_address = MPI.memory.fromaddress


class NativePending:
    """A collective under way, and what is left to do with its result."""

    def __init__(
        self, request: MPI.Request, then: Callable[[], None], ranks: Sequence[int], rank: int
    ) -> None:
        self._request = request
        self._then: Callable[[], None] | None = then
        self._ranks = ranks
        self._rank = rank

    def test(self) -> bool:
        """See Pending."""
        if self._then is not None:
            with mapped("collective", self._rank):
                if not self._request.Test():
                    return False
            self._run_then()
        return True

    def missing(self) -> tuple[int, ...]:
        """See Pending: MPI does not say who is late; any of the others may be."""
        return () if self._then is None else tuple(r for r in self._ranks if r != self._rank)

    def _run_then(self) -> None:
        then, self._then = self._then, None
        if then is not None:
            then()


class NativeCollectives:
    """MPI's collectives over ranks of ``comm``.

    Args:
        comm: parent; subsets get communicators of their own, made by ``prepare``.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._all = tuple(range(comm.size))
        self._parent = comm
        self._comms: dict[tuple[int, ...], MPI.Intracomm] = {}
        self.prepare(self._all)

    def prepare(self, ranks: tuple[int, ...]) -> None:
        """Make the communicator of ``ranks``, in that order. Collective over them."""
        if ranks in self._comms:
            return
        if ranks == self._all:
            self._comms[ranks] = self._parent.Dup()
            return
        group = self._parent.group.Incl(list(ranks))
        self._comms[ranks] = self._parent.Create_group(group, len(self._comms))
        group.Free()

    def start(self, call: NativeCall, *, blocking: bool) -> Pending:
        """Start one collective; complete on return with ``blocking``."""
        comm = self._comms[call.ranks]
        starter = _Starter(comm, call, _operation(call.dtype, call.op), blocking)
        request = getattr(starter, call.collective)()
        pending = NativePending(request, starter.then, call.ranks, self._parent.rank)
        if blocking:
            pending.test()
        return pending

    def close(self) -> None:
        """Free the communicators. Collective."""
        for comm in self._comms.values():
            comm.Free()
        self._comms.clear()


@cache
def _operation(dtype: DType, op: Op) -> MPI.Op:
    """MPI's operation, or our own for 16-bit floats: one a process, for mpi4py has room for 32."""
    if dtype.kind is not Kind.FLOAT or dtype.itemsize != 2:
        return _OPS[op]
    return MPI.Op.Create(partial(_reduce_16_bit, dtype, op), True)


def _reduce_16_bit(dtype: DType, op: Op, given: Any, result: Any, _datatype: MPI.Datatype) -> None:
    """The MPI operation of a 16-bit float: accumulates in float, like all kernels."""
    count = result.nbytes // dtype.itemsize
    host_kernels().reduce(op, dtype.code, result.address, (given.address, result.address), count, 1)


class _Starter:
    """One native call on its way into MPI: one method a collective, returning the request."""

    def __init__(self, comm: MPI.Intracomm, call: NativeCall, op: MPI.Op, blocking: bool) -> None:
        self._comm = comm
        self._call = call
        self._op = op
        self._blocking = blocking
        self._datatype = _DATATYPES[call.dtype.name]
        self._root = call.ranks.index(call.root) if call.root in call.ranks else 0
        self._divided = 0
        self._copied: Memory | None = None

    def then(self) -> None:
        """What MPI leaves undone: the division of an average, a result that had to go elsewhere."""
        call = self._call
        if self._copied is not None:
            nbytes = self._own_count(call.dst_counts) * call.dtype.itemsize
            host_kernels().copy(call.dst, self._copied.address, nbytes)
        if call.divisor != 1 and self._divided:
            host_kernels().reduce(
                Op.SUM, call.dtype.code, call.dst, (call.dst,), self._divided, call.divisor
            )

    def all_reduce(self) -> MPI.Request:
        call = self._call
        self._divided = sum(call.dst_counts)
        source = MPI.IN_PLACE if call.src == call.dst else self._buffer(call.src, call.src_counts)
        return self._run("Allreduce", source, self._buffer(call.dst, call.dst_counts), self._op)

    def reduce(self) -> MPI.Request:
        call = self._call
        if not call.dst_counts:
            return self._run(
                "Reduce", self._buffer(call.src, call.src_counts), None, self._op, self._root
            )
        self._divided = sum(call.dst_counts)
        source = MPI.IN_PLACE if call.src == call.dst else self._buffer(call.src, call.src_counts)
        return self._run(
            "Reduce", source, self._buffer(call.dst, call.dst_counts), self._op, self._root
        )

    def broadcast(self) -> MPI.Request:
        call = self._call
        if call.src and call.src != call.dst:
            nbytes = sum(call.dst_counts) * call.dtype.itemsize
            host_kernels().copy(call.dst, call.src, nbytes)
        return self._run("Bcast", self._buffer(call.dst, call.dst_counts), self._root)

    def barrier(self) -> MPI.Request:
        return self._run("Barrier")

    def all_gather(self) -> MPI.Request:
        call = self._call
        own = self._displacement(call.dst_counts)
        in_place = call.src == call.dst + own
        source = MPI.IN_PLACE if in_place else self._buffer(call.src, call.src_counts)
        return self._run("Allgatherv", source, self._parts(call.dst, call.dst_counts))

    def reduce_scatter(self) -> MPI.Request:
        call = self._call
        self._divided = self._own_count(call.dst_counts)
        end = call.src + sum(call.src_counts) * call.dtype.itemsize
        dst = call.dst
        if call.src <= call.dst < end:  # MPI's own in-place form puts the result elsewhere
            self._copied = Memory(self._divided * call.dtype.itemsize)
            dst = self._copied.address
        target = self._buffer(dst, (self._divided,))
        return self._run(
            "Reduce_scatter",
            self._buffer(call.src, call.src_counts),
            target,
            list(call.src_counts),
            self._op,
        )

    def all_to_all(self) -> MPI.Request:
        call = self._call
        return self._run(
            "Alltoallv",
            self._parts(call.src, call.src_counts),
            self._parts(call.dst, call.dst_counts),
        )

    def gather(self) -> MPI.Request:
        call = self._call
        if not call.dst_counts:
            return self._run("Gatherv", self._buffer(call.src, call.src_counts), None, self._root)
        in_place = call.src == call.dst + self._displacement(call.dst_counts)
        source = MPI.IN_PLACE if in_place else self._buffer(call.src, call.src_counts)
        return self._run("Gatherv", source, self._parts(call.dst, call.dst_counts), self._root)

    def scatter(self) -> MPI.Request:
        call = self._call
        if not call.src_counts:
            return self._run("Scatterv", None, self._buffer(call.dst, call.dst_counts), self._root)
        in_place = call.dst == call.src + self._displacement(call.src_counts)
        target = MPI.IN_PLACE if in_place else self._buffer(call.dst, call.dst_counts)
        return self._run("Scatterv", self._parts(call.src, call.src_counts), target, self._root)

    def _run(self, name: str, *arguments: Any) -> MPI.Request:
        """mpi4py's blocking ``Name``, or its non-blocking ``Iname``."""
        if self._blocking:
            getattr(self._comm, name)(*arguments)
            return MPI.REQUEST_NULL
        starter = getattr(self._comm, "I" + name[0].lower() + name[1:])
        request: MPI.Request = starter(*arguments)
        return request

    def _own_count(self, counts: tuple[int, ...]) -> int:
        return counts[self._comm.rank] if len(counts) == self._comm.size else sum(counts)

    def _displacement(self, counts: tuple[int, ...]) -> int:
        return sum(counts[: self._comm.rank]) * self._call.dtype.itemsize

    def _buffer(self, address: int, counts: tuple[int, ...]) -> list[Any]:
        count = sum(counts)
        memory = _from_address(address, count * self._call.dtype.itemsize)
        return [memory, count, self._datatype]

    def _parts(self, address: int, counts: tuple[int, ...]) -> list[Any]:
        memory = _from_address(address, sum(counts) * self._call.dtype.itemsize)
        displacements = list(accumulate(counts, initial=0))[:-1]
        return [memory, list(counts), displacements, self._datatype]

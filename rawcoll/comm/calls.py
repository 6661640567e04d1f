"""A caller's arguments become a call: validated, described by values, bound to addresses.

Owns the meaning of the arguments of each collective: shapes, counts, roots, which overlaps are legal, what
is returned. Everything is refused here, before anything is enqueued. Knows no transport and no algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index as as_index
from typing import Any, Final

from rawcoll.device.arrays import HostArray, host_array, new_array
from rawcoll.errors import InvalidArgument
from rawcoll.executor.layout import Sizes
from rawcoll.types import DType, Op, op_of


@dataclass(frozen=True, slots=True)
class Call:
    """The values of a call that a plan depends on: never an address.

    Attributes:
        collective, root, op, dtype: as in the public call.
        sizes: element counts.
        in_place: whether this rank's input stands in its result's memory.
    """

    collective: str
    root: int
    op: Op
    dtype: DType
    sizes: Sizes
    in_place: bool


@dataclass(frozen=True, slots=True)
class Bound:
    """A call and the arrays of this rank.

    Attributes:
        src, dst: addresses for the plan's INPUT and OUTPUT.
        result: what the public call returns.
        keep: owners of the memory.
    """

    call: Call
    src: int
    dst: int
    result: Any
    keep: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """This rank among ``nranks``."""

    rank: int
    nranks: int


def all_reduce(_place: Place, x: Any, out: Any = None, op: str = "sum") -> Bound:
    """See Communicator.all_reduce."""
    operation = op_of(op)
    source = host_array("x", x, writeable=out is None)
    sizes = Sizes(source.count)
    if out is None:
        call = Call("all_reduce", 0, operation, source.dtype, sizes, in_place=True)
        return Bound(call, source.address, source.address, x, (source.owner,))
    target = _target("out", out, source.dtype, source.count)
    in_place = target.address == source.address and source.count > 0
    if not in_place:
        _refuse_overlap(source, target, "the same array")
    call = Call("all_reduce", 0, operation, source.dtype, sizes, in_place)
    return Bound(call, source.address, target.address, out, (source.owner, target.owner))


def reduce(place: Place, x: Any, out: Any = None, op: str = "sum", root: int = 0) -> Bound:
    """See Communicator.reduce."""
    root = peer_of(place, "root", root)
    if place.rank != root:
        source = host_array("x", x)
        call = Call("reduce", root, op_of(op), source.dtype, Sizes(source.count), in_place=True)
        return Bound(call, source.address, source.address, None, (source.owner,))
    bound = all_reduce(place, x, out, op)
    given = bound.call
    call = Call("reduce", root, given.op, given.dtype, given.sizes, given.in_place)
    return Bound(call, bound.src, bound.dst, bound.result, bound.keep)


def broadcast(place: Place, x: Any, root: int = 0, out: Any = None) -> Bound:
    """See Communicator.broadcast."""
    root = peer_of(place, "root", root)
    at_root = place.rank == root
    if out is None or not at_root:
        name, array = ("x", x) if out is None else ("out", out)
        target = host_array(name, array, writeable=not at_root)
        if out is not None and x is not None:
            _same(host_array("x", x), target)
        call = Call("broadcast", root, Op.SUM, target.dtype, Sizes(target.count), in_place=True)
        return Bound(call, target.address, target.address, array, (target.owner,))
    bound = all_reduce(place, x, out, "sum")
    given = bound.call
    call = Call("broadcast", root, Op.SUM, given.dtype, given.sizes, given.in_place)
    return Bound(call, bound.src, bound.dst, out, bound.keep)


def all_gather(place: Place, x: Any, out: Any = None, counts: Sequence[int] | None = None) -> Bound:
    """See Communicator.all_gather."""
    source = host_array("x", x)
    parts = _parts(place, "counts", counts, source.count * place.nranks)
    if parts[place.rank] != source.count:
        raise InvalidArgument(
            f"x: count: found {source.count}, expected counts[{place.rank}] = {parts[place.rank]}"
        )
    total = sum(parts)
    shape = (place.nranks, *source.shape) if counts is None else (total,)
    array, target = _result(x, out, shape, source.dtype, total)
    own = target.address + sum(parts[: place.rank]) * source.dtype.itemsize
    in_place = source.address == own and source.count > 0
    if not in_place:
        _refuse_overlap(source, target, f"out's part of rank {place.rank}")
    call = Call("all_gather", 0, Op.SUM, source.dtype, Sizes(total, parts), in_place)
    return Bound(call, source.address, target.address, array, (source.owner, target.owner))


def reduce_scatter(
    place: Place,
    x: Any,
    out: Any = None,
    counts: Sequence[int] | None = None,
    op: str = "sum",
) -> Bound:
    """See Communicator.reduce_scatter."""
    operation = op_of(op)
    source = host_array("x", x)
    parts = _parts(place, "counts", counts, source.count)
    if sum(parts) != source.count:
        raise InvalidArgument(f"counts: sum: found {sum(parts)}, expected x's count {source.count}")
    count = parts[place.rank]
    shape = _part_shape(place, source.shape, count) if counts is None else (count,)
    array, target = _result(x, out, shape, source.dtype, count)
    own = source.address + sum(parts[: place.rank]) * source.dtype.itemsize
    in_place = target.address == own and count > 0
    if not in_place:
        _refuse_overlap(source, target, f"x's part of rank {place.rank}")
    call = Call("reduce_scatter", 0, operation, source.dtype, Sizes(source.count, parts), in_place)
    # In place the whole array is one memory, which begins where x does.
    dst = source.address if in_place else target.address
    return Bound(call, source.address, dst, array, (source.owner, target.owner))


def all_to_all(
    place: Place,
    x: Any,
    out: Any = None,
    send_counts: Sequence[int] | None = None,
    recv_counts: Sequence[int] | None = None,
) -> Bound:
    """See Communicator.all_to_all."""
    source = host_array("x", x)
    if (send_counts is None) != (recv_counts is None):
        raise InvalidArgument(
            "send_counts, recv_counts: found one of them, expected both or neither"
        )
    sent = _parts(place, "send_counts", send_counts, source.count)
    if sum(sent) != source.count:
        raise InvalidArgument(
            f"send_counts: sum: found {sum(sent)}, expected x's count {source.count}"
        )
    received = sent if recv_counts is None else _parts(place, "recv_counts", recv_counts, 0)
    if sent[place.rank] != received[place.rank]:
        raise InvalidArgument(
            f"recv_counts: own part: found {received[place.rank]}, expected "
            f"send_counts[{place.rank}] = {sent[place.rank]}"
        )
    total = sum(received)
    shape = source.shape if recv_counts is None else (total,)
    array, target = _result(x, out, shape, source.dtype, total)
    _refuse_overlap(source, target, "another array")
    sizes = Sizes(source.count, sent, received)
    call = Call("all_to_all", 0, Op.SUM, source.dtype, sizes, in_place=False)
    return Bound(call, source.address, target.address, array, (source.owner, target.owner))


def gather(place: Place, x: Any, out: Any = None, root: int = 0) -> Bound:
    """See Communicator.gather."""
    root = peer_of(place, "root", root)
    source = host_array("x", x)
    total = source.count * place.nranks
    sizes = Sizes(total, (source.count,) * place.nranks)
    if place.rank != root:
        call = Call("gather", root, Op.SUM, source.dtype, sizes, in_place=True)
        return Bound(call, source.address, source.address, None, (source.owner,))
    bound = all_gather(place, x, out, None)
    call = Call("gather", root, Op.SUM, source.dtype, sizes, bound.call.in_place)
    return Bound(call, bound.src, bound.dst, bound.result, bound.keep)


def scatter(place: Place, x: Any, out: Any = None, root: int = 0) -> Bound:
    """See Communicator.scatter."""
    root = peer_of(place, "root", root)
    if place.rank == root:
        bound = reduce_scatter(place, x, out, None, "sum")
        given = bound.call
        call = Call("scatter", root, Op.SUM, given.dtype, given.sizes, given.in_place)
        return Bound(call, bound.src, bound.dst, bound.result, bound.keep)
    array, target = _scatter_target(place, x, out)
    parts = (target.count,) * place.nranks
    sizes = Sizes(target.count * place.nranks, parts)
    call = Call("scatter", root, Op.SUM, target.dtype, sizes, in_place=True)
    return Bound(call, target.address, target.address, array, (target.owner,))


def barrier(token: Any) -> Bound:
    """See Communicator.barrier; ``token`` is one byte of the communicator's own."""
    source = host_array("token", token)
    call = Call("barrier", 0, Op.MAX, source.dtype, Sizes(1), in_place=True)
    return Bound(call, source.address, source.address, None, (token,))


def peer_of(place: Place, argument: str, peer: int) -> int:
    """A rank that the caller names.

    Raises:
        InvalidArgument: not an integer, or none of the ranks.
    """
    try:
        found = as_index(peer)
    except TypeError:
        raise InvalidArgument(f"{argument}: found {peer!r}, expected a rank") from None
    if not 0 <= found < place.nranks:
        raise InvalidArgument(
            f"{argument}: no such rank: found {found}, expected 0 to {place.nranks - 1}"
        )
    return found


def refuse_other_overlap(source: HostArray, target: HostArray) -> None:
    """Refuse two arrays that share memory."""
    _refuse_overlap(source, target, "another array")


def _scatter_target(place: Place, x: Any, out: Any) -> tuple[Any, HostArray]:
    """Away from the root: ``out``, or a new array of a part of something shaped like the root's."""
    if out is not None:
        return out, host_array("out", out, writeable=True)
    if x is None:
        raise InvalidArgument(
            "out: found None, expected an array, or x shaped like the root's, on other ranks than root"
        )
    like = host_array("x", x)
    count = _parts(place, "x", None, like.count)[0]
    return _result(x, None, _part_shape(place, like.shape, count), like.dtype, count)


def _target(argument: str, array: Any, dtype: DType, count: int) -> HostArray:
    target = host_array(argument, array, writeable=True)
    if target.dtype is not dtype:
        raise InvalidArgument(
            f"{argument}.dtype: found {target.dtype.name}, expected {dtype.name} as in x"
        )
    if target.count != count:
        raise InvalidArgument(f"{argument}: count: found {target.count}, expected {count}")
    return target


def _same(x: HostArray, target: HostArray) -> None:
    if x.dtype is not target.dtype or x.count != target.count:
        raise InvalidArgument(
            f"out: found {target.count} of {target.dtype.name}, expected {x.count} of {x.dtype.name}"
        )


def _result(
    like: Any, out: Any, shape: tuple[int, ...], dtype: DType, count: int
) -> tuple[Any, HostArray]:
    array = new_array(like, shape, dtype) if out is None else out
    return array, _target("out", array, dtype, count)


def _refuse_overlap(source: HostArray, target: HostArray, legal: str) -> None:
    if (
        source.address < target.address + target.nbytes
        and target.address < source.address + source.nbytes
    ):
        raise InvalidArgument(
            f"out: overlaps x: found a partial overlap, expected none, or {legal}"
        )


def _parts(
    place: Place, argument: str, counts: Sequence[int] | None, total: int
) -> tuple[int, ...]:
    """Elements of each rank's part: as given, or equal shares of ``total``."""
    if counts is None:
        share, rest = divmod(total, place.nranks)
        if rest:
            raise InvalidArgument(
                f"x: count: found {total}, expected a multiple of {place.nranks} ranks"
            )
        return (share,) * place.nranks
    try:
        found = tuple(as_index(count) for count in counts)
    except TypeError:
        raise InvalidArgument(f"{argument}: found {counts!r}, expected integers") from None
    if len(found) != place.nranks or min(found) < 0:
        raise InvalidArgument(
            f"{argument}: found {list(found)}, expected {place.nranks} counts that are not negative"
        )
    return found


def _part_shape(place: Place, shape: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Shape of one of equal parts: the leading axis is the ranks', or is divided over them."""
    if shape and shape[0] == place.nranks:
        return shape[1:]
    if shape and shape[0] % place.nranks == 0:
        return (shape[0] // place.nranks, *shape[1:])
    return (count,)


BINDERS: Final[dict[str, Callable[..., Bound]]] = {
    function.__name__: function
    for function in (
        all_reduce,
        reduce,
        broadcast,
        all_gather,
        reduce_scatter,
        all_to_all,
        gather,
        scatter,
    )
}
"""The collectives with arrays, by name; each takes a Place and then the public method's arguments."""

"""Direct: every rank exchanges with every other at once, or a window of peers a round.

==============================  ======================  ===========================
collective                      rounds                  bytes sent by a rank
==============================  ======================  ===========================
all_reduce, barrier             ceil((n - 1) / w)       S (n - 1)
all_gather, reduce_scatter,     ceil((n - 1) / w)       S (n - 1) / n
all_to_all
reduce                          ceil((n - 1) / w)       S (the root: 0)
broadcast                       ceil((n - 1) / w)       the root: S (n - 1)
gather                          ceil((n - 1) / w)       S / n (the root: 0)
scatter                         ceil((n - 1) / w)       the root: S (n - 1) / n
==============================  ======================  ===========================

n ranks, an array of S bytes, w peers a round. In a round rank i sends to the ranks i + d and
receives from the ranks i - d, for the w distances d of that round: both ends agree on the round,
and no rank is everybody's first.

Roundings: 1. Order of reduction: rank order, in one pass once everything has arrived; what arrives
waits in n - 1 slots (of S bytes for all_reduce and the root of reduce). The bits do not depend on
``window``.

Source: folklore; all_to_all is the spread-out algorithm of MPICH.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from rawcoll.algorithms.base import Constraints, check_at_least_one, check_fits, start
from rawcoll.algorithms.fitting import WINDOW
from rawcoll.schedule.builder import Builder
from rawcoll.schedule.collectives import COLLECTIVES
from rawcoll.schedule.ops import INPUT, Span
from rawcoll.schedule.program import Program, Spec


@dataclass(frozen=True, slots=True)
class Direct:
    """See the module.

    Attributes:
        window: peers that a rank sends to in one round; None: by the number of ranks.
    """

    window: int | None = None

    name: ClassVar[str] = "direct"
    collectives: ClassVar[frozenset[str]] = frozenset(COLLECTIVES)
    constraints: ClassVar[Constraints] = Constraints()

    def __post_init__(self) -> None:
        check_at_least_one("window", self.window)

    def program(self, spec: Spec) -> Program:
        """See Algorithm."""
        check_fits(self, spec)
        in_place = spec.collective != "all_to_all"
        nunits = spec.nranks if COLLECTIVES[spec.collective].parts else 1
        builder = start(self, spec, nunits, in_place=in_place)
        _WRITERS[spec.collective](_Peers(builder, self._window))
        return builder.build()

    def rounds(self, collective: str, nranks: int) -> int:
        """See Algorithm."""
        return -(-(nranks - 1) // self._window)

    def fitted(self, nbytes: int, nranks: int) -> Direct:
        """See Algorithm."""
        return replace(self, window=self._window)

    @property
    def _window(self) -> int:
        return self.window or WINDOW


class _Peers:
    """One rank among its peers."""

    def __init__(self, builder: Builder, window: int) -> None:
        self._builder = builder
        self._window = window
        self._rank = builder.spec.rank
        self._root = builder.spec.root
        self._nranks = builder.spec.nranks
        self._end = -(-(self._nranks - 1) // window) - 1
        """The last round."""

    def all_reduce(self) -> None:
        """Everything to everyone."""
        whole = self._builder.span(0)
        for round, to, _ in self._rounds():
            self._builder.send(round, to, whole)
        self._collect(whole)

    def reduce(self) -> None:
        """Everything to the root."""
        whole = self._builder.span(0)
        if self._rank == self._root:
            self._collect(whole)
        else:
            self._builder.send(self._round(self._root - self._rank), self._root, whole)

    def reduce_scatter(self) -> None:
        """Each part to its owner."""
        for round, to, _ in self._rounds():
            self._builder.send(round, to, self._builder.span(to))
        self._collect(self._builder.span(self._rank))

    def broadcast(self) -> None:
        """The root's array to everyone."""
        self._from_root(lambda _: self._builder.span(0))

    def scatter(self) -> None:
        """Each part from the root to its owner."""
        self._from_root(self._builder.span)

    def all_gather(self) -> None:
        """One's own part to everyone."""
        b = self._builder
        for round, to, source in self._rounds():
            b.send(round, to, b.span(self._rank))
            b.recv(round, source, b.span(source))

    def gather(self) -> None:
        """Each part to the root."""
        b = self._builder
        if self._rank != self._root:
            b.send(self._round(self._root - self._rank), self._root, b.span(self._rank))
            return
        for round, _, source in self._rounds():
            b.recv(round, source, b.span(source))

    def all_to_all(self) -> None:
        """INPUT is numbered by destination, OUTPUT by source."""
        b = self._builder
        b.copy(-1, b.span(self._rank, buffer=INPUT), b.span(self._rank))
        for round, to, source in self._rounds():
            b.send(round, to, b.span(to, buffer=INPUT))
            b.recv(round, source, b.span(source))

    def _from_root(self, span_for: Callable[[int], Span]) -> None:
        b = self._builder
        if self._rank != self._root:
            b.recv(self._round(self._rank - self._root), self._root, span_for(self._rank))
            return
        for round, to, _ in self._rounds():
            b.send(round, to, span_for(to))

    def _collect(self, own: Span) -> None:
        """Receive what ``own`` names from everyone, and reduce once all of it is there."""
        b = self._builder
        spans = [own] * self._nranks
        for round, _, source in self._rounds():
            spans[source] = b.span(own.start, own.stop, b.scratch())
            b.recv(round, source, spans[source])
        if self._nranks > 1:
            b.reduce(self._end, spans, own, last=True)

    def _rounds(self) -> Iterator[tuple[int, int, int]]:
        """Round, the rank to send to and the rank to receive from, for all distances."""
        for distance in range(1, self._nranks):
            to, source = self._rank + distance, self._rank - distance
            yield self._round(distance), to % self._nranks, source % self._nranks

    def _round(self, distance: int) -> int:
        return (distance % self._nranks - 1) // self._window


_WRITERS: Final[dict[str, Callable[[_Peers], None]]] = {
    "all_reduce": _Peers.all_reduce,
    "barrier": _Peers.all_reduce,
    "reduce": _Peers.reduce,
    "reduce_scatter": _Peers.reduce_scatter,
    "broadcast": _Peers.broadcast,
    "scatter": _Peers.scatter,
    "all_gather": _Peers.all_gather,
    "gather": _Peers.gather,
    "all_to_all": _Peers.all_to_all,
}

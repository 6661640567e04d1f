"""Hierarchical: inside nodes, across nodes, inside nodes; any number of levels, uneven nodes.

========================  =====================  ===============================================
collective                rounds                 bytes sent by a rank to other nodes
========================  =====================  ===============================================
all_reduce                1 + a(m) + 1           across's on S / K, for each piece that it owns
reduce_scatter            1 + a(m)               across's on its rails' parts
all_gather                a(m) + 1               across's on its rails' parts
broadcast                 1 + a(m) + 1           across's on S / K, for each piece that it owns
========================  =====================  ===============================================

An array of S bytes, m nodes, K ranks in the largest node, a(m) rounds of ``across`` among m ranks.
The rounds inside nodes are direct, and there are none where all nodes have one rank. Pieces, owners
and rails: see ``levels``.

- all_reduce: node mates give each piece to its owner, which adds them up; the owners of a piece
  run ``across`` on it; each owner gives its pieces to its mates.
- broadcast: the root gives the pieces to their owners in its node; the rest is as above.
- all_gather: a rank's part travels on its primary rail; then owners give what their rails
  brought to their mates.
- reduce_scatter: the mirror. Mates give the parts of a rail to the node's owner of it, which adds
  them up; the owners run ``across`` on them.

The rails run side by side: their programs merge by round. With more than two levels ``across`` is
run hierarchically in turn, over the nodes.

Roundings: 1 inside a node, then those of across. Order of reduction: the order of the ranks in the
node, then across's, which for piece c starts at node c.

Source: the two-level scheme of BlueConnect (Cho et al., 2019) and of NCCL's and Horovod's
hierarchical all_reduce; the sharing for uneven nodes is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import ClassVar, Final

from rawcoll.algorithms.base import Algorithm, Constraints, check_fits, start
from rawcoll.algorithms.levels import Levels, shape_of
from rawcoll.algorithms.ring import Ring
from rawcoll.schedule.builder import Placed
from rawcoll.schedule.collectives import COLLECTIVES
from rawcoll.schedule.ops import OUTPUT, Span
from rawcoll.schedule.program import Program, Spec

_INSIDE_ROUNDS: Final = {"all_reduce": 2, "broadcast": 2, "reduce_scatter": 1, "all_gather": 1}


@dataclass(frozen=True, slots=True)
class Hierarchical:
    """See the module.

    Attributes:
        levels: nested tuples of ranks; the innermost ones are nodes. All are nested equally deep.
        across: what the highest level runs. One that is native to the library below needs nodes of
            equal size, and units that lie side by side (all_reduce and broadcast).
    """

    levels: Levels
    across: Algorithm = field(default_factory=Ring)

    name: ClassVar[str] = "hierarchical"
    collectives: ClassVar[frozenset[str]] = frozenset(_INSIDE_ROUNDS)

    def __post_init__(self) -> None:
        shape_of(self.levels)

    @property
    def constraints(self) -> Constraints:
        """Exactly the ranks that ``levels`` names."""
        nranks = sum(map(len, shape_of(self.levels).nodes))
        return Constraints(min_ranks=nranks, max_ranks=nranks)

    def program(self, spec: Spec) -> Program:
        """See Algorithm."""
        check_fits(self, spec)
        member = _Member(self, spec)
        match spec.collective:
            case "all_reduce":
                member.all_reduce()
            case "broadcast":
                member.broadcast()
            case "all_gather":
                member.all_gather()
            case _:
                member.reduce_scatter()
        return member.builder.build()

    def rounds(self, collective: str, nranks: int) -> int:
        """See Algorithm."""
        shape = shape_of(self.levels)
        inside = _INSIDE_ROUNDS[collective] if shape.npieces > 1 else 0
        return inside + self.rounds_across(collective)

    def fitted(self, nbytes: int, nranks: int) -> Hierarchical:
        """See Algorithm. Across runs on one of K pieces, at every level above."""
        shape, above = shape_of(self.levels), self.levels
        while shape.above is not None:
            nbytes //= shape.npieces
            above = shape.above
            shape = shape_of(above)
        across = self.across.fitted(nbytes // shape.npieces, shape.nnodes)
        return replace(self, across=across)

    def rounds_across(self, collective: str) -> int:
        """The rounds between the nodes."""
        nnodes = shape_of(self.levels).nnodes
        return self.over().rounds(collective, nnodes) if nnodes > 1 else 0

    def over(self) -> Algorithm:
        """What runs over the nodes: ``across``, or the levels above."""
        above = shape_of(self.levels).above
        return self.across if above is None else replace(self, levels=above)


@dataclass(frozen=True, slots=True)
class _Rail:
    """One piece's way across the nodes: its owners in order, and this rank's program."""

    piece: int
    owners: tuple[int, ...]
    program: Program


class _Member:
    """One rank, its node mates, and the rails of the pieces that it owns."""

    def __init__(self, algorithm: Hierarchical, spec: Spec) -> None:
        self._shape = shape_of(algorithm.levels)
        self._rank = spec.rank
        self._root = spec.root
        self._node = self._shape.node_of(spec.rank)
        self._ranks = self._shape.nodes[self._node]
        self._mates = [rank for rank in self._ranks if rank != spec.rank]
        self._rails = list(self._rails_of(algorithm, spec))
        gathers_first = spec.collective == "all_gather"
        self._first = 1 if self._shape.npieces > 1 and not gathers_first else 0
        """The first round of across."""
        self._end = self._first + algorithm.rounds_across(spec.collective)
        self.builder = start(algorithm, spec, 1)
        # Across has the same number of units at all its ranks, on all rails.
        self._width = self._rails[0].program.nunits if self._rails else 1
        if COLLECTIVES[spec.collective].parts:
            self._width //= self._shape.nnodes if self._rails else 1
            self.builder.units(spec.nranks * self._width)
        else:
            self.builder.units(self._shape.npieces * self._width)

    def all_reduce(self) -> None:
        """Reduce-scatter inside, all_reduce across, all_gather inside."""
        for mate in self._mates:
            self.builder.send(0, mate, self._pieces_of(mate))
        self._reduce_inside(self._pieces_of(self._rank), in_output=True)
        self._pieces_across()
        self._gather_inside(self._pieces_given)

    def broadcast(self) -> None:
        """Scatter in the root's node, broadcast across, all_gather inside."""
        b = self.builder
        if self._rank == self._root:
            for mate in self._mates:
                b.send(0, mate, self._pieces_of(mate))
        elif self._root in self._mates:
            b.recv(0, self._root, self._pieces_of(self._rank))
        self._pieces_across()
        self._gather_inside(self._pieces_given, complete=self._root)

    def all_gather(self) -> None:
        """all_gather across, then inside: each rank gives what its rails brought."""
        for rail in self._rails:
            self._across(rail, [self._part(rank, OUTPUT) for rank in self._riders(rail.piece)])
        self._gather_inside(self._carried)

    def reduce_scatter(self) -> None:
        """Reduce-scatter inside, of what the rails take, then across."""
        for mate in self._mates:
            for span in self._carried(mate):
                self.builder.send(0, mate, span)
        buffers: dict[int | None, int] = {}
        """Where the sum of each rank's part waits for across."""
        for span in self._carried(self._rank):
            ranks = range(span.start // self._width, span.stop // self._width)
            buffer = self._reduce_inside(span, in_output=self._rank in ranks)
            buffers |= dict.fromkeys(ranks, buffer)
        for rail in self._rails:
            riders = self._riders(rail.piece)
            parts = [self._part(rider, buffers.get(rider, OUTPUT)) for rider in riders]
            # A message is cut where buffers change, which differs from rank to rank: where parts
            # of a rail lie side by side, both ends agree only if each part goes by itself.
            for taken in _one_by_one(parts) if _are_beside(riders) else [parts]:
                self._across(rail, taken)

    def _reduce_inside(self, own: Span, *, in_output: bool) -> int:
        """Add up the mates' contributions in rank order; returns the buffer with the sum.

        It is OUTPUT, or else the slot of the first mate.
        """
        b = self.builder
        if not self._mates:
            return OUTPUT
        slots = {mate: b.span(own.start, own.stop, b.scratch()) for mate in self._mates}
        for mate, span in slots.items():
            b.recv(0, mate, span)
        result = own if in_output else slots[self._mates[0]]
        srcs = [slots.get(rank, own) for rank in self._ranks]
        b.reduce(0, srcs, result, last=not self._rails)  # without other nodes, nothing is to come
        return result.buffer

    def _gather_inside(
        self, given: Callable[[int], Iterable[Span]], *, complete: int | None = None
    ) -> None:
        """Each rank gives its mates what it has for them; ``complete`` needs nothing."""
        for mate in self._mates:
            if mate != complete:
                for span in given(self._rank):
                    self.builder.send(self._end, mate, span)
            if self._rank != complete:
                for span in given(mate):
                    self.builder.recv(self._end, mate, span)

    def _pieces_across(self) -> None:
        for rail in self._rails:
            first = rail.piece * self._width
            self._across(rail, [[(OUTPUT, first + unit) for unit in range(self._width)]])

    def _across(self, rail: _Rail, parts: Iterable[Sequence[Placed]]) -> None:
        place = [placed for part in parts for placed in part]
        self.builder.include(rail.program, ranks=rail.owners, place=place, round=self._first)

    def _riders(self, piece: int) -> list[int | None]:
        """The ranks whose parts travel on a rail; None for an owner that has an earlier rail."""
        return [self._shape.primary(node, piece) for node in self._shape.rail(piece)]

    def _carried(self, mate: int) -> list[Span]:
        """The parts on a mate's rails: its own by itself, neighbouring ones of others together."""
        pieces = self._shape.pieces(self._node, mate)
        riders = {rank for piece in pieces for rank in self._riders(piece) if rank is not None}
        starts = [
            rank for rank in sorted(riders) if rank - 1 not in riders or mate in (rank, rank - 1)
        ]
        spans = []
        for first in starts:
            stop = first + 1
            while stop in riders and stop not in (mate, mate + 1):
                stop += 1
            spans.append(self.builder.span(first * self._width, stop * self._width))
        return spans

    def _part(self, rank: int | None, buffer: int) -> list[Placed]:
        if rank is None:
            return [None] * self._width
        return [(buffer, rank * self._width + unit) for unit in range(self._width)]

    def _pieces_of(self, mate: int) -> Span:
        pieces = self._shape.pieces(self._node, mate)
        return self.builder.span(pieces.start * self._width, pieces.stop * self._width)

    def _pieces_given(self, mate: int) -> list[Span]:
        return [self._pieces_of(mate)]

    def _rails_of(self, algorithm: Hierarchical, spec: Spec) -> Iterator[_Rail]:
        """One for each piece that this rank owns; none where there is one node."""
        shape = self._shape
        if shape.nnodes == 1:
            return
        over, root_node = algorithm.over(), shape.node_of(spec.root)
        for piece in shape.pieces(self._node, spec.rank):
            rail = shape.rail(piece)
            root = rail.index(root_node) if COLLECTIVES[spec.collective].rooted else 0
            place = Spec(spec.collective, rail.index(self._node), shape.nnodes, root)
            owners = tuple(shape.owner(node, piece) for node in rail)
            yield _Rail(piece, owners, over.program(place))


def _are_beside(riders: Sequence[int | None]) -> bool:
    return any(a is not None and b == a + 1 for a, b in pairwise(riders))


def _one_by_one(parts: Sequence[list[Placed]]) -> Iterator[list[list[Placed]]]:
    """The places of one part at a time, and nowhere for the others."""
    nowhere: list[list[Placed]] = [[None] * len(part) for part in parts]
    for number, part in enumerate(parts):
        yield [*nowhere[:number], part, *nowhere[number + 1 :]]

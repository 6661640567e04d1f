"""The shape of a hierarchy: nested tuples of ranks, and who owns what in them.

Owns the rules by which uneven nodes share an array. With K the ranks of the largest node the array
has K *pieces*; piece c of a node of k ranks is owned by its local rank ``c k // K``. The owners of
piece c in all nodes are its *rail*. Every rank owns at least one piece, since k <= K; its first is
its *primary* one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from rawcoll.errors import InvalidArgument

Levels: TypeAlias = "tuple[int, ...] | tuple[Levels, ...]"
"""A node (a tuple of ranks), or a tuple of what is one level below."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Nodes in order, and what is above them.

    Attributes:
        nodes: the ranks of each node.
        npieces: ranks of the largest node.
        above: the levels over nodes 0, 1, ...; None where they form a flat list.
    """

    nodes: tuple[tuple[int, ...], ...]
    npieces: int
    above: Levels | None

    @property
    def nnodes(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    def node_of(self, rank: int) -> int:
        """The node that a rank is in."""
        return next(number for number, node in enumerate(self.nodes) if rank in node)

    def owner(self, node: int, piece: int) -> int:
        """The rank of a node that owns a piece."""
        ranks = self.nodes[node]
        return ranks[piece * len(ranks) // self.npieces]

    def pieces(self, node: int, rank: int) -> range:
        """The pieces that a rank of a node owns: those c with ``c k // K`` its local rank."""
        k, local = len(self.nodes[node]), self.nodes[node].index(rank)
        return range(-(-local * self.npieces // k), -(-(local + 1) * self.npieces // k))

    def primary(self, node: int, piece: int) -> int | None:
        """The owner of a piece in a node if it is that rank's first piece, else None."""
        rank = self.owner(node, piece)
        return rank if self.pieces(node, rank)[0] == piece else None

    def rail(self, piece: int) -> tuple[int, ...]:
        """The nodes in the order that a piece visits them.

        Under a flat level above, rails start at different nodes, so that not all of them load the
        same link at the same time; a deeper level above names nodes by number, which rotation would
        move to other groups.
        """
        turn = 0 if self.above is not None else piece % self.nnodes
        return (*range(turn, self.nnodes), *range(turn))


@lru_cache(maxsize=64)
def shape_of(levels: Levels) -> Shape:
    """Nodes and what is above them.

    Raises:
        InvalidArgument: empty tuples, nodes at different depths, or not each rank once.
    """
    depths = {depth for _, depth in _walk(levels, 1)}
    nodes = tuple(node for node, _ in _walk(levels, 1))
    ranks = sorted(rank for node in nodes for rank in node)
    if len(depths) != 1 or not all(nodes) or ranks != list(range(len(ranks))):
        raise InvalidArgument(
            f"levels: not a hierarchy: found {levels}, expected tuples nested equally deep"
            f" that hold each of the ranks 0 to {max(len(ranks) - 1, 0)} once"
        )
    above = _above(levels, iter(range(len(nodes)))) if depths.pop() > 2 else None
    return Shape(nodes, max(map(len, nodes)), above)


def _walk(levels: Levels, depth: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """The innermost tuples and how deep they are."""
    inner = [level for level in levels if isinstance(level, tuple)]
    if not inner:
        yield tuple(rank for rank in levels if isinstance(rank, int)), depth
    elif len(inner) != len(levels):
        raise InvalidArgument(f"levels: ranks beside nodes: found {levels}, expected either")
    for level in inner:
        yield from _walk(level, depth + 1)


def _above(levels: Levels, numbers: Iterator[int]) -> Levels:
    """The same nesting with each innermost tuple replaced by its number."""
    if all(isinstance(level, tuple) and not isinstance(level[0], tuple) for level in levels):
        return tuple(next(numbers) for _ in levels)
    return tuple(_above(level, numbers) for level in levels if isinstance(level, tuple))

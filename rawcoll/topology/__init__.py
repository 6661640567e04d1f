"""Where ranks are: which of them share a node."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topology:
    """The ranks of each node.

    Attributes:
        nodes: for each node its ranks, in rank order; ranks of one node share memory.
    """

    nodes: tuple[tuple[int, ...], ...]

    @property
    def nranks(self) -> int:
        """How many ranks there are."""
        return sum(len(node) for node in self.nodes)

    def node_of(self, rank: int) -> int:
        """Index of the node of a rank."""
        return next(i for i, node in enumerate(self.nodes) if rank in node)

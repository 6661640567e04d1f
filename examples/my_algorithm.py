"""An algorithm from outside the package: a ring that runs both ways.

Each rank's block has two halves; one travels to the next rank, the other to the previous one, so
that links are used in both directions. It is chosen by the function or by where it is:

    comm.all_reduce(x, algorithm="examples/my_algorithm.py:two_way_ring")
"""

from rawcoll.algorithms import algorithm
from rawcoll.schedule.builder import Builder


@algorithm(collectives=("all_reduce",), min_ranks=2)
def two_way_ring(rank: int, nranks: int, b: Builder) -> None:
    """Reduce-scatter and all-gather in both directions."""
    b.units(2 * nranks)  # unit 2 r + w: the half of rank r's block that travels the way w
    for way, step in ((0, 1), (1, -1)):
        after, before = (rank + step) % nranks, (rank - step) % nranks
        slot = b.scratch()
        for hop in range(nranks - 1):  # reduce-scatter: a block ends at its owner
            leaving, arriving = rank - step * (hop + 1), rank - step * (hop + 2)
            unit = 2 * (arriving % nranks) + way
            own, received = b.span(unit), b.span(unit, unit + 1, slot)
            b.send(hop, after, b.span(2 * (leaving % nranks) + way))
            b.recv(hop, before, received)
            b.reduce(hop, (received, own), own, last=hop == nranks - 2)
        for hop in range(nranks - 1):  # all-gather: a block starts at its owner
            leaving, arriving = rank - step * hop, rank - step * (hop + 1)
            b.send(nranks - 1 + hop, after, b.span(2 * (leaving % nranks) + way))
            b.recv(nranks - 1 + hop, before, b.span(2 * (arriving % nranks) + way))
